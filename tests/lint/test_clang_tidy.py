# SPDX-License-Identifier: BSD-3-Clause
"""clang-tidy finds nothing in the C++ sources, with the checks of `.clang-tidy`. An ordinary run checks a sample with the headers that
it includes; `--long` checks all."""

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from moscope import buildproto, paths, toolchain

ROOT = paths.root()
ROOMS = ("src/base", "src/sim", "src/mem", "src/cpu", "src/dev", "src/machine", "src/board", "src/attribution", "src/experiment",
         "src/python/bindings")
# Small sources that include the main headers of their rooms.
SAMPLE = ("src/mem/dram/controller.cc", "src/board/detailed.cc")
GEM5 = "src/mem/ruby/protocol/gem5/"  # gem5 compiles these, with its own headers

needs_clang_tidy = pytest.mark.skipif(shutil.which("clang-tidy") is None, reason="this system has no clang-tidy (package clang-tidy)")


def sources(room: str) -> list[str]:
    names = (str(p.relative_to(ROOT)) for p in buildproto.files_under(ROOT / room, {".cc"}))
    return [name for name in names if not name.startswith(GEM5)]


def flags() -> list[str]:
    nanobind = pytest.importorskip("nanobind")
    generated = paths.build_dir() / toolchain.GENERATED
    return [*toolchain.compile_flags("opt"), "-Wno-unknown-warning-option", "-Wno-error", "-Isrc", "-Itests", f"-I{generated}",
            "-isystem", nanobind.include_dir(), "-isystem", toolchain.python_include()]


def findings(name: str) -> str:
    got = subprocess.run(["clang-tidy", "--quiet", name, "--", *flags()], cwd=ROOT, capture_output=True, text=True, check=False)
    return got.stdout if got.returncode or "warning:" in got.stdout else ""


@needs_clang_tidy
@pytest.mark.parametrize("name", SAMPLE)
def test_a_source_and_its_headers_have_no_findings(name: str) -> None:
    assert not findings(name)


@needs_clang_tidy
def test_a_finding_is_reported(tmp_path: Path) -> None:
    (tmp_path / "source.cc").write_text("int *f() { return 0; }\n")
    shutil.copy(ROOT / ".clang-tidy", tmp_path)
    assert "modernize-use-nullptr" in findings(str(tmp_path / "source.cc"))


@needs_clang_tidy
@pytest.mark.long
@pytest.mark.parametrize("room", ROOMS)
def test_no_source_of_a_room_has_findings(room: str) -> None:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        assert not "\n".join(filter(None, pool.map(findings, sources(room))))
