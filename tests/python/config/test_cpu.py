# SPDX-License-Identifier: BSD-3-Clause
"""Processors: CPUID of the Opteron 8431 against published listings, and what follows from the machine."""

import pytest

from moscope.config import ConfigError, apply_sets, load_machine
from moscope.config.cpu import cpu_json, load_processor, processors
from moscope.config.cpu_features import BITS

Registers = tuple[int, int, int, int]


def cpuid(*sets: str) -> dict[int, Registers]:
    j = cpu_json(apply_sets(load_machine("opteron48"), list(sets)))
    return {leaf["function"]: (leaf["eax"], leaf["ebx"], leaf["ecx"], leaf["edx"]) for leaf in j["leaves"]}


def mask_of(processor: str, function: int, register: str) -> int:
    bits = [BITS[n] for n in load_processor(processor).masked]
    return sum(1 << b.bit for b in bits if (b.function, b.register) == (function, register))


def test_features_are_those_of_the_part_less_what_is_masked() -> None:
    leaves = cpuid()
    assert leaves[1][0] == 0x00100F80
    assert leaves[1][2:] == (0x00802009, 0x178BFBFF)
    _, _, ecx, edx = leaves[0x80000001]
    assert ecx | mask_of("opteron8431", 0x80000001, "ecx") == 0x000037FF
    assert edx | mask_of("opteron8431", 0x80000001, "edx") == 0xEFD3FBFF
    assert leaves[0x80000007][3] | mask_of("opteron8431", 0x80000007, "edx") == 0x1F9


def test_the_brand_string_is_that_of_the_part() -> None:
    leaves = cpuid()
    text = b"".join(r.to_bytes(4, "little") for f in (2, 3, 4) for r in leaves[0x80000000 + f])
    assert text.rstrip(b"\0") == b"Six-Core AMD Opteron(tm) Processor 8431"


def test_caches_and_translations_are_those_of_published_dumps() -> None:
    leaves = cpuid()
    assert leaves[0x80000005] == (0xFF30FF10, 0xFF30FF20, 0x40020140, 0x40020140)
    assert leaves[0x80000006][:3] == (0x20800000, 0x42004200, 0x02008140)


def linux_l3_kilobytes(edx: int) -> int:
    """How Linux gets the size that sysfs shows: whole sets of the encoded number of ways."""
    ways = {6: 8, 8: 16, 10: 32, 11: 48, 12: 64}[edx >> 12 & 15]
    line = edx & 0xFF
    return (edx >> 18) * (512 << 10) // line // ways * line * ways >> 10


def test_linux_shows_the_l3_as_5118k_and_without_the_probe_filter_as_6144k() -> None:
    assert linux_l3_kilobytes(cpuid()[0x80000006][3]) == 5118
    assert linux_l3_kilobytes(cpuid("probe_filter.enabled=false")[0x80000006][3]) == 6144


def test_caches_larger_than_their_fields_can_say_show_the_largest_value() -> None:
    large = cpuid("l1d.size=1MiB", "l2.size=64MiB", "l3.size=16GiB", "l3.ways=64", "probe_filter.enabled=false")
    assert large[0x80000005][2] >> 24 == 0xFF
    assert large[0x80000006][2] >> 16 == 0xFFFF
    assert large[0x80000006][3] >> 18 == 0x3FFF
    assert all(0 <= register < 1 << 32 for leaf in large.values() for register in leaf)


def test_identifiers_are_laid_out_eight_per_chip() -> None:
    assert cpuid()[0x80000008] == (0x3030, 0, 0x3005, 0)
    assert cpuid()[1][1] >> 16 & 0xFF == 6


@pytest.mark.parametrize("name", processors())
def test_masked_features_are_not_promised_and_have_a_reason(name: str) -> None:
    p = load_processor(name)
    assert not set(p.masked) & set(p.features)
    assert all(why for why in p.masked.values())
    assert set(p.masked) <= set(BITS)


@pytest.mark.parametrize("name", processors())
def test_each_register_has_one_entry_and_its_reset_value_fits(name: str) -> None:
    numbers = [m.number for m in load_processor(name).msrs]
    assert len(numbers) == len(set(numbers))
    assert all(0 <= m.reset < 1 << 64 and 0 <= m.writable < 1 << 64 for m in load_processor(name).msrs)


def test_the_p_state_is_the_machines_clock() -> None:
    msrs = {m["number"]: m["reset"] for m in cpu_json(load_machine("opteron48"))["msrs"]}
    p0 = msrs[0xC0010064]
    assert 100 * ((p0 & 0x3F) + 0x10) >> (p0 >> 6 & 7) == 2400
    assert p0 >> 63 == 1


def test_an_unknown_processor_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match="opteron"):
        cpu_json(apply_sets(load_machine("opteron48"), ["cpu=opteron8413"]))


def test_magny_cours_machines_show_the_part_with_their_clock() -> None:
    for name in ("magnycours_4p", "magnycours_2p"):
        leaves = {leaf["function"]: leaf for leaf in cpu_json(load_machine(name))["leaves"]}
        assert leaves[1]["eax"] == 0x00100F91
        brand = b"".join(leaves[0x80000000 + f][r].to_bytes(4, "little") for f in (2, 3, 4) for r in ("eax", "ebx", "ecx", "edx"))
        assert brand.rstrip(b"\0") == b"AMD Opteron(tm) Processor 6174"
        assert not leaves[0x80000001]["ecx"] & 1 << BITS["nodeid_msr"].bit
