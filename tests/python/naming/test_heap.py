# SPDX-License-Identifier: BSD-3-Clause
"""Names of heap memory by where it was allocated."""

from collections.abc import Callable

import numpy as np
from elftools.dwarf.die import DIE

from moscope.naming.debug import Debug, Result
from moscope.naming.dwarf.sources import Source
from moscope.naming.heap import PIECE, Code, Heap
from moscope.naming.unwind import chains

SPACE = 0x5000
DEBUG, DIE_OF_TYPE = Debug.__new__(Debug), DIE.__new__(DIE)
NEW_LINE = "/usr/include/c++/12/bits/new_allocator.h:137"


def heap(chain: list[int], sources: dict[int, Source], function: str = "calloc", pieces: list[tuple[int, ...]] | None = None,
         made: Callable[[int, int, int], Result | None] | None = None, result: Result | None = None) -> Heap:
    site = np.zeros(1, chains.RECORD)
    site["address_space"] = SPACE
    packed = np.array(pieces or [(SPACE, 0x1000, 0x100, 0, 0)], PIECE).tobytes(), site.tobytes()
    code = Code(lambda at, space: sources.get(at), lambda at, space: f"{'prog' if at < 100 else 'libc.so.6'}:f{at}", lambda space: "prog",
                lambda sample: chain, lambda at, space, name: result if not name else None, made or (lambda at, space, depth: None))
    return Heap(packed, [function], code)


def known(name: str) -> Result:
    return Result(DEBUG, DIE_OF_TYPE, name, 16)


def test_an_address_belongs_to_the_allocation_that_covers_it() -> None:
    found = heap([], {}, pieces=[(SPACE, 0x1000, 0x100, 0, 0), (SPACE, 0x1100, 0x10, 0, 1), (0x9000, 0x1000, 0x10, 0, 0)])
    assert found.at(0xfff, SPACE) is None and found.at(0x1110, SPACE) is None and found.at(0x1000, 0x7000) is None
    first, second = found.at(0x10ff, SPACE | 0xfff), found.at(0x1100, SPACE)
    assert first and (first.start, first.size, first.freed) == (0x1000, 0x100, False)
    assert second and (second.start, second.freed) == (0x1100, True)


def test_a_range_without_allocations_is_recognized() -> None:
    found = heap([], {}, pieces=[(SPACE, 0x1000, 0x100, 0, 0), (SPACE, 0x1100, 0x10, 0, 1)])
    assert found.none_in(0, 0x1000, SPACE) and found.none_in(0x1110, 0x2000, SPACE) and found.none_in(0, 0x2000, 0x9000)
    assert not any(found.none_in(first, end, SPACE) for first, end in ((0, 0x1001), (0x10ff, 0x1100), (0x110f, 0x2000), (0, 0x2000)))


def test_the_site_is_the_line_that_called_the_allocator() -> None:
    assert heap([1], {1: Source("src/stats.c:51")}).title(0)[0] == "calloc at stats.c:51"


def test_the_site_is_the_programs_own_line_where_headers_of_a_library_were_inlined() -> None:
    inlined = Source(NEW_LINE, (f"allocate called at {NEW_LINE}", "Pool called at pool.cc:12"))
    assert heap([1], {1: inlined}, "operator new").title(0)[0] == "new at pool.cc:12"


def test_the_site_is_the_callers_line_where_a_library_function_allocates() -> None:
    assert heap([200, 1, 2], {1: Source(NEW_LINE), 2: Source("main.cc:9")}, "operator new[]").title(0)[0] == "new[] at main.cc:9"


def test_the_site_is_the_programs_own_line_where_rusts_libraries_allocate() -> None:
    library = Source("/rustc/90b35a62/library/alloc/src/alloc.rs:95", ("with_capacity called at library/alloc/src/vec/mod.rs:5",))
    crate = Source("/root/.cargo/registry/src/index/bytes-1.0/src/lib.rs:9")
    assert heap([1, 2, 3], {1: library, 2: crate, 3: Source("src/main.rs:7")}, "malloc").title(0)[0] == "malloc at main.rs:7"


def test_the_site_is_a_function_if_no_line_belongs_to_the_program() -> None:
    assert heap([200, 7], {7: Source("main.c:3")}).title(0)[0] == "calloc at main.c:3"
    assert heap([200], {}).title(0)[0] == "calloc in libc.so.6:f200"


def test_the_type_is_that_for_which_a_function_of_a_library_allocates() -> None:
    asked = []

    def made(at: int, space: int, depth: int) -> Result | None:
        asked.append((at, depth))
        return known("Obj") if (at, depth) == (1, 2) else None

    inlined = Source(NEW_LINE, (f"allocate called at {NEW_LINE}", "make_unique<Obj> called at pool.cc:12", "work called at pool.cc:30"))
    found = heap([200, 1, 2], {1: inlined, 2: Source("main.cc:9")}, "operator new", made=made)
    assert found.title(0) == ("new at pool.cc:12", known("Obj"))
    assert asked == [(1, 2)], "functions of the program are not asked"
    asked.clear()
    own = heap([1], {1: Source("main.cc:9")}, made=made, result=known("Node"))
    assert own.title(0) == ("calloc at main.cc:9", known("Node")) and not asked


def test_the_stack_of_a_thread_does_not_have_the_type_of_the_container_that_holds_the_thread() -> None:
    made_vector = Source("/usr/include/c++/12/bits/new_allocator.h:175", (
        "std::__new_allocator<std::thread>::construct<std::thread> called at /usr/include/c++/12/bits/alloc_traits.h:516",
        "std::vector<std::thread, std::allocator<std::thread> >::emplace_back<int> called at cx.cc:53"))
    found = {function: heap([200, 201, 1], {1: made_vector}, function, made=lambda *_: known("thread")).title(0)
             for function in ("mmap", "operator new")}
    assert found == {"mmap": ("mmap at cx.cc:53", None), "operator new": ("new at cx.cc:53", known("thread"))}
    own = heap([1], {1: Source("main.cc:9")}, "mmap", result=known("Node"))
    assert own.title(0) == ("mmap at main.cc:9", known("Node")), "the program maps memory for itself"


def test_the_allocator_of_a_counter_of_references_is_no_element() -> None:
    shared = Source(NEW_LINE, ("std::__allocate_guarded<std::allocator<void>> called at pool.cc:12",))
    assert heap([1], {1: shared}, result=known("Node")).title(0)[1] == known("Node")


def test_a_mapping_is_distinguished_from_an_allocation() -> None:
    for function, mapping in (("mmap", True), ("mmap64", True), ("malloc", False)):
        found = heap([1], {}, function)
        piece = found.at(0x1000, SPACE)
        assert piece and found.mapping(piece) == mapping


def test_without_source_lines_the_site_is_the_programs_function() -> None:
    assert heap([200, 7, 8], {}, "malloc").title(0)[0] == "malloc in f7"
    assert heap([200], {}, "malloc").title(0)[0] == "malloc in libc.so.6:f200"
