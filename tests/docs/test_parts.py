# SPDX-License-Identifier: BSD-3-Clause
"""Parts that register themselves have a row in the table of their page, which the guides of docs/extending ask for."""

import re
from pathlib import Path

import pytest

from moscope import paths, workloads

DEV = paths.root() / "src" / "dev"
REGISTERS = re.compile(r"^const RegisteredDevice \w+\(", re.MULTILINE)


def cells(page: str, head: str, column: int) -> str:
    """The cells of one column of the table whose header starts with `head`."""
    table = (paths.root() / "docs" / page).read_text(encoding="utf-8").partition(f"\n{head}")[2].partition("\n\n")[0]
    return "\n".join(row.split(" | ")[column] for row in table.splitlines()[2:])


def devices() -> list[Path]:
    return [file for file in sorted(DEV.rglob("*.cc")) if REGISTERS.search(file.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("file", devices(), ids=lambda file: file.stem)
def test_each_registered_device_has_a_row_with_its_address_and_interrupt(file: Path) -> None:
    name = str(file.relative_to(DEV).with_suffix(""))
    assert f"`{name}`" in cells("platform.md", "| device |", 1), f"docs/platform.md: no row names `{name}`: expected one with its address"


@pytest.mark.parametrize("family", sorted({w.family for w in workloads.every()}))
def test_each_folder_of_workloads_has_a_row(family: str) -> None:
    named = re.search(rf"`{family}[`-]", cells("workloads.md", "| workload | what it does |", 0))
    assert named, f"docs/workloads.md: no row for {family}: expected one that says what it does"
