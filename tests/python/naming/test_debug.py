# SPDX-License-Identifier: BSD-3-Clause
"""Names that the debug information of small C and C++ programs gives, which the distribution's compiler makes here."""

import random
import shutil
import subprocess
from pathlib import Path

import pytest

from moscope import toolchain
from moscope.naming import elf
from moscope.naming.user import Program

C = """
struct inner { int id; union { long word; struct { int low, high; } half; }; unsigned flag : 3; };
struct worker { struct inner in[2]; long packets; char pad[8]; };
struct worker stats[8];
static long grid[3][4][5];
volatile long after;
static inline __attribute__((always_inline)) void add(int n, long v)
{
    stats[n].packets += v;
}
__attribute__((noinline)) long work(int n)
{
    static long calls;
    calls++;
    add(n, calls);
    return grid[1][2][n];
}
__asm__(".text\\nbare: nop\\nnop\\n");
int main(int argc, char **argv) { (void)argv; grid[1][2][argc] = after++; return (int)work(argc); }
"""
CXX = """
#include <atomic>
#include <mutex>
namespace app {
struct Base { long users; virtual ~Base() {} };
template <class T> struct Queue : Base { T head, tail; std::atomic<long> size; std::mutex lock; static long total; };
template <class T> long Queue<T>::total = 3;
class Pool { public: static Queue<int> queues[4]; long push(int n); };
Queue<int> Pool::queues[4];
namespace { struct { int a, b; } hidden; }
long Pool::push(int n) { static long calls[2]; queues[n].head++; hidden.b++; return ++calls[1] + Queue<int>::total; }
template <class T> __attribute__((noinline)) T twice(T a) { return a + a; }
}
int main(int argc, char **) { app::Pool pool; return pool.push(argc) + app::twice(argc); }
"""
FLAGS = {"static": ["-static"], "PIE": ["-pie", "-fPIE"], "DWARF 4": ["-gdwarf-4", "-no-pie"],
         "DWARF 2": ["-gdwarf-2", "-gstrict-dwarf", "-no-pie"], "compressed": ["-gz"]}
STATS = {0: "stats[0].in[0].id", 8: "stats[0].in[0].half.low", 16: "stats[0].in[0].flag", 24: "stats[0].in[1].id",
         48: "stats[0].packets", 56: "stats[0].pad[0]", 3 * 64 + 48: "stats[3].packets", 20: "stats[0].in[0]+0x14"}


def compiled(folder: Path, text: str, *flags: str) -> Path:
    """A program, from PROGRAM.c or PROGRAM.cc in the folder."""
    source = folder / ("program.cc" if text is CXX else "program.c")
    source.write_text(text, encoding="utf-8")
    compiler = toolchain.CXX if text is CXX else "gcc"
    subprocess.run([compiler, "-O2", *flags, source.name, "-o", "program"], cwd=folder, check=True, capture_output=True)
    return folder / "program"


ALIASES = """
.globl init_lock, release_lock, release_lock64
.type init_lock, @function
.type release_lock, @function
.type release_lock64, @function
init_lock: release_lock: release_lock64: movl $1, (%rdi)
ret
.size init_lock, . - init_lock
.size release_lock, . - release_lock
.size release_lock64, . - release_lock64
.globl _start
_start: ret
"""


@pytest.mark.parametrize(("flags", "name"), [(["-g"], "release_lock"), ([], "init_lock")])
def test_of_several_functions_with_the_same_code_the_one_is_named_that_the_source_file_is_named_after(
        tmp_path: Path, flags: list[str], name: str) -> None:
    (tmp_path / "release_lock.S").write_text(ALIASES, encoding="utf-8")
    subprocess.run(["gcc", *flags, "-nostdlib", "-static", "release_lock.S", "-o", "program"], cwd=tmp_path, check=True)
    program = Program("program", tmp_path / "program")
    address = program.symbols.address("init_lock")
    assert address is not None and program.function(address + 1) == name
    place = program.at(address + 1)
    assert place is not None and (place.symbol.name, place.offset) == (name, 1)


def named(program: Program, symbol: str, offset: int = 0) -> str | None:
    address = program.symbols.address(symbol)
    assert address is not None, symbol
    place = program.symbols.at(address + offset)
    return program.name_of(place)[0] if place else None


