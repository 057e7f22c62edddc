# SPDX-License-Identifier: BSD-3-Clause
"""The grammar of trace scripts: what is accepted, and that each mistake is pointed at."""

import pytest

from moscope.config import load_machine
from moscope.errors import UserError
from moscope.traces.script import parse

SMALL = load_machine("small")
NODE = SMALL.memory_per_node.bytes


def test_semicolons_separate_steps_and_bars_accesses_of_a_step() -> None:
    steps = parse("c0 ld A@n0; c1 st A@n0 | c2 ld B@n1; c3 rmw 0x40", SMALL)
    assert [[a.text for a in step] for step in steps] == [["c0 ld A@n0"], ["c1 st A@n0", "c2 ld B@n1"], ["c3 rmw 0x40"]]


def test_spaces_and_newlines_do_not_matter() -> None:
    assert parse("c0 ld A@n0;c1 st A@n0|c2 ld B@n1", SMALL) == parse(" c0  ld\tA@n0 ;\n c1 st A@n0 | c2 ld B@n1 ; ", SMALL)


def test_a_letter_is_a_line_of_its_own_in_the_memory_of_its_node() -> None:
    a0, b0, a1 = (parse(f"c0 ld {name}", SMALL)[0][0].address for name in ("A@n0", "B@n0", "A@n1"))
    assert a0 // NODE == b0 // NODE == 0 and a1 // NODE == 1
    assert len({a // 64 for a in (a0, b0, a1)}) == 3
    assert parse("c5 st A@n0", SMALL)[0][0].address == a0


def test_numbers_may_be_decimal_or_hexadecimal() -> None:
    assert parse("c0 ld 256", SMALL)[0][0].address == parse("c0 ld 0x100", SMALL)[0][0].address == 256


@pytest.mark.parametrize("script, wrong, pointed_at", [
    ("c0 lod A@n0", 'no operation called "lod": expected one of ld, st, if, rmw, flush, nt, ldu', "lod"),
    ("c0 ld A@n9", "the machine has no node 9", "A@n9"),
    ("c0 ld A@n99999999999999", "the machine has no node", "A@n99999999999999"),
    ("c99 ld A@n0", "the machine has no core 99", "c99"),
    ("x0 ld A@n0", '"x0" is not a core', "x0"),
    ("c0 ld A", "line A without a node", "A"),
    ("c0 ld A@0", '"A@0" is not an address', "A@0"),
    ("c0 ld -5", '"-5" is not an address', "-5"),
    ("c0 ld 0xffffffffffff", "no memory at", "0xffffffffffff"),
    ("c0 ld A@n0 c1", '"c1" after a complete access', "c1"),
    ("c0 ld A@n0 | | c1 ld A@n0", "an access is missing", "| c1"),
    ("c0 ld A@n0;; c1 ld A@n0", "an access is missing", "; c1"),
    ("; c1 ld A@n0", "an access is missing", ";"),
])
def test_a_mistake_is_named_and_pointed_at(script: str, wrong: str, pointed_at: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(script, SMALL)
    message, shown, caret = str(caught.value).split("\n")
    assert message.startswith("trace script: ") and wrong in message
    assert shown[caret.index("^"):].startswith(pointed_at)


@pytest.mark.parametrize("script", ["", "  ", "c0", "c0 ld", "c0 ld A@n0 |"])
def test_an_unfinished_script_is_pointed_at_behind_its_end(script: str) -> None:
    with pytest.raises(UserError) as caught:
        parse(script, SMALL)
    _, shown, caret = str(caught.value).split("\n")
    assert caret.index("^") == len(shown.rstrip()) or not script.strip()


def test_the_caret_finds_its_line_in_a_script_of_several_lines() -> None:
    with pytest.raises(UserError) as caught:
        parse("c0 ld A@n0;\nc1 sd A@n0", SMALL)
    assert str(caught.value).split("\n")[1:] == ["  c1 sd A@n0", "     ^^"]
