# SPDX-License-Identifier: BSD-3-Clause
"""The members of a page's description depend on the use of the page: for a page table or a slab, `struct page` has other members at
the same offsets (Linux, include/linux/mm_types.h and mm/slab.h).
"""

from dataclasses import dataclass

from moscope.naming.btf import Btf, Unreadable
from moscope.naming.guest import PAGE
from moscope.naming.slab import Description, Pages

TABLE_MEMBERS = ("ptl", "pt_mm", "pmd_huge_pte")


@dataclass(frozen=True)
class Overlay:
    """A member in a page's description. `structure`: the structure that it belongs to. `path`: the member; empty for the member
    that the structure has at the offset."""

    structure: str
    path: str = ""


def member(types: Btf, pages: Pages, physical: int, offset: int) -> Overlay:
    """The member at an offset in the description of a page, according to the page's present use."""
    try:
        page = pages.now(physical)
    except Unreadable:
        return Overlay("page")
    if pages.is_table(page):
        return _of_table(types, offset)
    return _of_slab(types, offset) if _is_head_of_slab(pages, page, physical) else Overlay("page", _of_other(types, offset))


def _is_head_of_slab(pages: Pages, page: Description, physical: int) -> bool:
    return pages.is_slab(page) and page.first == physical // PAGE  # other pages of a slab only have the link to this one


def _of_table(types: Btf, offset: int) -> Overlay:
    if "ptdesc" in types:  # from 6.6 on
        return Overlay("ptdesc") if offset < types.size(types.named("ptdesc")) else Overlay("page")
    for name in TABLE_MEMBERS:
        try:
            first, kind = types.find(types.named("page"), name)
        except Unreadable:
            continue
        if first <= offset < first + types.size(kind):
            return Overlay("page", name)
    return Overlay("page")


def _of_slab(types: Btf, offset: int) -> Overlay:
    if "slab" not in types or offset >= types.size(types.named("slab")):
        return Overlay("page")
    path = types.field_at(types.named("slab"), offset).path
    return Overlay("page" if not path or path.startswith("__") else "slab")  # `__page_flags` and similar members belong to the page


def _of_other(types: Btf, offset: int) -> str:
    """A common name for two members that overlap and are accessed in pages of any use."""
    path = types.field_at(types.named("page"), offset).path
    return "lru/compound_head" if path.startswith("lru") else ""
