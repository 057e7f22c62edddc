# SPDX-License-Identifier: BSD-3-Clause
"""The type of memory that a call has returned, from the code behind the call and the debug information."""

import re
import subprocess
from pathlib import Path

import pytest

from moscope.naming.dwarf.results import NEAR, RAX, RBP, RSP, Kept, kept
from moscope.naming.user import Program

PAD = b"\xcc" * 80
SOURCE = """
#include <cstdlib>
struct Node { Node *next; long value; };
struct Owner { Node *first; long n; };
Owner *owner;
long *counters;
char *text;
template <class T> void used(T *by) { asm volatile("" :: "r"(by) : "memory"); }
int main(int argc, char **) {
    counters = (long *)calloc(argc, 64);
    owner = new Owner{};
    Node *local = (Node *)malloc(sizeof(Node) * 3);
    local[1].value = argc;
    text = (char *)malloc(argc);
    for (;;) { used(local); used(text); used(owner); }
}
"""
WANTED = {10: "long int", 11: "Owner", 12: "Node", 14: None}  # by source line


def test_a_store_to_a_variable_is_found_behind_other_instructions() -> None:
    # PXOR XMM0, XMM0; MOV [RIP + 0x100], RAX
    assert list(kept(b"\x66\x0f\xef\xc0\x48\x89\x05\x00\x01\x00\x00" + PAD, 0x1000)) == [
        Kept(0x1000, until=0x1000 + NEAR), Kept(0x100b, address=0x110b)]


def test_a_copy_of_the_result_is_followed() -> None:
    # MOV RBX, RAX; MOV [RBP - 0x20], RBX; MOV [RIP], RCX
    found = list(kept(b"\x48\x89\xc3\x48\x89\x5d\xe0\x48\x89\x0d\x00\x00\x00\x00" + PAD, 0))
    assert found == [Kept(0, until=NEAR), Kept(3, register=3), Kept(7, register=RBP, offset=-0x20)]


def test_a_field_of_what_a_register_points_to_is_found() -> None:
    assert list(kept(b"\x49\x89\x44\x0c\x08" + PAD, 0)) == [Kept(0, until=NEAR)], "an address with an index"
    assert list(kept(b"\x49\x89\x44\x24\x08" + PAD, 0)) == [Kept(0, until=NEAR), Kept(5, register=12, offset=8)]
    assert list(kept(b"\x49\x89\x45\x08" + PAD, 0)) == [Kept(0, until=NEAR), Kept(4, register=13, offset=8)]
    assert list(kept(b"\x48\x89\x03" + PAD, 0)) == [Kept(0, until=NEAR), Kept(3, register=3, offset=0)]
    assert next(kept(b"\x90\xe8" + PAD, 0)) == Kept(0, register=RAX, until=1), "a call changes it"


def test_a_store_on_the_stack_is_followed_up_to_a_change_of_the_register() -> None:
    # MOV RDI, RBX; MOV [RSP + 0x38], RAX
    assert list(kept(b"\x48\x89\xdf\x48\x89\x44\x24\x38" + PAD, 0)) == [Kept(0, until=NEAR), Kept(8, register=RSP, offset=0x38)]
    # MOV RAX, [RIP]; MOV [RSP + 0x38], RAX
    assert list(kept(b"\x48\x8b\x05\x00\x00\x00\x00\x48\x89\x44\x24\x38" + PAD, 0)) == [Kept(0, until=NEAR)]
    # MOV RBX, RAX; CALL +0x100; MOV [RIP], RAX; MOV [RIP], RBX
    found = list(kept(b"\x48\x89\xc3\xe8\x00\x01\x00\x00\x48\x89\x05\x00\x00\x00\x00\x48\x89\x1d\x00\x00\x00\x00" + PAD, 0))
    assert found == [Kept(0, until=3), Kept(3, register=3), Kept(22, address=22)], "another result"


@pytest.mark.parametrize("optimised", ["-O0", "-O1", "-O2"])
def test_the_result_has_the_type_of_the_pointer_that_it_is_assigned_to(optimised: str, tmp_path: Path) -> None:
    (tmp_path / "memory.cc").write_text(SOURCE)
    path = tmp_path / "memory"
    subprocess.run(["g++", "-g", optimised, "-o", path, tmp_path / "memory.cc"], check=True)
    program = Program("memory", path)
    found = {}
    for pc in calls(path):
        source = program.source(pc - 1)
        result = program.result(pc, "")
        if source:
            found[int(source.at.rpartition(":")[2])] = result and result.name
    assert found == WANTED
    named = program.result(program.symbols.address("main") or 0, "Node")
    assert named and named.size == 16 and named.field(24) == (1, ".value", "long int")


LIBRARY = """
#include <memory>
namespace app { struct Obj { long m[3]; long count; }; template <class T> struct Pair { T first, second; }; }
template <class T> void used(T &&by) { asm volatile("" :: "r"(&by) : "memory"); }
int main(int argc, char **) {
    auto *pairs = new app::Pair<long>[argc];
    auto shared = std::make_shared<app::Obj>();
    auto unique = std::make_unique<app::Obj>();
    auto several = std::make_unique<app::Pair<int>[]>(argc);
    used([&] { used(pairs); used(shared); used(unique); used(several); });
}
"""


def test_the_type_is_the_template_parameter_of_the_librarys_function_that_allocates(tmp_path: Path) -> None:
    (tmp_path / "library.cc").write_text(LIBRARY)
    path = tmp_path / "library"
    subprocess.run(["g++", "-g", "-O1", "-o", path, tmp_path / "library.cc"], check=True)
    program = Program("library", path)
    found = {}
    for pc in calls(path):
        result = program.made(pc - 1, 99 if program.source(pc - 1) else 0) or program.result(pc, "")
        if result:
            found[result.name] = [result.field(at)[1] for at in range(0, result.size, 8)][-1]
    assert found == {"Pair<long int>": ".second", "make_shared<Obj>": ".count", "Obj": ".count",
                     "Pair<int>": ".first"}


MERGED = """
#define INLINE static inline __attribute__((always_inline))
void *operator new(unsigned long);
struct Other { long n; };
struct Obj { long n; };
template <class T> struct __new_allocator {
    __attribute__((always_inline)) T *allocate(long n) { return (T *)operator new(n * sizeof(T)); }
};
template <class T> struct allocator : __new_allocator<T> {};
template <class A> struct allocator_traits;
template <class T> struct allocator_traits<allocator<T>> {
    typedef allocator<T> allocator_type;
    INLINE void *allocate(allocator_type &a, long n) { return ((__new_allocator<Other> &)a).allocate(n); }
};
int main(int argc, char **) { allocator<Obj> a; return *(int *)allocator_traits<allocator<Obj>>::allocate(a, argc); }
"""


def test_merged_allocators_give_the_type_of_the_outer_function(tmp_path: Path) -> None:
    (tmp_path / "merged.cc").write_text(MERGED)
    path = tmp_path / "merged"
    subprocess.run(["g++", "-g", "-O1", "-o", path, tmp_path / "merged.cc"], check=True)
    program = Program("merged", path)
    (made,) = (program.made(pc - 1, 99) for pc in calls(path))
    assert made and made.name == "Obj"


def calls(path: Path) -> list[int]:
    """The addresses behind the calls of allocators."""
    code = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"call .*<(?:_Zn[wa]m|malloc|calloc)(?:@plt)?>\n\s*([0-9a-f]+):", code)
    return [int(text, 16) for text in found]
