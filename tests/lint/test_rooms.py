# SPDX-License-Identifier: BSD-3-Clause
"""The rooms of the checkout: `tests/` mirrors `src/` and the other top folders, so that a test is found where its subject is."""

import subprocess
from pathlib import Path

from moscope import paths

ROOT = paths.root()
# Folders of tests that have no counterpart, each with what it tests.
OWN = {
    "boot": "Linux on the whole machine",
    "extending": "the guides of docs/extending",
    "lint": "the repository itself",
    "protocol": "protocols on whole machines: random tests, litmus tests, mutations",
    "results": "digests of simulated results",
}
# Data below a mirrored folder: inputs of its tests.
DATA = {"protocols", "native", "faults", "common"}


def tracked_folders(top: str) -> set[Path]:
    """Folders below `top` that hold a file of the repository."""
    got = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", top], cwd=ROOT, capture_output=True,
                         text=True, check=True)
    return {Path(f).parent for f in got.stdout.split("\0") if f}


def counterpart(folder: Path) -> list[Path]:
    """Where the subject of the tests in `folder` (relative to tests/) may be."""
    if folder.parts[0] == "python":
        return [ROOT / "src/python/moscope" / Path(*folder.parts[1:])]
    return [ROOT / "src" / folder, ROOT / folder]


def strays(folders: set[Path]) -> list[str]:
    """Folders of tests, relative to tests/, that mirror nothing."""
    return [str(f) for f in sorted(folders)
            if f.parts[0] not in OWN and not DATA & set(f.parts) and not any(c.is_dir() for c in counterpart(f))]


def test_every_folder_of_tests_mirrors_a_folder_of_sources() -> None:
    assert not strays({f.relative_to("tests") for f in tracked_folders("tests")} - {Path(".")})


def test_the_check_finds_a_folder_that_mirrors_nothing() -> None:
    assert strays({Path("house"), Path("dev/interrupts"), Path("python/runs")}) == ["house"]
