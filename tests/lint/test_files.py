# SPDX-License-Identifier: BSD-3-Clause
"""House rules on the files of the repository: licence line, length, no leftovers, nothing of this or that machine."""

import re
import subprocess
from pathlib import Path

import repository

from moscope import paths

ROOT = paths.root()
SOURCE = {".cc", ".hh", ".c", ".h", ".py", ".slicc", ".sm", ".lark"}
LICENCE = "SPDX-License-Identifier: BSD-3-Clause"
LONGEST = 500
# Longer files, each with its reason.
LONG_FILES: dict[str, str] = {
    "src/mem/ruby/protocol/MOESI_HTAssist-dir-transitions.sm": "the home's one table, 349 entries in the order of its states",
    "tests/dev/interrupts/test_lapic.cc": "a case for each register and rule of one device",
}
# Words are put together here so that this file does not find itself.
UNFINISHED = re.compile(
    r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK", r"not (yet )?imple" + "mented",
                       "place" + "holder", "dummy " + "value", "for " + "now"]) + r")\b", re.IGNORECASE)
MACHINE_PATH = re.compile(r"(^|[^A-Za-z0-9_./])/(" + "|".join(["wo" + "rk", "fa" + "rm", "ho" + "me", "tmp/" + "gem5"]) + ")/")
GENERATED = re.compile(r"(^|/)(build|__pycache__|\.venv)/|\.(so|o|os|a|pyc|deb|img|ckpt|parquet)$")
INSTALL_FILES = re.compile(r"(^|/)(moscope|SConstruct|SConscript|.*\.sh|requirements[^/]*|pyproject\.toml|\.ci/.*"
                           r"|bootstrap\.py|toolchain\.py|buildproto\.py)$")


FILES = repository.files(ROOT)


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def sources() -> list[str]:
    return [f for f in FILES if Path(f).suffix in SOURCE or f in ("SConstruct", "moscope")]


def test_every_source_has_its_licence_line_at_the_top() -> None:
    lacking = [f for f in sources() if LICENCE not in "".join(text_of(f).splitlines()[:2])]
    assert not lacking, f"expected a comment with {LICENCE} as the first line (or the second, below #!)"


def test_the_rules_apply_to_guest_programs_and_to_files_before_they_are_added(tmp_path: Path) -> None:
    assert {".cc", ".hh", ".c", ".h", ".py"} <= {Path(f).suffix for f in sources()}
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for name in ("new.cc", "more.py", "ignored.o", ".gitignore"):
        (tmp_path / name).write_text("*.o\n")
    assert repository.files(tmp_path) == [".gitignore", "more.py", "new.cc"]
    assert repository.files(tmp_path, "*.cc") == ["new.cc"]


def test_headers_are_guarded() -> None:
    unguarded = [f for f in FILES if f.endswith((".hh", ".h")) and "#pragma once" not in text_of(f)]
    assert not unguarded, "expected #pragma once"


def test_no_source_is_long_without_a_reason() -> None:
    long = {f: n for f in sources() if (n := len(text_of(f).splitlines())) > LONGEST and f not in LONG_FILES}
    assert not long


def test_the_list_of_long_files_names_files_that_are_long() -> None:
    assert not [f for f in LONG_FILES if f in FILES and len(text_of(f).splitlines()) <= LONGEST]


def test_readme_is_at_most_200_lines() -> None:
    assert len(text_of("README.md").splitlines()) <= 200


def test_no_mark_of_unfinished_work() -> None:
    marks = [f"{f}:{i}: {line.strip()}" for f in sources() for i, line in enumerate(text_of(f).splitlines(), 1)
             if UNFINISHED.search(line)]
    assert not marks, "\n".join(marks)


def test_no_file_contains_a_path_of_one_developers_machine() -> None:
    found = [f"{f}:{i}: {line.strip()}" for f in FILES for i, line in enumerate(text_of(f).splitlines(), 1)
             if MACHINE_PATH.search(line)]
    assert not found, "\n".join(found)


def test_build_and_install_files_name_packages_not_addresses() -> None:
    assert not [f for f in FILES if INSTALL_FILES.search(f) and "://" in text_of(f)]


def test_nothing_generated_or_binary_is_in_the_repository() -> None:
    assert not [f for f in FILES if GENERATED.search(f)]
    shown = {".png", ".svg"}
    assert not [f for f in FILES if Path(f).suffix not in shown and b"\0" in (ROOT / f).read_bytes()]


def test_every_requirement_is_pinned() -> None:
    files = [f for f in FILES if re.fullmatch(r"requirements[^/]*\.txt", f)]
    lines = [r for f in files for r in text_of(f).splitlines() if r and not r.startswith("#")]
    assert not [r for r in lines if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][0-9a-z.]*", r)]
