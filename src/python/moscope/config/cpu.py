# SPDX-License-Identifier: BSD-3-Clause
"""Guest-visible processors. Each file in configs/cpus describes one processor as `processor`. This module turns it into the
CPUID functions and model-specific registers that the engine reads (src/board/cpu_model.hh).

Identity, features and registers belong to the processor. Cache sizes, core counts and clocks come from the machine, so that
CPUID always matches the simulated machine.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope import contributed
from moscope.paths import root
from moscope.schema.errors import ConfigError, suggest
from moscope.schema.units import Count

from .cpu_features import BITS, REPEATED
from .machine import Cache, Machine

ALL = (1 << 64) - 1
IDS_PER_CHIP_BITS = 3  # eight APIC identifiers per chip (src/board/system_config.hh)


@dataclass(frozen=True)
class Tlb:
    """A translation buffer: entries and ways (None: fully associative)."""

    entries: int
    ways: int | None
    source: str


@dataclass(frozen=True)
class Tlbs:
    l1d: Tlb
    l1i: Tlb
    l1d_large: Tlb  # 2-MiB pages
    l1i_large: Tlb
    l2d: Tlb
    l2i: Tlb
    l2d_large: Tlb
    l1d_huge: Tlb  # 1-GiB pages
    l2d_huge: Tlb


@dataclass(frozen=True)
class Msr:
    """A model-specific register that only stores a value. `writable` are the bits that a write changes; without any, a write
    faults."""

    number: int
    name: str
    source: str
    reset: int = 0
    writable: int = ALL


@dataclass(frozen=True)
class Processor:
    brand: str  # Fn8000_0002 to Fn8000_0004
    family: Count
    model: Count
    stepping: Count
    features: Mapping[str, str]  # name: source
    masked: Mapping[str, str]  # the part has it, the model does not: name: why
    tlbs: Tlbs
    monitor: tuple[int, int, int, int]  # Fn0000_0005
    physical_bits: Count
    linear_bits: Count
    performance: Count  # Fn8000_001A EAX
    msrs: tuple[Msr, ...]


def processors_dir() -> Path:
    return root() / "configs" / "cpus"


def processors() -> list[str]:
    return sorted(p.stem for p in processors_dir().glob("*.py") if not p.stem.startswith("_"))


@functools.cache
def load_processor(name: str) -> Processor:
    if name not in processors():
        raise ConfigError(f"cpu: {name!r:.60} is not known", suggest(name, processors()))
    found: Processor = contributed.defined(processors_dir() / f"{name}.py", "processor", Processor, "`processor`, a Processor")
    return found


def cpu_json(machine: Machine) -> dict[str, Any]:
    """The processors of a machine in the form that the engine reads."""
    p = load_processor(str(machine.cpu))
    leaves = _leaves(p, machine)
    return {
        "description": p.brand,
        "max_basic": leaves[0][0],
        "max_extended": leaves[0x80000000][0],
        "leaves": [{"function": f, "index": 0, **dict(zip(("eax", "ebx", "ecx", "edx"), v, strict=True))}
                   for f, v in sorted(leaves.items())],
        "msrs": [{"number": m.number, "reset": m.reset, "writable": m.writable}
                 for m in sorted((*p.msrs, *_clock_msrs(machine), *_name_msrs(p)), key=lambda m: m.number)],
    }


Leaf = tuple[int, int, int, int]


def _leaves(p: Processor, machine: Machine) -> dict[int, Leaf]:
    def features(function: int) -> list[int]:
        words = [0, 0, 0, 0]
        for name in p.features:
            if name not in BITS:
                raise ConfigError(f"cpu: feature {name!r:.60} is not known", suggest(name, list(BITS)))
            b = BITS[name]
            if b.function == function:
                words[("eax", "ebx", "ecx", "edx").index(b.register)] |= 1 << b.bit
            if function == 0x80000001 and name in REPEATED:
                words[3] |= 1 << b.bit
        return words

    signature = _signature(p)
    cores = int(machine.cores_per_chip)
    one, extended, power = features(1), features(0x80000001), features(0x80000007)
    one[0], extended[0] = signature, signature
    one[1] = machine.line.bytes // 8 << 8 | cores << 16
    t = p.tlbs
    brand = p.brand.encode().ljust(48, b"\0")
    words = [int.from_bytes(brand[i : i + 4], "little") for i in range(0, 48, 4)]
    b, d, c = (int.from_bytes(b"AuthenticAMD"[i : i + 4], "little") for i in (0, 4, 8))
    return {
        0: (5, b, c, d),
        1: _leaf(one),
        5: p.monitor,
        0x80000000: (0x8000001A, b, c, d),
        0x80000001: _leaf(extended),
        0x80000002: _leaf(words[0:4]),
        0x80000003: _leaf(words[4:8]),
        0x80000004: _leaf(words[8:12]),
        0x80000005: (_l1_tlbs(t.l1d_large, t.l1i_large), _l1_tlbs(t.l1d, t.l1i), _l1(machine.l1d, machine),
                     _l1(machine.l1i, machine)),
        0x80000006: (_l2_tlb(t.l2d_large) << 16, _l2_tlb(t.l2d) << 16 | _l2_tlb(t.l2i), _l2(machine), _l3(machine)),
        0x80000007: _leaf(power),
        0x80000008: (int(p.linear_bits) << 8 | int(p.physical_bits), 0, IDS_PER_CHIP_BITS << 12 | (cores - 1), 0),
        0x80000019: (_l2_tlb(t.l1d_huge) << 16, _l2_tlb(t.l2d_huge) << 16, 0, 0),
        0x8000001A: (int(p.performance), 0, 0, 0),
    }


def _leaf(words: list[int]) -> Leaf:
    return (words[0], words[1], words[2], words[3])


def _signature(p: Processor) -> int:
    family, model = int(p.family), int(p.model)
    base, more = (0xF, family - 0xF) if family >= 0xF else (family, 0)
    return more << 20 | (model >> 4) << 16 | base << 8 | (model & 15) << 4 | int(p.stepping)


# Codes of Fn8000_0006 for the number of ways.
_WAYS = {1: 1, 2: 2, 4: 4, 8: 6, 16: 8, 32: 10, 48: 11, 64: 12, 96: 13, 128: 14}


def _ways(ways: int | None) -> int:
    if ways is None:
        return 15
    return _WAYS[max(w for w in _WAYS if w <= ways)] if ways else 0


def _l1_tlbs(data: Tlb, code: Tlb) -> int:
    def one(t: Tlb) -> int:
        return (0xFF if t.ways is None else t.ways) << 8 | t.entries

    return one(data) << 16 | one(code)


def _l2_tlb(t: Tlb) -> int:
    return _ways(t.ways) << 12 | t.entries if t.entries else 0


def _l1(cache: Cache, machine: Machine) -> int:
    return min(cache.size.bytes >> 10, 255) << 24 | min(int(cache.ways), 254) << 16 | 1 << 8 | machine.line.bytes


def _l2(machine: Machine) -> int:
    return min(machine.l2.size.bytes >> 10, 0xFFFF) << 16 | _ways(int(machine.l2.ways)) << 12 | 1 << 8 | machine.line.bytes


def _l3(machine: Machine) -> int:
    # The size is that of the part without the probe filter, but the ways are those of the whole array. From 5 MiB
    # in 48 ways, Linux computes 1706 sets and shows 5118K, as on the real machine.
    units = min(machine.l3_data().size.bytes // (512 << 10), 0x3FFF)
    return units << 18 | _ways(int(machine.l3.ways)) << 12 | 1 << 8 | machine.line.bytes if units else 0


def _clock_msrs(machine: Machine) -> list[Msr]:
    """P-states: a single one, the machine's clock. 100 MHz x (identifier + 10h) / 2^divisor (31116, MSRC001_00[68:64])."""
    hundreds = int(machine.core_clock.hertz) // 100_000_000
    divisor = 0
    while hundreds < 0x10 and divisor < 4:
        hundreds, divisor = hundreds * 2, divisor + 1
    identifier = min(max(hundreds - 0x10, 0), 0x2F)
    voltage = 0x14 << 9  # assumed: 1.3 V
    p0 = 1 << 63 | voltage | divisor << 6 | identifier
    source = "d: from the core's clock"
    return [Msr(0xC0010064, "P-state 0", source, p0),
            *(Msr(0xC0010064 + n, f"P-state {n}", source) for n in range(1, 5)),
            Msr(0xC0010071, "COFVID status", source, voltage | divisor << 6 | identifier, 0)]


def _name_msrs(p: Processor) -> list[Msr]:
    """The brand string, which firmware writes for CPUID to return."""
    text = p.brand.encode().ljust(48, b"\0")
    return [Msr(0xC0010030 + i, "processor name string", "d: the brand", int.from_bytes(text[8 * i : 8 * i + 8], "little"), 0)
            for i in range(6)]
