# SPDX-License-Identifier: BSD-3-Clause
"""How `protocol check` prints violations."""

from moscope.commands.protocol.check import violation_lines

FIRST = "core 2: load of 1 bytes\nlast transitions of line 0x40:\n  1 ns  Directory-0  S --GetM--> B_A"
OTHER = "core 0: load of 2 bytes\nlast transitions of line 0x80:\n  2 ns  Directory-0  S --GetS--> B_D"


def test_only_the_first_violation_is_printed_with_its_transitions() -> None:
    assert violation_lines([FIRST, OTHER, OTHER]) == [
        *FIRST.splitlines(), "core 0: load of 2 bytes", "core 0: load of 2 bytes",
        "(--json lists the last transitions of the other lines, too)"]
    assert violation_lines([FIRST]) == FIRST.splitlines() and not violation_lines([])


def test_violations_without_transitions_have_no_remark_about_them() -> None:
    assert violation_lines(["protocol error: stuck", "core 0: load of 2 bytes"]) == ["protocol error: stuck", "core 0: load of 2 bytes"]
