# SPDX-License-Identifier: BSD-3-Clause
"""What a kernel on gem5 finds in memory: tables by their checksums and fields, the map of memory, the loader's fields."""

import struct

import pytest

from moscope.errors import UserError
from moscope.gem5 import firmware
from moscope.gem5.firmware import FOUR_GIB, HOLE, TABLES, Processors

MIB = 1 << 20


def nodes(count: int, each: int) -> list[dict[str, int]]:
    return firmware.around_hole([{"base": n * each, "bytes": each, "node": n} for n in range(count)])


def found(whole: bytes) -> dict[bytes, bytes]:
    """The tables as a system finds them: from the pointer by the list."""
    assert whole[:8] == b"RSD PTR " and sum(whole[:20]) & 0xFF == 0 and sum(whole[:36]) & 0xFF == 0
    (index,) = struct.unpack_from("<Q", whole, 24)
    listed = table_at(whole, index)
    assert listed[:4] == b"XSDT"
    every = [table_at(whole, at) for (at,) in struct.iter_unpack("<Q", listed[36:])]
    return {table[:4]: table for table in every}


def table_at(whole: bytes, address: int) -> bytes:
    at = address - TABLES
    table = whole[at: at + struct.unpack_from("<I", whole, at + 4)[0]]
    assert sum(table) & 0xFF == 0
    return table


def entries(table: bytes, header: int) -> list[bytes]:
    """Parts that begin with their kind and length."""
    parts, at = [], header
    while at < len(table):
        parts.append(table[at: at + table[at + 1]])
        at += table[at + 1]
    return parts


def test_tables_name_every_core_with_its_node_and_the_distances() -> None:
    hops = [[0, 1], [1, 0]]
    tables = found(firmware.tables(Processors(4, 3), nodes(2, 64 * MIB), hops))
    cores = [part for part in entries(tables[b"APIC"], 44) if part[0] == 0]
    assert [(part[3], part[4]) for part in cores] == [(0, 1), (1, 1), (2, 1), (3, 1)]
    parts = entries(tables[b"SRAT"], 48)
    assert [(part[3], part[2]) for part in parts if part[0] == 0] == [(0, 0), (1, 0), (2, 0), (3, 1)]
    assert [struct.unpack_from("<I6xQ", part, 2)[0] for part in parts if part[0] == 1] == [0, 1]
    assert [struct.unpack_from("<QQ", part, 8) for part in parts if part[0] == 1] == [(0, 64 * MIB), (64 * MIB, 64 * MIB)]
    assert list(tables[b"SLIT"][44:]) == [10, 16, 16, 10] and tables[b"SLIT"][36] == 2


def test_the_timer_comes_to_the_input_that_gem5_has_it_wired_to() -> None:
    tables = found(firmware.tables(Processors(1, 1), nodes(1, 64 * MIB), [[0]]))
    parts = entries(tables[b"APIC"], 44)
    assert [struct.unpack_from("<BI", part, 3) for part in parts if part[0] == 2] == [(0, 2)]
    assert [part[2] for part in parts if part[0] == 1] == [Processors(1, 1).io_apic] == [1]


def test_nodes_keep_out_of_the_devices_addresses() -> None:
    for each in (256 * MIB, 512 * MIB, 768 * MIB, 1024 * MIB, 2048 * MIB):
        placed = nodes(8, each)
        for a, b in zip(placed, placed[1:], strict=False):
            assert a["base"] + a["bytes"] <= b["base"]
        assert all(n["base"] + n["bytes"] <= HOLE or n["base"] >= FOUR_GIB for n in placed)
        usable = [part for part in firmware.memory_map(placed) if part["kind"] == firmware.USABLE]
        low = firmware.FIRST_MIB - firmware.LOW_END
        assert sum(part["bytes"] for part in usable) == 8 * each - low
    assert [n["base"] for n in nodes(8, 512 * MIB)][5:] == [HOLE - 512 * MIB, FOUR_GIB, FOUR_GIB + 512 * MIB]


def test_a_first_node_beyond_the_devices_is_refused() -> None:
    assert nodes(1, 3072 * MIB)[0]["base"] == 0
    with pytest.raises(UserError, match="at most 2GiB"):
        nodes(8, 4096 * MIB)


def test_the_loaders_fields_lie_where_the_boot_protocol_has_them() -> None:
    fields = bytes(firmware.LOADER_TYPE) + firmware.loader_fields(0x8000000, 12345)
    assert fields[0x210] == 0xFF and fields[0x211] & 1
    assert struct.unpack_from("<II", fields, 0x218) == (0x8000000, 12345) and len(fields) == 0x220


def test_an_initial_file_system_ends_with_the_first_node_and_lies_behind_the_kernel() -> None:
    at = firmware.initrd_address(5000, nodes(2, 64 * MIB), 32 * MIB)
    assert at == 64 * MIB - 8192
    with pytest.raises(UserError, match="do not fit"):
        firmware.initrd_address(33 * MIB, nodes(2, 64 * MIB), 32 * MIB)


def test_tables_of_as_many_cores_as_gem5_can_number_fit() -> None:
    tables = found(firmware.tables(Processors(48, 6), nodes(8, 512 * MIB), [[0] * 8] * 8))
    assert set(tables) == {b"APIC", b"SRAT", b"SLIT"}
