# SPDX-License-Identifier: BSD-3-Clause
"""Kernel memory that is mapped for a purpose: modules with their symbols, areas of vmalloc by the function that allocated them."""

import struct

from moscope.naming.btf import Unreadable
from moscope.naming.guest import Guest
from moscope.naming.symbols import SymbolTable

SYMBOL_BYTES = 24  # Elf64_Sym
MOST_SYMBOLS = 200_000
ALLOCATORS = {"alloc_thread_stack_node": "kernel stack", "dup_task_struct": "kernel stack", "copy_process": "kernel stack",
              "kernel_clone": "kernel stack", "fork_idle": "kernel stack", "irq_init_percpu_irqstack": "interrupt stack",
              "pcpu_create_chunk": "per-CPU chunk",
              "module_alloc": "module", "move_module": "module", "load_module": "module",
              "bpf_prog_alloc_no_stats": "BPF program", "pcpu_get_vm_areas": "per-CPU chunk", "ioremap": "device"}


class Mapped:
    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._modules: list[tuple[int, int, str, SymbolTable]] | None = None
        self._areas: list[tuple[int, int, str]] | None = None

    def module(self, address: int) -> tuple[str, str] | None:
        """(module, symbol with offset) for an address in a module."""
        if self._modules is None:
            self._modules = []
            try:
                for module in self._guest.list(self._guest.needed("modules"), "module", "list"):
                    self._add(module)
            except Unreadable:
                pass
        for start, size, name, symbols in self._modules:
            if 0 <= address - start < size:
                place = symbols.at(address)
                return name, str(place) if place else f"+{address - start:#x}"
        return None

    def _add(self, module: int) -> None:
        guest = self._guest
        name = guest.get_text(module, "module", "name")
        ranges = []
        try:
            ranges.append(tuple(guest.get(module, "module", f"core_layout.{m}") for m in ("base", "size")))
        except Unreadable:
            count = guest.types.array(guest.types.resolve(guest.types.find(guest.types.named("module"), "mem")[1]))[1]
            for i in range(count):
                ranges.append(tuple(guest.get(module, "module", f"mem[{i}].{m}") for m in ("base", "size")))
        try:
            symbols = SymbolTable(self._symbols(module))
        except Unreadable:
            symbols = SymbolTable([])
        assert self._modules is not None
        self._modules += [(base, size, name, symbols) for base, size in ranges if base and size]

    def _symbols(self, module: int) -> list[tuple[int, int, str, str]]:
        guest = self._guest
        table = guest.get(module, "module", "kallsyms")
        count = guest.get(table, "mod_kallsyms", "num_symtab")
        if count > MOST_SYMBOLS:
            raise Unreadable(f"{count} symbols")
        raw = guest.read(guest.get(table, "mod_kallsyms", "symtab"), count * SYMBOL_BYTES)
        text = guest.get(table, "mod_kallsyms", "strtab")
        rows = []
        for name, info, _, section, value, size in struct.iter_unpack("<IBBHQQ", raw):
            if section and value >> 63 and info & 15 in (0, 1, 2):
                label = guest.text(text + name)
                if label:
                    rows.append((value, size, "t" if info & 15 == 2 else "d", label))
        return rows

    def area(self, address: int) -> tuple[str, int] | None:
        """The purpose of the vmalloc area that contains an address, and the offset in the area."""
        for start, size, what in self.areas():
            if 0 <= address - start < size:
                return what, address - start
        return None

    def areas(self) -> list[tuple[int, int, str]]:
        """(start, bytes, purpose) of all areas; none if the kernel keeps them in another way."""
        if self._areas is None:
            try:
                self._areas = self._find_areas()
            except Unreadable:
                self._areas = []
        return self._areas

    def _find_areas(self) -> list[tuple[int, int, str]]:
        guest, out = self._guest, []
        for area in guest.list(guest.needed("vmap_area_list"), "vmap_area", "list"):
            vm = guest.get(area, "vmap_area", "vm")
            start = guest.get(area, "vmap_area", "va_start")
            if not vm or guest.get(vm, "vm_struct", "addr") != start:
                continue
            place = guest.place(guest.get(vm, "vm_struct", "caller"))
            caller = place.symbol.name if place else ""
            what = ALLOCATORS.get(caller) or (f"vmalloc of {caller}" if caller else "vmalloc")
            out.append((start, guest.get(vm, "vm_struct", "size"), what))
        return out