@pytest.mark.parametrize("flags", FLAGS.values(), ids=FLAGS.keys())
def test_a_byte_of_a_global_has_the_name_of_its_index_and_field(tmp_path: Path, flags: list[str]) -> None:
    program = Program("program", compiled(tmp_path, C, "-g", *flags))
    assert {offset: named(program, "stats", offset) for offset in STATS} == STATS
    assert named(program, "grid", (1 * 20 + 2 * 5 + 3) * 8) == "grid[1][2][3]" and named(program, "after", 4) == "after"
    assert named(program, "calls.0") == "work::calls" and program.notes == []


@pytest.mark.parametrize("flags", [["-gdwarf-2", "-gstrict-dwarf"], ["-gdwarf-4"], ["-gdwarf-5"]])
def test_a_bit_field_has_its_name_at_each_of_its_bytes(tmp_path: Path, flags: list[str]) -> None:
    text = "struct bits { int before; unsigned a : 3, b : 7, c : 14, d : 8; } field; int main(void) { return field.d; }"
    program = Program("program", compiled(tmp_path, text, *flags))
    assert [named(program, "field", offset) for offset in range(3, 8)] == [f"field.{name}" for name in ("before", "a", "b", "c", "d")]


def typed(program: Program, symbol: str, offset: int = 0) -> str:
    place = program.symbols.at((program.symbols.address(symbol) or 0) + offset)
    assert place is not None
    return program.type_of(place)


def test_a_field_has_its_type(tmp_path: Path) -> None:
    program = Program("program", compiled(tmp_path, C, "-g"))
    assert [typed(program, "stats", offset) for offset in (0, 20, 48, 56)] == ["int", "inner", "long int", "char"]
    assert [typed(program, symbol) for symbol in ("grid", "after", "calls.0")] == ["long int"] * 3
    cxx = Program("program", compiled(tmp_path, CXX, "-g"))
    assert [typed(cxx, "_ZN3app4Pool6queuesE", offset) for offset in (16, 24, 32)] == ["int", "atomic<long int>", "mutex"]
    bare = Program("program", compiled(tmp_path, C))
    assert typed(bare, "stats", 48) == ""


def test_an_instruction_has_its_line_and_the_calls_of_functions_inlined_there(tmp_path: Path) -> None:
    program = Program("program", compiled(tmp_path, C, "-g"))
    start = program.symbols.address("work")
    assert start is not None
    place = program.symbols.at(start)
    assert place is not None
    found = {(one.at, one.calls) for k in range(place.symbol.size) if (one := program.source(start + k))}
    line = {text.strip(): n for n, text in enumerate(C.split("\n"), 1)}
    assert (f"program.c:{line['stats[n].packets += v;']}", f"add called at program.c:{line['add(n, calls);']}") in found
    assert (f"program.c:{line['return grid[1][2][n];']}", "") in found


def test_classes_bases_templates_and_statics_of_cxx_have_their_names(tmp_path: Path) -> None:
    program = Program("program", compiled(tmp_path, CXX, "-g"))
    queues = [named(program, "_ZN3app4Pool6queuesE", offset) for offset in (0, 8, 16, 20, 24, 32, 72 + 16)]
    assert queues == [f"app::Pool::queues[{n}].{name}" for n, name in (
        (0, "_vptr"), (0, "users"), (0, "head"), (0, "tail"), (0, "size"), (0, "lock"), (1, "head"))]
    assert named(program, "_ZN3app12_GLOBAL__N_16hiddenE", 4) == "app::(anonymous namespace)::hidden.b"
    assert named(program, "_ZZN3app4Pool4pushEiE5calls", 8) == "app::Pool::push(int)::calls[1]"
    assert named(program, "_ZN3app5QueueIiE5totalE") == "app::Queue<int>::total"
    assert named(program, "_ZN3app4Pool4pushEi") == "app::Pool::push"
    assert named(program, "_ZN3app5twiceIiEET_S1_") == "app::twice<int>"


def test_without_debug_information_a_byte_has_its_distance_from_the_symbol(tmp_path: Path) -> None:
    program = Program("program", compiled(tmp_path, C))
    assert (named(program, "stats", 0), named(program, "stats", 48)) == ("stats", "stats+0x30")
    assert program.source(program.symbols.address("work") or 0) is None and program.notes == []


