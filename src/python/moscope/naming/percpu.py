# SPDX-License-Identifier: BSD-3-Clause
"""Per-CPU variables (Linux, mm/percpu.c): each core has a unit in every chunk; the first chunk begins with the
variables that have symbols. The rest of it and all other chunks are allocated at run time. Their owners are found
from the structures that hold the pointers: slab caches, mounts, counters, zones.
"""

from bisect import bisect_right
from dataclasses import dataclass

from moscope.naming.btf import Unreadable
from moscope.naming.guest import PAGE, Guest

MOST_CORES = 8192
MOST_SLOTS = 64


@dataclass(frozen=True)
class PerCpuPlace:
    """`pointer` is the address as the kernel keeps it in `__percpu` pointers: the offset into a core's area."""

    cpu: int
    pointer: int


@dataclass(frozen=True)
class Owner:
    """A run-time per-CPU object: what to call it, the number of its type (0: not known), its size."""

    name: str
    type: int
    size: int


class PerCpu:
    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        cores = guest.number(guest.needed("nr_cpu_ids"), 4)
        if not 0 < cores <= MOST_CORES:
            raise Unreadable(f"{cores} cores")
        self.offsets = guest.numbers(guest.needed("__per_cpu_offset"), cores)
        self.unit = guest.number(guest.needed("pcpu_unit_size"), 4)
        self.static = guest.image.per_cpu.address("__per_cpu_end") or 0
        self._starts = sorted((o, cpu) for cpu, o in enumerate(self.offsets))
        self._first_size = self._used_of_first()
        self._owners: dict[int, Owner] | None = None
        self._chunks = self._find_chunks()

    def _find_chunks(self) -> list[tuple[int, int]]:
        """(unit's first address, cpu) of all chunks but the first, in order."""
        guest = self._guest
        try:
            first = guest.number(guest.needed("pcpu_first_chunk"))
            units = guest.numbers(guest.number(guest.needed("pcpu_unit_offsets")), len(self.offsets))
            slots = guest.number(guest.needed("pcpu_nr_slots"), 4)
            lists = guest.number(guest.needed("pcpu_chunk_lists"))
            out = []
            for slot in range(min(slots, MOST_SLOTS)):
                for chunk in guest.list(lists + 16 * slot, "pcpu_chunk", "list"):
                    if chunk != first:
                        base = guest.get(chunk, "pcpu_chunk", "base_addr")
                        out += [(base + unit, cpu) for cpu, unit in enumerate(units)]
            return sorted(out)
        except Unreadable:
            return []

    def _used_of_first(self) -> int:
        """The size of a unit in the first chunk. At start-up the kernel frees the rest of the unit, which is then used for other
        data (pcpu_embed_first_chunk)."""
        guest = self._guest
        try:
            chunk = guest.number(guest.needed("pcpu_first_chunk"))
            end = guest.get(chunk, "pcpu_chunk", "base_addr") + PAGE * guest.get(chunk, "pcpu_chunk", "nr_pages")
            used = end - guest.get(chunk, "pcpu_chunk", "end_offset") - guest.number(guest.needed("pcpu_base_addr"))
        except Unreadable:
            return self.unit
        return used if self.static <= used <= self.unit else self.unit

    def at(self, address: int) -> PerCpuPlace | None:
        """The core and the place within its per-CPU area of an address."""
        for starts, size in ((self._starts, self._first_size), (self._chunks, self.unit)):
            i = bisect_right(starts, (address, MOST_CORES)) - 1
            if i >= 0 and address - starts[i][0] < size:
                cpu = starts[i][1]
                return PerCpuPlace(cpu, (address - self.offsets[cpu]) % (1 << 64))
        return None

    def owner(self, pointer: int) -> tuple[Owner, int] | None:
        """The owner of a run-time per-CPU address, and the offset within the object."""
        if self._owners is None:
            self._owners = {}
            for find in (self._caches, self._counters, self._zones, self._mounts):
                try:
                    find(self._owners)
                except Unreadable:
                    continue
            self._sorted = sorted(self._owners)
        i = bisect_right(self._sorted, pointer) - 1
        if i < 0:
            return None
        owner = self._owners[self._sorted[i]]
        rest = pointer - self._sorted[i]
        return (owner, rest) if rest < owner.size else None

    def _add(self, owners: dict[int, Owner], pointer: int, name: str, structure: str, size: int = 0) -> None:
        if pointer:
            types = self._guest.types
            number = types.named(structure)
            owners[pointer] = Owner(name, number, size or types.size(number))

    def _caches(self, owners: dict[int, Owner]) -> None:
        guest = self._guest
        for slab in guest.list(guest.needed("slab_caches"), "kmem_cache", "list"):
            name = guest.text(guest.get(slab, "kmem_cache", "name"))
            self._add(owners, guest.get(slab, "kmem_cache", "cpu_slab"), f"cpu_slab of {name}", "kmem_cache_cpu")

    def _counters(self, owners: dict[int, Owner]) -> None:
        guest = self._guest
        for counter in guest.list(guest.needed("percpu_counters"), "percpu_counter", "list"):
            place = guest.place(counter)
            name = str(place) if place else "percpu_counter"
            self._add(owners, guest.get(counter, "percpu_counter", "counters"), f"counters of {name}", "int", 4)

    def _zones(self, owners: dict[int, Owner]) -> None:
        guest = self._guest
        nodes = guest.needed("node_data")
        for node in range(64):
            data = guest.number(nodes + 8 * node)
            if not data:
                break
            for zone in range(guest.get(data, "pglist_data", "nr_zones")):
                at = data + guest.offset("pglist_data", f"node_zones[{zone}]")
                name = guest.text(guest.get(at, "zone", "name"))
                self._add(owners, guest.get(at, "zone", "per_cpu_pageset"), f"per_cpu_pageset of node {node} {name}",
                          "per_cpu_pages")
                self._add(owners, guest.get(at, "zone", "per_cpu_zonestats"), f"per_cpu_zonestats of node {node} {name}",
                          "per_cpu_zonestat")
            self._add(owners, guest.get(data, "pglist_data", "per_cpu_nodestats"), f"per_cpu_nodestats of node {node}",
                      "per_cpu_nodestat")

    def _mounts(self, owners: dict[int, Owner]) -> None:
        guest = self._guest
        blocks = guest.needed("super_blocks")
        for block in guest.list(blocks, "super_block", "s_list"):
            kind = guest.text(guest.get(guest.get(block, "super_block", "s_type"), "file_system_type", "name"))
            head = block + guest.offset("super_block", "s_mounts")
            for mount in guest.list(head, "mount", "mnt_instance"):
                self._add(owners, guest.get(mount, "mount", "mnt_pcp"), f"mnt_pcp of a {kind} mount", "mnt_pcp")
