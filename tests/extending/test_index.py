# SPDX-License-Identifier: BSD-3-Clause
"""The index of docs/extending names the place of every kind of part that registers itself."""

import os
import re
from pathlib import Path

from moscope import paths

ROOT = paths.root()
INDEX = (ROOT / "docs" / "extending" / "index.md").read_text(encoding="utf-8")


def place(files: list[Path]) -> str:
    """The folder of all these files."""
    return Path(os.path.commonpath([file.parent for file in files])).relative_to(ROOT).as_posix()


def test_the_index_names_the_folder_of_each_registry_of_the_simulator() -> None:
    users: dict[str, list[Path]] = {}
    for file in (ROOT / "src").rglob("*.cc"):
        for registry in re.findall(r"^const (Registered\w+) ", file.read_text(encoding="utf-8"), re.MULTILINE):
            users.setdefault(registry, []).append(file)
    assert len(users) >= 5
    assert not [registry for registry, files in users.items() if f"one file in `{place(files)}/`" not in INDEX]


def test_the_index_names_the_folder_of_each_package_whose_modules_declare_a_part() -> None:
    packages = [file.parent for folder in ("analysis", "src/python/moscope") for file in (ROOT / folder).rglob("__init__.py")
                if re.search(r"contributed\.(declared|imported)\(", file.read_text(encoding="utf-8"))]
    assert len(packages) >= 4
    assert not [p for p in packages if f"one file in `{p.relative_to(ROOT).as_posix()}/`" not in INDEX]
