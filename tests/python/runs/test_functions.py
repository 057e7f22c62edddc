# SPDX-License-Identifier: BSD-3-Clause
"""Where the functions are that a run counts or begins at, and which are refused."""

import json
import subprocess
from pathlib import Path

import pytest

from moscope.cli import Shared
from moscope.errors import UserError
from moscope.naming import elf
from moscope.runs import functions, options

SOURCE = """
#include <cstdlib>
struct Pool { void push(int); void push(long); };
__attribute__((noinline)) void Pool::push(int n) { asm volatile("" :: "r"(n)); }
__attribute__((noinline)) void Pool::push(long n) { asm volatile("" :: "r"(n)); }
extern "C" __attribute__((noinline)) void work(int n) { Pool p; p.push(n); p.push(1L); }
int main(int argc, char **) { for (;;) work(argc); }
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("functions")
    (folder / "pool.cc").write_text(SOURCE)
    subprocess.run(["g++", "-O1", "-o", folder / "pool", folder / "pool.cc"], check=True)
    return folder / "pool"


def along(program: Path) -> dict[str, Path]:
    return {f"programs/{program.name}": program, "workloads/counter": Path("/nowhere")}


def found(program: Path, name: str) -> list[str]:
    return sorted(one.symbol for one in functions.find("--count", name, along(program), program.name))


def test_a_name_is_a_symbol_or_what_it_is_demangled_to_with_all_overloads(program: Path) -> None:
    assert found(program, "work") == ["work"]
    assert found(program, "Pool::push") == ["_ZN4Pool4pushEi", "_ZN4Pool4pushEl"]
    assert found(program, "Pool::push(long)") == found(program, "_ZN4Pool4pushEl") == ["_ZN4Pool4pushEl"]
    assert found(program, "pool:work") == ["work"]


def test_an_offset_is_that_of_the_code_in_the_file(program: Path) -> None:
    (work,) = functions.find("--count", "work", along(program), "pool")
    file = elf.from_file(program)
    address = next(row[0] for row in file.symbols() if row[3] == "work")
    assert program.read_bytes()[work.offset:work.offset + 8] == file.read(address, 8)


def test_libraries_are_asked_for_what_the_program_lacks(program: Path) -> None:
    library = next(path for path in Path("/lib/x86_64-linux-gnu").glob("libc.so.6"))
    files = {**along(program), str(library): library}
    assert {one.file for one in functions.find("--count", "puts", files, "pool")} == {library}
    assert {one.file for one in functions.find("--count", "work", files, "pool")} == {program}


@pytest.mark.parametrize(("name", "said"), [
    ("wrok", "a known name, such as work$"), ("ush", "a known name, such as Pool::push$"),  # libc has fputs and others
    ("putss", "a known name, such as puts "), ("zzzz", r"one of \d+ names: Pool::push, .*\bwork, ")])
def test_suggestions_for_an_unknown_function_begin_with_the_programs_own_file(program: Path, name: str, said: str) -> None:
    files = {**along(program), "/lib/x86_64-linux-gnu/libc.so.6": Path("/lib/x86_64-linux-gnu/libc.so.6")}
    with pytest.raises(UserError, match=f'--count: no function called "{name}": expected {said}'):
        functions.find("--count", name, files, "pool")


def test_an_unknown_function_is_refused_with_the_nearest_ones(program: Path, shared: Shared) -> None:
    def made(**given: object) -> options.Plan:
        return options.make(shared, options.Options(program=str(program), cores="1", **given))  # type: ignore[arg-type]

    with pytest.raises(UserError, match='--count: no function called "wrok": expected a known name, such as work'):
        made(begin="1ms", count=("wrok",))
    with pytest.raises(UserError, match='--begin: no function called "Pool::pusch": expected a known name, such as Pool::push'):
        made(begin="call:Pool::pusch")
    with pytest.raises(UserError, match="--begin: call:: expected call: and the name of a function"):
        made(begin="call:")
    plan = made(begin="call:work", count=("work", "Pool::push"))
    assert plan.points[0].begin == "call:work" and plan.points[0].operation == "calls of work and Pool::push"
    assert plan.identity()["points"][0]["count"] == ["work", "Pool::push"]


def test_counting_and_beginning_at_functions_need_a_program_of_ones_own(shared: Shared) -> None:
    for given in ({"count": ("work",)}, {"begin": "call:work"}):
        with pytest.raises(UserError, match="applies only to a program of your own: expected --program, too"):
            options.make(shared, options.Options(workload="counter", **given))  # type: ignore[arg-type]


def test_a_program_without_symbols_is_refused(program: Path, tmp_path: Path) -> None:
    bare = tmp_path / "pool"
    subprocess.run(["strip", "-o", bare, program], check=True)
    with pytest.raises(UserError, match="--count: work: pool has no symbols: expected a program that is not stripped"):
        functions.find("--count", "work", along(bare), "pool")


def test_the_engine_is_told_each_place_and_what_it_does(program: Path) -> None:
    probes = functions.Probes(["work", "Pool::push"], "call:work", along(program), "pool")
    places = json.loads(probes.text())
    assert [one["does"] for one in places[:4]] == ["count", "count", "count", "stop"]
    assert {one["does"] for one in places[4:]} == {"see"} and len({one["offset"] for one in places[4:]}) > 3
    assert places[0]["offset"] == places[3]["offset"] and places[3]["name"] == "call:work"
    assert not functions.Probes([], "1ms", along(program), "pool")


class Reports:
    def __init__(self, rows: list[tuple[int, bool]]) -> None:
        self.rows = rows

    def code_report(self) -> str:
        return json.dumps([{"calls": calls, "reached": reached} for calls, reached in self.rows])


def test_calls_of_a_name_are_those_of_all_its_places(program: Path) -> None:
    probes = functions.Probes(["work", "Pool::push"], None, along(program), "pool")
    assert probes.calls(Reports([(3, True), (4, True), (5, True)])) == {"work": 3, "Pool::push": 9}


def test_system_calls_are_counted_by_number_after_the_functions(program: Path) -> None:
    probes = functions.Probes(["syscall:write", "work", "syscall:any"], None, along(program), "pool", system_calls={"read": 0, "write": 1})
    assert json.loads(probes.text())[1:] == [{"system_call": 1, "name": "syscall:write"}, {"system_call": -1, "name": "syscall:any"}]
    assert probes.calls(Reports([(3, True), (4, True), (9, True)])) == {"work": 3, "syscall:write": 4, "syscall:any": 9}
    with pytest.raises(UserError, match='--count: no system call called "wriet": expected a known name, such as write'):
        functions.Probes(["syscall:wriet"], None, along(program), "pool", system_calls={"read": 0, "write": 1})
    with pytest.raises(UserError, match="--count: syscall:write: the kernel's table of system calls has no symbol: expected syscall:any"):
        functions.Probes(["syscall:write"], None, along(program), "pool", system_calls={})


def test_if_the_function_was_never_called_the_functions_that_ran_are_known(program: Path) -> None:
    probes = functions.Probes([], "call:work", along(program), "pool")
    seen = [one["offset"] for one in json.loads(probes.text())[1:]]
    (main,) = functions.find("--count", "main", along(program), "pool")
    assert probes.ran(Reports([(0, False)] + [(0, offset == main.offset) for offset in seen])) == "main"


def test_allocators_are_found_with_their_arguments_and_the_programs_beginning(program: Path) -> None:
    library = Path("/lib/x86_64-linux-gnu/libc.so.6")
    found = functions.allocators({**along(program), str(library): library}, "pool")
    roles = {one.name: role for role, one in found}
    assert roles["malloc"] == "malloc" and roles["calloc"] == "calloc" and roles["free"] == "free"
    assert [one.file for role, one in found if role == "begin"] == [program]
    assert len({(one.file, one.offset) for _, one in found}) == len(found)


def test_a_library_that_lies_in_the_guest_under_two_names_has_one_place(program: Path, tmp_path: Path) -> None:
    copy, link = tmp_path / "libpool.so.1.2", tmp_path / "libpool.so.1"
    copy.write_bytes(program.read_bytes())
    link.symlink_to(copy)
    inside = {"programs/other": Path("/bin/true"), "/usr/lib/libpool.so.1.2": copy, "/usr/lib/libpool.so.1": link}
    assert len(functions.find("--count", "work", inside, "other")) == 1
    assert len(functions.find("--count", "Pool::push", inside, "other")) == 2


@pytest.mark.parametrize("count", [["work", "work"], ["Pool::push", "Pool::push(long)"]])
def test_a_function_is_counted_under_one_name(program: Path, count: list[str]) -> None:
    with pytest.raises(UserError, match="are the same function"):
        functions.Probes(count, None, along(program), program.name)
