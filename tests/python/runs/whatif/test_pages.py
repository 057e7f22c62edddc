# SPDX-License-Identifier: BSD-3-Clause
"""Which pages `what-if --as local` homes elsewhere."""

from typing import Any

from moscope.naming.guest import PAGE
from moscope.runs.whatif import pages

SPACE, TABLE = 0x5000, (0x7000_0000, 0x7000_0000 + 16 * PAGE)


def line(page: int, number: int, node: int, stall: int) -> dict[str, Any]:
    return {"line": 0x100 * PAGE + page * PAGE + 64 * number, "va": TABLE[0] + page * PAGE + 64 * number, "address_space": SPACE,
            "node": node, "stall": stall}


def table(va: int, space: int) -> tuple[int, int] | None:
    return TABLE if space == SPACE and TABLE[0] <= va < TABLE[1] else None


def test_a_page_moves_to_the_chip_with_most_of_its_stall_and_the_rest_to_that_with_most_of_all() -> None:
    found = pages.moved([line(0, 1, 2, 10), line(0, 2, 3, 6), line(0, 3, 3, 6), line(5, 0, 2, 9)], table)
    assert found == [{"page": 0x100 * PAGE, "node": 3}, {"page": 0x105 * PAGE, "node": 2},
                     {"address_space": SPACE, "first": TABLE[0], "end": TABLE[1], "node": 2}]


def test_pages_come_before_objects_and_other_lines_stay_as_they_are() -> None:
    kernel = {"line": 64, "groups": [0] * 64, "node": 1}
    found = pages.moved([line(1, 0, 4, 1), kernel], table)
    assert [sorted(one)[0] for one in found] == ["groups", "node", "address_space"]
    assert found[0] is kernel and found[1] == {"page": 0x101 * PAGE, "node": 4}


def test_a_page_of_no_known_object_moves_alone() -> None:
    assert pages.moved([line(1, 0, 4, 1)], lambda va, space: None) == [{"page": 0x101 * PAGE, "node": 4}]
