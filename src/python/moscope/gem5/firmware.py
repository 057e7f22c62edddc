# SPDX-License-Identifier: BSD-3-Clause
"""What firmware and a boot loader leave in memory on gem5's PC, which has fewer devices than the board (src/dev): the
ACPI tables that name processors, interrupts and nodes (ACPI 4.0, MADT, SRAT, SLIT), the memory map, and the place of
the initial file system (Linux x86 boot protocol). There is no FADT and no DSDT: gem5's devices have no power
management, so Linux disables ACPI after it has read these tables.

Sizes in bytes, addresses guest-physical."""

import struct
from dataclasses import dataclass
from typing import Any

from moscope.errors import UserError

USABLE, RESERVED = 1, 2
LOW_END, FIRST_MIB = 0x9FC00, 0x100000
# The devices of gem5's PC are between this address and 4 GiB.
HOLE, FOUR_GIB = 0xC0000000, 1 << 32
# The addresses of gem5's own pseudo-operations.
M5OPS, M5OPS_BYTES = 0xFFFF0000, 0x10000
TABLES = 0xE0000  # the beginning of the area that systems search for the tables; gem5 puts nothing else there
LOCAL_APIC, IO_APIC = 0xFEE00000, 0xFEC00000
TIMER_INPUT = 2
# Where gem5's loader puts the structure of the boot protocol, and those of its fields that gem5 leaves empty.
BOOT_PARAMETERS = 0x90200
LOADER_TYPE, UNDEFINED_LOADER, LOADED_HIGH = 0x210, 0xFF, 1
DISTANCE_SELF, DISTANCE_PER_HOP = 10, 6  # as in the board's tables (src/dev/firmware/firmware.hh)
PAGE = 4096


@dataclass(frozen=True)
class Processors:
    """`cores` processors with consecutive numbers, `per_node` on each node."""

    cores: int
    per_node: int

    @property
    def io_apic(self) -> int:
        """The identifier of the I/O APIC: the first one after those of the cores."""
        return self.cores


def around_hole(address_map: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The memory of the nodes at consecutive addresses. A node that would overlap the devices' addresses, and all nodes after it,
    are moved to 4 GiB and above."""
    placed: list[dict[str, Any]] = []
    at = 0
    for node in address_map:
        if at < FOUR_GIB and at + node["bytes"] > HOLE:
            at = FOUR_GIB
        placed.append({**node, "base": at})
        at += node["bytes"]
    if placed[0]["base"] != 0:
        raise UserError(f"--memory-per-node: {placed[0]['bytes'] >> 20} MiB: the first node lies below 3 GiB on gem5: "
                        "expected at most 2GiB")
    return placed


def memory_map(nodes: list[dict[str, Any]]) -> list[dict[str, int]]:
    """The parts of the map for the E820 interface: base, bytes and kind of each."""
    parts = [(0, LOW_END, USABLE), (LOW_END, FIRST_MIB, RESERVED)]
    parts += [(max(n["base"], FIRST_MIB), n["base"] + n["bytes"], USABLE) for n in nodes]
    parts.append((M5OPS, M5OPS + M5OPS_BYTES, RESERVED))
    return [{"base": base, "bytes": end - base, "kind": kind} for base, end, kind in parts]


def finished(signature: bytes, revision: int, body: bytes) -> bytes:
    """A table with its header and checksum."""
    table = bytearray(struct.pack("<4sIBB6s8sI4sI", signature, 36 + len(body), revision, 0, b"MOSCOP", b"MOSCOPE ", 1, b"MOSC", 1) + body)
    table[9] = -sum(table) & 0xFF
    return bytes(table)


def madt(processors: Processors) -> bytes:
    body = struct.pack("<II", LOCAL_APIC, 1)  # 1: the PC also has 8259s
    for n in range(processors.cores):
        body += struct.pack("<BBBBI", 0, 8, n, n, 1)
    body += struct.pack("<BBBBII", 1, 12, processors.io_apic, 0, IO_APIC, 0)
    body += struct.pack("<BBBBIH", 2, 10, 0, 0, TIMER_INPUT, 0)
    return finished(b"APIC", 3, body)


def srat(processors: Processors, nodes: list[dict[str, Any]]) -> bytes:
    body = struct.pack("<IQ", 1, 0)
    for n in range(processors.cores):
        body += struct.pack("<BBBBIB3sI", 0, 16, n // processors.per_node, n, 1, 0, b"", 0)
    for node in nodes:
        body += struct.pack("<BBIHQQIIQ", 1, 40, node["node"], 0, node["base"], node["bytes"], 0, 1, 0)
    return finished(b"SRAT", 3, body)


def slit(hops: list[list[int]]) -> bytes:
    return finished(b"SLIT", 1, struct.pack("<Q", len(hops)) + bytes(DISTANCE_SELF + DISTANCE_PER_HOP * h for row in hops for h in row))


def tables(processors: Processors, nodes: list[dict[str, Any]], hops: list[list[int]]) -> bytes:
    """The bytes to load at TABLES: the pointer that systems search for, the list of tables, and the tables."""
    rest, listed = b"", []
    pointer_bytes, list_bytes = 48, 36 + 3 * 8 + 4
    for table in (madt(processors), srat(processors, nodes), slit(hops)):
        listed.append(TABLES + pointer_bytes + list_bytes + len(rest))
        rest += table + bytes(-len(table) % 16)
    index = finished(b"XSDT", 1, struct.pack("<3Q", *listed))
    pointer = bytearray(struct.pack("<8sB6sBIIQB3x", b"RSD PTR ", 0, b"MOSCOP", 2, 0, 36, TABLES + pointer_bytes, 0))
    pointer[8] = -sum(pointer[:20]) & 0xFF
    pointer[32] = -sum(pointer) & 0xFF
    whole = bytes(pointer).ljust(pointer_bytes, b"\0") + index.ljust(list_bytes, b"\0") + rest
    if TABLES + len(whole) > FIRST_MIB - 0x10000:
        raise UserError(f"--cores: {processors.cores}: the firmware's tables do not fit below 960 KiB: expected fewer")
    return whole


def initrd_address(size: int, nodes: list[dict[str, Any]], kernel_end: int) -> int:
    """An address at the end of the first node, which the kernel does not use before it has read the initial file system."""
    at = (int(nodes[0]["bytes"]) - size) // PAGE * PAGE
    if at < kernel_end:
        raise UserError(f"--memory-per-node: {nodes[0]['bytes'] >> 20} MiB: kernel and initial file system do not fit into the first "
                        "node: expected 512MiB")
    return at


def loader_fields(initrd: int, size: int) -> bytes:
    """The bytes to load at BOOT_PARAMETERS + LOADER_TYPE: the kind of loader, its flags, and the place of the initial file
    system."""
    return struct.pack("<BBHIII", UNDEFINED_LOADER, LOADED_HIGH, 0, 0, initrd, size)
