# SPDX-License-Identifier: BSD-3-Clause
"""Parts that register themselves have a row in the table of their page, which the guides of docs/extending ask for."""

import inspect
import re
from pathlib import Path

import pytest

import moscope
from moscope import paths, workloads
from moscope.workloads.registry import Workload

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


def test_the_page_on_python_has_each_argument_of_a_sweep() -> None:
    section = (paths.root() / "docs" / "python.md").read_text(encoding="utf-8").partition("\n## Sweeps\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"\w+", section.partition("```")[0]))
    assert set(inspect.signature(moscope.sweep).parameters) <= named


def test_workloads_with_memory_of_their_own_are_named_with_it() -> None:
    usual = Workload.memory_per_node
    page = " ".join((paths.root() / "docs" / "workloads.md").read_text(encoding="utf-8").split())
    said = page.partition("Each node has ")[2].partition(" changes it.")[0].replace(" MiB", "MiB").replace(" GiB", "GiB")
    others = {w.name: w.memory_per_node for w in workloads.every() if w.memory_per_node != usual}
    assert said.startswith(usual) and others
    assert all(f"`{name}`" in said and size in said for name, size in others.items())
