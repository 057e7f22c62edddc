# SPDX-License-Identifier: BSD-3-Clause
"""Names that the debug information of a small Fortran program gives, which the distribution's compiler makes here."""

import shutil
import subprocess

import pytest

from moscope.naming.user import Program
from moscope.runs import functions

pytestmark = pytest.mark.skipif(not shutil.which("gfortran"), reason="needs gfortran")
F90 = """
module gm
  integer(8) :: grid(4,64) = 0, neg(-8:7) = 0
  type cell
    integer(8) :: n, w(2:3)
  end type
  type(cell) :: cells(3)
  integer(8), allocatable :: later(:)
contains
  subroutine poke(x)
    integer(8), intent(inout) :: x
    x = x + 1
  end subroutine
end module
program main
  use gm
  integer(8) :: limit, hits(0:3)
  common /cfg/ limit, hits
  call poke(grid(2, 3)); call poke(neg(2)); call poke(cells(2)%n); call poke(later(1)); call poke(hits(limit))
end program
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    folder = tmp_path_factory.mktemp("fortran")
    (folder / "program.f90").write_text(F90, encoding="utf-8")
    subprocess.run(["gfortran", "-g", "program.f90", "-o", "program"], cwd=folder, check=True, capture_output=True)
    return Program("program", folder / "program")


def named(program: Program, symbol: str, offset: int = 0) -> str:
    address = program.symbols.address(symbol)
    place = program.symbols.at(address + offset) if address is not None else None
    assert place is not None, symbol
    return program.name_of(place)[0]


@pytest.mark.parametrize(("symbol", "offset", "name"), [
    ("__gm_MOD_grid", 8 * (1 + 4 * 2), "gm::grid[2][3]"), ("__gm_MOD_neg", 0, "gm::neg[-8]"), ("__gm_MOD_neg", 80, "gm::neg[2]"),
    ("__gm_MOD_cells", 24 + 16, "gm::cells[2].w[3]"), ("__gm_MOD_later", 0, "gm::later")])
def test_fortran_indices_follow_the_order_and_bounds_of_the_source(program: Program, symbol: str, offset: int, name: str) -> None:
    assert named(program, symbol, offset) == name


def test_a_byte_of_a_common_block_has_the_name_of_block_and_member(program: Program) -> None:
    assert [named(program, "cfg_", offset) for offset in (0, 8, 24)] == ["cfg.limit", "cfg.hits[0]", "cfg.hits[2]"]


@pytest.mark.parametrize("name", ["gm::poke", "poke", "__gm_MOD_poke"])
def test_a_procedure_of_a_module_is_counted_by_its_name_with_or_without_the_module(program: Program, name: str) -> None:
    (found,) = functions.find("--count", name, {"programs/program": program._path}, "program")
    assert found.name == "gm::poke"
