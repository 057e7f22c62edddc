# SPDX-License-Identifier: BSD-3-Clause
"""Lines of stacks are named by the call and the variable, in all that a run says of them; a write to a line that the core holds clean and
alone is an upgrade. One run serves both."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from moscope import jsonio
from moscope.guest import initramfs, kernel, packages

Moscope = Callable[..., "subprocess.CompletedProcess[str]"]
HERE = Path(__file__).parent
WRITE = next(n for n, text in enumerate((HERE / "frames.c").read_text(encoding="utf-8").splitlines(), 1) if "from E to M" in text)
POINT = "run/points/frames-distro-6"

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None or not all(
    (packages.cache() / "chosen" / f"{name}.json").is_file() for name in (kernel.CLOUD_KERNEL, initramfs.BUSYBOX_PACKAGE)),
    reason="without gcc, or the distribution's kernel is not in the cache: `moscope boot` fetches it")


def measured(folder: Path, moscope: Moscope, *options: str) -> dict[str, Any]:
    shutil.copy(HERE / "frames.c", folder)
    subprocess.run(["gcc", "-pthread", *options, "frames.c", "-o", "frames"], cwd=folder, check=True)
    # A first write to a line that a prefetch has brought is cold, not an upgrade.
    got = moscope("run", "--program", "frames", "--begin", "all run", "--cores", "6", "--warmup", "100us", "--window", "50us", "--windows",
                  "1", "--detail", "full", "--set", "l1d_prefetch.policy=off", "--out", "run", "--json", timeout=600)
    assert got.returncode == 0, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    return document


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory, moscope_in: Callable[[Path], Moscope]) -> tuple[Path, dict[str, Any], Moscope]:
    folder = tmp_path_factory.mktemp("frames")
    return folder, measured(folder, moscope_in(folder), "-g", "-O2"), moscope_in(folder)


def test_the_hottest_names_are_variables_of_the_main_thread_and_of_another(shared: tuple[Path, dict[str, Any], Moscope]) -> None:
    folder, document, _ = shared
    names = {one["name"]: one for one in document["points"][0]["top_names"]}
    stats = next(one for name, one in names.items() if name.startswith("frames:serve()::stats["))
    queue = next(one for name, one in names.items() if name.startswith("frames:manage()::queue."))
    assert stats["class"] == "false_sharing" and stats["wait_share"] > 0.05 and queue["wait_share"] > 0.2
    lines = duckdb.execute("""SELECT name, kind, object FROM read_parquet(?)
                              WHERE name LIKE 'frames:serve()::stats%' OR name LIKE 'frames:manage()::queue.%'""",
                           [str(folder / POINT / "lines.parquet")]).fetchall()
    assert {row[1] for row in lines} == {"stack"} and len({row[2] for row in lines}) == 1 and lines[0][2].startswith("frames ")
    fields = duckdb.execute("""SELECT name, type FROM read_parquet(?) WHERE kind = 'stack' AND name LIKE 'frames:%'""",
                            [str(folder / POINT / "fields.parquet")]).fetchall()
    assert {(f"frames:serve()::stats[{n}].{name}", "long int") for n in range(4) for name in ("packets", "bytes")} <= set(fields)
    assert {f"frames:manage()::queue.{name}" for name in ("head", "tail")} <= {name for name, _ in fields}


def test_the_map_of_a_line_and_its_advice_have_the_fields(shared: tuple[Path, dict[str, Any], Moscope]) -> None:
    _, document, moscope = shared
    name = next(one["name"] for one in document["points"][0]["top_names"] if one["name"].startswith("frames:serve()::stats["))
    got = moscope("report", "run", "--line", name, "--json")
    assert got.returncode == 0, got.stderr
    found = json.loads(got.stdout)
    jsonio.validate(found)
    (advice, *_), fields = found["lines"][0]["advice"], [one["name"] for one in found["lines"][0]["fields"]]
    assert advice["kind"] == "false_sharing" and advice["fields"][0] == "frames:serve()::stats"
    assert {"frames:serve()::stats[1].packets", "frames:serve()::stats[2].packets"} <= set(fields)


def test_a_write_to_a_line_held_clean_and_alone_is_an_upgrade(shared: tuple[Path, dict[str, Any], Moscope]) -> None:
    folder, _, moscope = shared
    rows = duckdb.execute("""SELECT class, supplier_chip, hops, count(*) FROM read_parquet(?)
                             WHERE source = ? AND kind = 'store' AND NOT buffer_wait GROUP BY ALL""",
                          [str(folder / POINT / "transactions.parquet"), f"frames.c:{WRITE}"]).fetchall()
    assert [row[:3] for row in rows] == [("upgrade", None, 0)] and rows[0][3] > 100
    audit = moscope("report", "run", "--audit", "--json")
    assert audit.returncode == 0, audit.stdout


@pytest.mark.long
@pytest.mark.parametrize(("options", "name"), [(("-g", "-O0", "-static"), "serve()::stats["), (("-O2",), "frame of serve()"),
                                               (("-O1", "-fno-omit-frame-pointer", "-g", "-no-pie"), "serve()::stats[")])
def test_stack_variables_are_named_with_any_options_of_the_compiler(options: tuple[str, ...], name: str, tmp_path: Path,
                                                                     moscope_in: Callable[[Path], Moscope]) -> None:
    document = measured(tmp_path, moscope_in(tmp_path), "-fno-inline", *options)
    assert any(one["name"].startswith(f"frames:{name}") for one in document["points"][0]["top_names"])
