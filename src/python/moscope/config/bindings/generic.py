# SPDX-License-Identifier: BSD-3-Clause
"""Binding by name, where a protocol's roles say nothing: which cache array a CacheMemory parameter means,
and values that a machine description determines. Everything else keeps the protocol's own default, so
that a protocol behaves as its author wrote it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from moscope.schema.constants import LINE
from moscope.schema.errors import ConfigError
from moscope.wording import number

from ..machine import MOST_CACHE_BYTES, Cache, Machine
from .names import BY_NAME, CORES_CACHE

SEQUENCERS = ("Sequencer", "HTMSequencer")
# Machine types of gem5's GPUs, which no machine of moscope has.
GPU = {"TCP", "TCC", "TCCdir", "SQC"}

# First match decides; `chip` says whether the controller is one per chip.
_ARRAYS: tuple[tuple[str, str], ...] = (
    (r"filter|dir(ectory)?_?cache", "filter"),
    (r"(l[01])?_?(icache|instr)|l[01]_?i", "l1i"),
    (r"(l[01])?_?dcache|l[01]_?d", "l1d"),
    (r"l3", "l3"),
    (r"l2", "l2"),
)


def instances(description: Mapping[str, Any], types: Mapping[str, Any]) -> str:
    """How many controllers a machine has. Its roles decide; without them, its name: one for each core, chip or node. A machine
    with two sequencers has one controller per pair of cores. A machine has none if it belongs to a GPU, or if no other machine
    has the other end of its wires."""
    given = description.get("roles", {}).get("per")
    if given:
        return str(given)
    ends = [b["name"] for b in description["buffers"] if b.get("wire")]
    elsewhere = {b["name"] for kind, other in types.items() if kind != description["type"] for b in other["buffers"] if b.get("wire")}
    has_cpu = any(p["type"] in SEQUENCERS for kind, other in types.items() if kind not in GPU for p in other["params"])
    if (description["type"] in GPU and has_cpu and not description.get("roles")) or (ends and not elsewhere & set(ends)):
        return "none"
    cores = sum(p["type"] in SEQUENCERS for p in description["params"])
    return "pair" if cores == 2 else BY_NAME.get(description["type"], CORES_CACHE)[0]


def array_of(machine_type: str, parameter: str, types: Mapping[str, Any], per_chip: bool) -> str:
    """The cache of the machine description that a CacheMemory parameter stands for."""
    for pattern, key in _ARRAYS:
        if re.search(pattern, parameter, re.IGNORECASE):
            # An L2 per chip is the chip's last level, so it takes the place of the L3.
            return "l3" if key == "l2" and per_chip else key
    if per_chip:
        return "l3"
    # Without a level in its name, a cache behind an L0 is the core's second level.
    return "l2" if machine_type == "L1Cache" and "L0Cache" in types else "l1d"


def has_filter(types: Mapping[str, Any]) -> bool:
    """Whether the protocol has a probe filter at all; one without leaves the whole L3 to data."""
    return any(
        description.get("roles", {}).get("arrays", {}).get(p["name"]) == "filter" or re.search(_ARRAYS[0][0], p["name"], re.IGNORECASE)
        for description in types.values()
        for p in description["params"]
        if p["type"] == "CacheMemory"
    )


def described(machine: Machine, array: str, sets: int, ways: int) -> dict[str, Any]:
    """The description of an array for the engine. For the filter, `bytes` is the memory that its entries cover."""
    source: Any = machine.probe_filter if array == "filter" else getattr(machine, array)
    return {"bytes": ways * sets * machine.line.bytes, "ways": ways, "sets": sets, "replacement": str(source.replacement)}


def geometry(machine: Machine, array: str) -> dict[str, Any]:
    """The array as the machine has it."""
    if array == "filter":
        enabled = bool(machine.probe_filter.enabled)
        ways, sets = int(machine.probe_filter.ways), machine.filter_sets() if enabled else 1
    else:
        cache: Cache = machine.l3_data() if array == "l3" else getattr(machine, array)
        ways, sets = int(cache.ways), cache.sets(machine.line)
    found = described(machine, array, sets, ways)
    _check_shape("probe_filter" if array == "filter" else array, found["replacement"], sets, ways)
    return found


def _check_shape(key: str, replacement: str, sets: int, ways: int) -> None:
    """Raises a ConfigError if an array of this shape is too large for the engine, or if the replacement policy refuses the shape."""
    from moscope import _engine

    if sets * ways * LINE > MOST_CACHE_BYTES:
        what = f"{'entry' if key == 'probe_filter' else 'size'}: makes {sets} sets of {number(ways, 'way')}"
        raise ConfigError(f"{key}.{what}", "less than 2GiB of lines in all")
    if problem := _engine.why_refused(replacement, sets, ways):
        wrong, _, right = problem.partition(": expected ")
        raise ConfigError(f"{key}.replacement: {wrong}", right)


# Arrays so small that every few accesses replace a line: (sets, ways).
TINY = {"l1i": (1, 2), "l1d": (1, 2), "l2": (2, 2), "l3": (2, 4), "filter": (2, 4)}


def tiny_geometry(machine: Machine, array: str) -> dict[str, Any]:
    return described(machine, array, *TINY[array])


def value_of(machine_type: str, parameter: str, kind: str, default: Any, counts: Mapping[str, int], machine: Machine) -> Any:
    """The value of a parameter that no binding names."""
    select = re.fullmatch(r"(l\d|TCC)_select_num_bits", parameter)
    if select:
        banks = counts.get("TCC", 0) if select[1] == "TCC" else counts.get(select[1].upper() + "Cache", 1)
        return _select_bits(machine_type, parameter, max(1, banks))
    if re.fullmatch(r"l\d_select_low_bit", parameter):
        return machine.line.bytes.bit_length() - 1
    if parameter == "N_tokens":
        return machine.cores + 1  # tokens per line: one for each core and one for the home
    if parameter == "CPUonly":
        return not any(counts.get(kind) for kind in GPU)
    if default is not None:
        return plain(default)
    if kind == "bool":
        return parameter == "send_evictions"  # which tells a core's port at once that the protocol has dropped a line
    if kind == "Cycles":
        return 1
    raise ConfigError(
        f"parameter {parameter} of {machine_type} has neither a default nor a rule",
        f"--set params.{machine_type}.{parameter}=VALUE, a default in the .sm file ({parameter} := VALUE), or {parameter} in "
        f"machines.{machine_type}.values of NAME.roles.toml",
        f"protocol {machine.protocol}",
    )


def _select_bits(machine_type: str, parameter: str, banks: int) -> int:
    if banks & (banks - 1):
        raise ConfigError(
            f"protocol parameter {machine_type}.{parameter}: {banks} banks cannot be chosen by address bits",
            "a number of chips that is a power of two",
        )
    return banks.bit_length() - 1


def plain(value: Any) -> Any:
    """A SLICC default, which may come as text, as a plain value."""
    if isinstance(value, str):
        text = value.strip().strip('"')
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        try:
            return int(text, 0)
        except ValueError:
            return text
    return value
