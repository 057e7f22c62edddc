# SPDX-License-Identifier: BSD-3-Clause
"""From a type and an offset to a member's name and back."""

from contextlib import suppress

import pytest
import synthetic

from moscope.naming import btf


def blob() -> bytes:
    """A kernel's types in small: `entry` with a lockref (a union of a number and a structure), a name, an array, bit
    fields and an array without a bound at its end."""
    t = synthetic.Types()
    char, number, long = t.integer("char", 1), t.integer("unsigned int", 4), t.integer("unsigned long", 8)
    lock = t.structure("spinlock", 4, [("raw", number, 0)])
    spin = t.typedef("spinlock_t", lock)
    pair = t.structure("", 8, [("lock", spin, 0), ("count", number, 4)])
    lockref = t.structure("lockref", 8, [("whole", long, 0), ("", pair, 0)], union=True)
    node = t.structure("node", 16, [("next", t.pointer(char), 0), ("flags", number, 8)])
    flags = t.structure("flagged", 4, [("low", number, 0), ("high", number, 0)], bits={"low": 3, "high": 5})
    t.structure("entry", 104, [("d_lockref", t.const(lockref), 0), ("name", t.array(char, 24), 8), ("nodes", t.array(node, 3), 32),
                               ("bits", flags, 80), ("self", t.pointer(char), 88), ("slots", t.array(long, 0), 96)])
    t.enumeration("pageflags", {"PG_locked": 0, "PG_slab": 9})
    t.enumeration64("wide", {"top": 1 << 40})
    t.section(".data..percpu", {t.variable("runqueues", node): 0x1980})
    return t.blob()


@pytest.fixture
def types() -> btf.Btf:
    return btf.Btf(blob())


@pytest.mark.parametrize(("offset", "path", "rest"), [
    (0, "d_lockref.lock", 0), (3, "d_lockref.lock", 3), (4, "d_lockref.count", 0), (20, "name", 12), (32, "nodes[0].next", 0),
    (56, "nodes[1].flags", 0), (76, "nodes[2]", 12), (88, "self", 0), (96, "slots[0]", 0), (112, "slots[2]", 0), (86, "", 86)])
def test_an_offset_gives_the_member_that_covers_it(types: btf.Btf, offset: int, path: str, rest: int) -> None:
    field = types.field_at(types.named("entry"), offset)
    assert (field.path, field.rest) == (path, rest)


@pytest.mark.parametrize(("path", "offset"), [("d_lockref.count", 4), ("d_lockref.whole", 0), ("nodes[2].flags", 72), ("slots", 96)])
def test_a_path_gives_its_offset(types: btf.Btf, path: str, offset: int) -> None:
    assert types.find(types.named("struct entry"), path)[0] == offset


def test_the_fields_of_a_line_are_told_in_order(types: btf.Btf) -> None:
    assert types.fields_in(types.named("entry"), 0, 48) == ["d_lockref.lock", "d_lockref.count", "name", "nodes[0].next", "nodes[0].flags",
                                                           "nodes[0]"]


def test_bit_fields_enumerations_and_variables_are_read(types: btf.Btf) -> None:
    assert types.field_at(types.named("flagged"), 0).path == "low"
    assert types.enumeration("pageflags") == {"PG_locked": 0, "PG_slab": 9}
    assert types.enumeration("wide") == {"top": 1 << 40}
    assert types.enumeration("none") == {}
    assert types.title(types.variables["runqueues"]) == "node"


def test_what_is_not_there_is_refused(types: btf.Btf) -> None:
    for name, path in (("nothing", "x"), ("entry", "nothing"), ("entry", "name.x")):
        with pytest.raises(btf.NoType):
            types.find(types.named(name), path)


def test_a_damaged_section_is_an_empty_set_of_types() -> None:
    whole = synthetic.Types()
    whole.integer("int", 4)
    blob = whole.blob()
    assert btf.parse(blob)
    for bad in (b"", b"\0" * 40, blob[:20], blob[:26], blob[:24] + b"\xff" * 16):
        assert not btf.parse(bad)


def every_answer(types: btf.Btf) -> None:
    for name in ("entry", "flagged", "lockref"):
        number = types.named(name)
        for offset in range(0, 112, 4):
            types.title(types.field_at(number, offset).type)
        types.fields_in(number, 0, 104)
        types.find(number, "nodes[2].flags")
    types.enumeration("pageflags")
    types.enumeration("wide")
    types.placed()


def test_truncated_types_are_refused_at_once() -> None:
    whole = blob()
    every = btf.Btf(whole)
    assert every.placed() == {"runqueues": 0x1980}
    for end in range(1, len(whole)):
        with pytest.raises(btf.NoType):
            btf.Btf(whole[:end])
        assert not btf.parse(whole[:end])


def test_damaged_types_raise_only_the_error_for_a_missing_name() -> None:
    whole = blob()
    for at in range(len(whole)):
        for value in (1, 0xFF):
            with suppress(btf.Unreadable):
                every_answer(btf.Btf(whole[:at] + bytes([value]) + whole[at + 1:]))
