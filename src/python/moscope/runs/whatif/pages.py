# SPDX-License-Identifier: BSD-3-Clause
"""The pages that a what-if run homes at another node: the pages of the recorded lines, and all other pages of the objects that
contain these lines. Programs place memory by page and by object, and most lines of a large table are not recorded."""

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from moscope.naming.guest import PAGE

Extent = Callable[[int, int], tuple[int, int] | None]


def moved(items: list[dict[str, Any]], extent: Extent) -> list[dict[str, Any]]:
    """The engine's input (board/otherwise.hh). An item with a virtual address represents its page and its object. A page moves to
    the node with most of the stall for its recorded lines; a page without recorded lines, to the node with most of the stall for
    the object. `extent` gives [first, end) of the object at (address, address space), or None if it is unknown."""
    paged = [one for one in items if "va" in one]
    of_page: dict[int, Counter[int]] = defaultdict(Counter)
    of_object: dict[tuple[int, int, int], Counter[int]] = defaultdict(Counter)
    known: dict[tuple[int, int], tuple[int, int] | None] = {}
    for one in paged:
        of_page[one["line"] & -PAGE][one["node"]] += one["stall"]
        at = one["va"] & -PAGE, one["address_space"]
        if at not in known:
            known[at] = extent(one["va"], one["address_space"])
        if (found := known[at]) is not None:
            of_object[one["address_space"], *found][one["node"]] += one["stall"]
    pages = [{"page": page, "node": _most(nodes)} for page, nodes in of_page.items()]
    objects = [{"address_space": space, "first": first, "end": end, "node": _most(nodes)}
               for (space, first, end), nodes in of_object.items()]
    return [one for one in items if "va" not in one] + pages + objects


def _most(nodes: Counter[int]) -> int:
    return max(nodes, key=lambda node: (nodes[node], -node))
