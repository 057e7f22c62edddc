# SPDX-License-Identifier: BSD-3-Clause
"""The memory of a running Linux guest, read by means of the kernel's own names: where the image was loaded, how
kernel addresses translate, and members of structures by their path (types from the image's BTF).

Layout of the address space: Linux, Documentation/arch/x86/x86_64/mm.rst. The bases that address-space
randomisation moves (CONFIG_RANDOMIZE_BASE, CONFIG_RANDOMIZE_MEMORY) are read from the kernel's variables.
"""

import struct
from collections.abc import Iterator
from typing import Protocol

from moscope.guest.addresses import IMAGE_MAP
from moscope.naming.btf import Btf, Unreadable, parse
from moscope.naming.image import KernelImage
from moscope.naming.symbols import Place

IMAGE_TOP = 0xFFFFFFFFC0000000  # where modules begin
MODULES_TOP = 0xFFFFFFFFFF000000
DEFAULT_BASES = {"page_offset_base": 0xFFFF888000000000, "vmalloc_base": 0xFFFFC90000000000, "vmemmap_base": 0xFFFFEA0000000000}
VMALLOC_BYTES = 32 << 40
STEP = 2 << 20  # the image's place is a multiple of CONFIG_PHYSICAL_ALIGN
PAGE = 4096
LONGEST_LIST = 20_000
LARGEST = 16 << 20  # limit for one read; only a damaged structure asks for more


class Memory(Protocol):
    """The part of a system that a Guest uses; `_engine.System` has it."""

    def read_physical(self, address: int, size: int) -> bytes: ...

    def read_virtual(self, cr3: int, address: int, size: int) -> bytes: ...

    def physical_of(self, line: int) -> int: ...


class Guest:
    """A guest's kernel. `slide` is the distance by which the image was moved from its link address; `found` is false while no
    kernel runs yet."""

    def __init__(self, memory: Memory, image: KernelImage) -> None:
        self.memory = memory
        self.image = image
        self.types: Btf = parse(image.btf)
        self.found = False
        self.slide = 0
        self.page_table = 0
        self.physical_base = 0
        self.bases = dict(DEFAULT_BASES)
        self.locate()

    def locate(self) -> bool:
        """Finds the image in memory by its banner. If the kernel does not run yet, call it again later."""
        banner, at = self.image.banner, self.image.banner_at
        if self.found or not banner:
            return self.found
        for slide in range(0, IMAGE_TOP - IMAGE_MAP, STEP):
            if self.memory.read_virtual(0, at + slide, len(banner)) == banner:
                self.slide = slide
                break
        else:
            return False
        try:
            self.physical_base = self._early("phys_base", 0)
            self.bases = {name: self._early(name, usual) for name, usual in DEFAULT_BASES.items()}
            table = self.symbol("init_top_pgt") or self.symbol("init_level4_pgt") or self.symbol("swapper_pg_dir")
            self.page_table = self.physical(table) if table else 0
        except Unreadable:
            return False
        self.found = True
        return True

    def _early(self, name: str, usual: int) -> int:
        address = self.symbol(name)
        if address is None:
            return usual
        raw = self.memory.read_virtual(0, address, 8)
        if len(raw) < 8:
            raise Unreadable(f"{address:#x}")
        return int.from_bytes(raw, "little")

    # --- symbols ----------------------------------------------------------------------------------------------------

    def symbol(self, name: str) -> int | None:
        """The guest address of a variable or function of the kernel; None if there is none with this name."""
        address = self.image.symbols.address(name)
        return None if address is None else address + self.slide

    def needed(self, name: str) -> int:
        address = self.symbol(name)
        if address is None:
            raise Unreadable(f"the kernel has no symbol {name}")
        return address

    def place(self, address: int) -> Place | None:
        """The symbol of the image that contains a guest address."""
        return self.image.symbols.at(address - self.slide) if IMAGE_MAP <= address < IMAGE_TOP else None

    # --- addresses --------------------------------------------------------------------------------------------------

    def direct(self, physical: int) -> int:
        """The address of a physical byte in the kernel's direct map."""
        return self.bases["page_offset_base"] + physical

    def physical(self, address: int) -> int:
        """The physical address of an address in the image's map or the direct map."""
        if IMAGE_MAP <= address < IMAGE_TOP:
            return address - IMAGE_MAP + self.physical_base
        base = self.bases["page_offset_base"]
        if base <= address < self.bases["vmalloc_base"]:
            return address - base
        raise Unreadable(f"{address:#x} is not in the direct map")

    def image_address(self, physical: int) -> int | None:
        """The address of a physical byte in the kernel's image, if it is part of the image."""
        address = physical - self.physical_base + IMAGE_MAP
        first, end = self.symbol("_text") or 0, self.symbol("_end") or 0
        return address if first <= address < end else None

    def in_vmalloc(self, address: int) -> bool:
        return 0 <= address - self.bases["vmalloc_base"] < VMALLOC_BYTES or IMAGE_TOP <= address < MODULES_TOP

    # --- memory -----------------------------------------------------------------------------------------------------

    def read(self, address: int, size: int) -> bytes:
        """Bytes at a kernel address; raises Unreadable unless all of them can be read."""
        if not 0 <= address <= (1 << 64) - size or size > LARGEST:
            raise Unreadable(f"{address:#x}, {size} bytes")
        try:
            raw = self.memory.read_physical(self.physical(address), size)
        except Unreadable:
            raw = self.memory.read_virtual(self.page_table, address, size)
        if len(raw) < size:
            raise Unreadable(f"{address:#x}")
        return raw

    def number(self, address: int, size: int = 8) -> int:
        return int.from_bytes(self.read(address, size), "little")

    def text(self, address: int, longest: int = 256) -> str:
        """A zero-terminated text."""
        if not address:
            return ""
        room = PAGE - address % PAGE
        raw = self.read(address, min(longest, room))
        if b"\0" not in raw and room < longest:
            raw += self.read(address + room, longest - room)
        return raw.split(b"\0")[0].decode(errors="replace")

    # --- structures -------------------------------------------------------------------------------------------------

    def offset(self, structure: str, path: str) -> int:
        return self._found(structure, path)[0]

    def member(self, structure: str, path: str) -> tuple[int, int]:
        """(offset, size) of a member."""
        offset, kind = self._found(structure, path)
        return offset, self.types.size(kind) or 8

    def _found(self, structure: str, path: str) -> tuple[int, int]:
        return self.types.find(self.types.named(structure), path)

    def size(self, structure: str) -> int:
        return self.types.size(self.types.named(structure))

    def get(self, address: int, structure: str, path: str) -> int:
        """A member's value as an unsigned number."""
        offset, size = self.member(structure, path)
        return self.number(address + offset, size)

    def get_text(self, address: int, structure: str, path: str) -> str:
        """A member that is an array of characters."""
        offset, kind = self._found(structure, path)
        return self.text(address + offset, self.types.size(kind))

    def list(self, head: int, structure: str, link: str) -> Iterator[int]:
        """The structures on a list whose separate head (not part of one of the structures) is at `head`."""
        offset = self.offset(structure, link)
        at = self.number(head)
        for _ in range(LONGEST_LIST):
            if at == head or at == 0:
                return
            yield at - offset
            at = self.number(at)
        raise Unreadable(f"the list at {head:#x} does not end")

    def numbers(self, address: int, count: int, size: int = 8) -> tuple[int, ...]:
        return struct.unpack(f"<{count}{'Q' if size == 8 else 'I'}", self.read(address, count * size))