def test_a_symbol_covers_nothing_beyond_its_size_or_its_section(tmp_path: Path) -> None:
    program = Program("program", compiled(tmp_path, C, "-static", "-no-pie"))
    file = elf.from_file(tmp_path / "program")
    end = next(address for address, _, _, name in file.symbols() if name == "_end")
    assert [program.symbols.at(end + distance) for distance in (0, 8, 0x154A3E0)] == [None] * 3
    assert named(program, "bare", 1) == "bare+0x1", "assembly gives no size"
    assert "stats" not in str(program.symbols.at((program.symbols.address("stats") or 0) + 8 * 64))


def test_a_large_array_has_its_name_up_to_its_end(tmp_path: Path) -> None:
    text = "struct cell { long a, b; } field[8 << 20]; int main(void) { return (int)field[9].b; }"
    program = Program("program", compiled(tmp_path, text, "-g"))
    assert named(program, "field", (5 << 24) + 8) == f"field[{5 << 20}].b"
    assert "field" not in str(named(program, "field", 16 * (8 << 20)))


@pytest.mark.parametrize("place", ["program.debug", ".debug/program.debug", "build ID"])
def test_split_debug_information_is_found_beside_the_program(tmp_path: Path, place: str) -> None:
    path = compiled(tmp_path, C, "-g", "-Wl,--build-id=0x0123456789")
    kept = tmp_path / (place if place != "build ID" else ".build-id/01/23456789.debug")
    kept.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", "program", str(kept)], cwd=tmp_path, check=True)
    link = [] if place == "build ID" else [f"--add-gnu-debuglink={kept}"]
    subprocess.run(["objcopy", "--strip-all", *link, "program"], cwd=tmp_path, check=True)
    assert named(Program("program", path), "stats", 48) == "stats[0].packets"


def test_the_split_file_of_another_build_is_not_taken(tmp_path: Path) -> None:
    path = compiled(tmp_path, C, "-g", "-Wl,--build-id=0x01")
    subprocess.run(["objcopy", "--only-keep-debug", "program", "program.debug"], cwd=tmp_path, check=True)
    compiled(tmp_path, C, "-Wl,--build-id=0x02")
    assert named(Program("program", path), "stats", 48) == "stats+0x30"


def test_damaged_debug_information_leaves_the_names_of_symbols_and_a_note(tmp_path: Path) -> None:
    path = compiled(tmp_path, C, "-g")
    whole, noise, noted = path.read_bytes(), random.Random(1), 0
    sections = [s for s in elf.from_file(path).sections if s.name.startswith(".debug_")]
    for _ in range(60):
        data = bytearray(whole)
        for section in sections:
            for _ in range(section.size // 10):
                data[section.offset + noise.randrange(section.size)] = noise.randrange(256)
        path.write_bytes(data)
        program = Program("program", path)
        assert str(named(program, "stats", 48)).startswith("stats")
        start = program.symbols.address("work") or 0
        for k in range(20):
            program.source(start + k)
        noted += len(program.notes)
        assert all(note.startswith(f"{path}: ") and "expected DWARF" in note for note in program.notes)
    assert noted > 10


@pytest.mark.skipif(not shutil.which("rustc"), reason="needs rustc")
def test_a_field_of_a_rust_tuple_is_written_as_in_rust(tmp_path: Path) -> None:
    (tmp_path / "program.rs").write_text("#[no_mangle] pub static mut PAIR: ([u64; 4], u32) = ([1, 2, 3, 4], 5);\n"
                                         "fn main() { unsafe { PAIR.0[2] += 1; std::process::exit(PAIR.0[2] as i32) } }\n")
    subprocess.run(["rustc", "-g", "-O", "program.rs"], cwd=tmp_path, check=True, capture_output=True)
    path = tmp_path / "program"
    fields = {named(Program("program", path), "PAIR", offset) for offset in range(0, 40, 8)}
    assert fields == {"PAIR.0[0]", "PAIR.0[1]", "PAIR.0[2]", "PAIR.0[3]", "PAIR.1"}


def test_a_relative_folder_of_the_compiler_is_in_the_path_once(tmp_path: Path) -> None:
    (tmp_path / "part").mkdir()
    path = compiled(tmp_path, C, "-g", f"-fdebug-prefix-map={tmp_path}=./part")
    found = Program("program", path).source(Program("program", path).symbols.address("work") or 0)
    assert found is not None and found.at.rpartition(":")[0] == "part/program.c"
