# SPDX-License-Identifier: BSD-3-Clause
"""From a machine description and a protocol's interface to the elaborated machine (`moscope.machine/1`,
described in docs/machines.md): the one JSON object that the engine reads. Times are femtoseconds, sizes
bytes, cycles those of the controller's own clock."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moscope.schema.errors import UNPLACED, ConfigError, suggest
from moscope.schema.parameters import engine_json, field_kinds, is_given
from moscope.schema.prefetch import DramPrefetch, L1dPrefetch, L1iPrefetch
from moscope.schema.units import Count, Frequency, Time
from moscope.wording import number

from .bindings import check_limits, check_roles, generic, roles_of, value_of_machine
from .bindings.levels import connect, has_cores, kinds_of
from .bindings.names import OF_ALL
from .bindings.wiring import sequencers_of, wires
from .dram import dram_json
from .machine import Machine, replace
from .routing import Routing
from .topology import Topology

SCHEMA = "moscope.machine/1"
TRANSITIONS_PER_CYCLE = 32
IDEAL_LATENCY = Time("10ns")  # of a message on the ideal network

# HyperTransport channel of each virtual-network type. Completions (SrcDone) are responses there. Types
# that are not named share the posted channel, which coherent traffic leaves free.
CHANNELS = {
    "request": "request",
    "writeback": "request",
    "forward": "probe",
    "probe": "probe",
    "response": "response",
    "unblock": "response",
    "posted": "posted",
}


def elaborate(
    machine: Machine,
    interface: Mapping[str, Any],
    *,
    caches: str = "machine",
    network: str = "hypertransport",
    jitter: Time | None = None,
    homes: int | None = None,
    runs_guest: bool = False,
) -> dict[str, Any]:
    """The elaborated machine. `interface` is the protocol's NAME.json; `caches="tiny"` shrinks all arrays so
    that they replace constantly; `network="ideal"` leaves the shape out; `jitter` delays each delivery by a
    random time up to it; with `homes` only the first chips have memory and a directory. Unless it
    `runs_guest`, prefetchers of the default policy are off, because a script or tester that chooses each
    access needs no other lines."""
    if caches not in ("machine", "tiny"):
        raise ConfigError(f"caches: {caches!r}", "machine or tiny", "--caches")
    machine = replace(machine.validate(), protocol=interface["protocol"])  # which errors name
    check_roles(interface)
    if homes is not None and not 1 <= homes <= machine.chips:
        right = f"1 to {machine.chips}" if machine.chips > 1 else "1"
        raise ConfigError(f"{number(homes, 'home')} on {number(machine.chips, 'chip')}", right, "--homes")
    nodes = int(machine.chips) if homes is None else homes
    types = {m["type"]: m for m in interface["machines"]}
    if not generic.has_filter(types):
        machine = replace(machine, probe_filter=replace(machine.probe_filter, enabled=False))
    types = {kind: {**description, "roles": {**description.get("roles", {}), "per": per}}
             for kind, description in types.items() for per in [generic.instances(description, types)]}
    controllers = list(_controllers(machine, interface, types, caches == "tiny", nodes))
    return {
        "schema": SCHEMA,
        "name": machine.name,
        "protocol": interface["protocol"],
        "line_bytes": machine.line.bytes,
        "cores": machine.cores,
        "chips": int(machine.chips),
        "cores_per_chip": int(machine.cores_per_chip),
        "outstanding_misses": int(machine.outstanding_misses),
        "pipeline": engine_json(machine.pipeline),
        "core": engine_json(machine.core),
        **{name: engine_json(part) for name in ("l1d_prefetch", "l1i_prefetch", "dram_prefetch")
           for part in [getattr(machine, name)] if _prefetches(part, runs_guest)},
        "clocks": {"core": clock_json(machine.core_clock), "nb": clock_json(machine.nb_clock)},
        "address_map": [
            {"base": n * machine.memory_per_node.bytes, "bytes": machine.memory_per_node.bytes, "node": n}
            for n in range(nodes)
        ],
        "controllers": controllers,
        **wires(types, controllers),
        "network": _network(machine, types, controllers, network, jitter),
        "dram": dram_json(machine.dram),
    }


def _prefetches(part: L1dPrefetch | L1iPrefetch | DramPrefetch, by_default: bool) -> bool:
    return str(part.policy) != "off" and (by_default or is_given(part, "policy"))


def cores_together(interface: Mapping[str, Any]) -> int:
    """How many cores share a controller through its sequencers. The number of cores of a chip is a multiple of it."""
    types = {m["type"]: m for m in interface["machines"]}
    return 2 if any(generic.instances(description, types) == "pair" for description in types.values()) else 1


def with_cores(machine: Machine, cores: int, together: int = 1) -> Machine:
    """The machine cut down (or up) to a number of cores: spread over as many chips as divide it, with a multiple of `together` on
    each. With fewer chips than the machine has, they are fully connected, as its own edges no longer apply."""
    if not 1 <= cores <= 256:
        raise ConfigError(f"{cores} cores", "1 to 256", "--cores")
    if cores == machine.cores:
        return machine
    if cores % together:
        raise ConfigError(f"{cores} cores: {together} share a controller in this protocol", f"a multiple of {together}", "--cores")
    chips = max(c for c in range(1, machine.chips + 1) if cores % (c * together) == 0)
    changes: dict[str, Any] = {"chips": Count(chips, "--cores"), "cores_per_chip": Count(cores // chips, "--cores")}
    if chips != machine.chips:
        changes |= {"topology": Topology("fully_connected", None, "--cores"), "routing": Routing()}
    resized: Machine = replace(machine, **changes)
    return resized


def clock_json(clock: Frequency) -> dict[str, int]:
    """The exact period as a fraction of femtoseconds."""
    return {"period_num": clock.period.numerator, "period_den": clock.period.denominator}


# --- controllers ----------------------------------------------------------------------------------


def placement(description: Mapping[str, Any], machine: Machine, homes: int) -> list[tuple[int, int | None]]:
    """(chip, core) of each controller of one machine of the protocol: one per core, chip or node. A home has `homes` controllers."""
    roles = roles_of(description)
    if roles.per == "none":
        return []
    if roles.per in ("core", "pair"):
        step = 2 if roles.per == "pair" else 1
        if machine.cores_per_chip % step:
            raise ConfigError(f"cores_per_chip: {machine.cores_per_chip}: two cores of a chip share a {description['type']}",
                              "an even number")
        return [(core // machine.cores_per_chip, core) for core in range(0, machine.cores, step)]
    return [(chip, None) for chip in range(homes if roles.role == "home" else machine.chips)]


def _controllers(machine: Machine, interface: Mapping[str, Any], types: Mapping[str, Any], tiny: bool,
                 homes: int) -> Iterator[dict[str, Any]]:
    _check_overrides(machine, types)
    past_caches = interface.get("sequencer", {})
    kinds = {t: kinds_of(description) for t, description in types.items()}
    counts = {t: sum(len(placement(kind, machine, homes)) for kind in several) for t, several in kinds.items()}
    _check_number(machine, sum(counts.values()))
    made: list[tuple[Mapping[str, Any], dict[str, Any]]] = []
    for kind, several in kinds.items():
        version = 0
        for description in several:
            params = _params(machine, description, types, counts, tiny) if counts[kind] else {}
            cores = len(several) == 1 or has_cores(description, several)
            for chip, core in placement(description, machine, homes):
                made.append((description, _controller(machine, description, past_caches, (kind, version, chip, core), cores, params)))
                version += 1
    connect(made, homes)
    yield from (controller for _, controller in made)


def _check_number(machine: Machine, controllers: int) -> None:
    """Raises a ConfigError for more controllers than the engine can have."""
    from moscope import _engine

    if controllers > _engine.MOST_CONTROLLERS:
        what = f"{machine.cores} cores need {controllers} controllers of {machine.protocol}"
        key, where = ("", "--cores") if machine.cores_per_chip.source == "--cores" else ("cores_per_chip: ", UNPLACED)
        raise ConfigError(key + what, f"fewer cores, with at most {_engine.MOST_CONTROLLERS} controllers", where)


def _controller(machine: Machine, description: Mapping[str, Any], past_caches: Mapping[str, Any],
                which: tuple[str, int, int, int | None], cores: bool, params: dict[str, Any]) -> dict[str, Any]:
    """The controller `which` (machine, version, chip, core). With `cores`, it is connected to cores. `connect` needs `place`."""
    kind, version, chip, core = which
    controller: dict[str, Any] = {"machine": kind, "role": roles_of(description).role, "version": version, "chip": chip}
    if core is not None and cores:
        controller["core"] = core
        controller |= sequencers_of(description, core)
    controller["clock"] = "nb" if core is None else "core"
    controller["transitions_per_cycle"] = TRANSITIONS_PER_CYCLE
    controller["params"] = params
    if any(p["type"] in generic.SEQUENCERS for p in description["params"]):
        controller["sequencer"] = {
            "hit_cycles": machine.latencies.l1_hit.count,
            "max_outstanding": int(machine.outstanding_misses),
            "nt_store_type": past_caches.get("nt_store_type", "ST"),
            "uncached_load_type": past_caches.get("uncached_load_type", "NULL"),
            "flushes": any("flush" in (e["name"] if isinstance(e, dict) else e).lower() for e in description.get("events", ())),
        }
    controller["place"] = core
    return controller


def _params(
    machine: Machine, description: Mapping[str, Any], types: Mapping[str, Any], counts: Mapping[str, int], tiny: bool
) -> dict[str, Any]:
    """The values of the cache arrays and plain parameters of one SLICC machine. The engine creates the other objects."""
    kind, roles = description["type"], roles_of(description)
    declared = {parameter["name"] for parameter in description["params"]}
    params: dict[str, Any] = {name: value for name, value in roles.values.items() if name not in declared}  # of every machine
    for name in (name for name in OF_ALL if f"{kind}.{name}" in machine.params and name not in declared):
        params[name] = _override(machine, f"{kind}.{name}", "count", roles.values.get(name))
    for parameter in description["params"]:
        name, key = parameter["name"], f"{kind}.{parameter['name']}"
        if parameter["type"] == "CacheMemory":
            array = roles.arrays.get(name) or generic.array_of(kind, name, types, roles.per == "chip")
            params[name] = generic.tiny_geometry(machine, array) if tiny else generic.geometry(machine, array)
        elif not parameter.get("pointer"):
            if key in machine.params:
                value = _override(machine, key, parameter["type"], roles.values.get(name))
            elif name in roles.values:
                value = roles.values[name]
                value = value_of_machine(machine, value, key) if isinstance(value, str) else value
            else:
                default = parameter.get("default")
                value = generic.value_of(kind, name, parameter["type"], default, counts, machine)
            if isinstance(value, (bool, int)):
                params[name] = value
    for name in description.get("roles", {}).get("for_requests", ()):
        if (least := most_requests(machine, roles.per)) > params.get(name, math.inf):
            raise ConfigError(f"params.{kind}.{name}: {params[name]}", f"at least {least}, as many requests as its cores can have in "
                              "flight (outstanding_misses, and buffers of the prefetchers)")
    free, all_of_them = params.get("free_tbes", 0), params.get("number_of_TBEs", math.inf)
    if free > all_of_them:  # requests would wait for free TBEs that never exist
        if f"{kind}.number_of_TBEs" in machine.params:
            raise ConfigError(f"params.{kind}.number_of_TBEs: {all_of_them}", f"at least {free}, its free_tbes")
        raise ConfigError(f"params.{kind}.free_tbes: {free}", f"at most {all_of_them}, the number of its TBEs")
    return params


def most_requests(machine: Machine, per: str) -> int:
    """The largest number of lines that the cores of a controller can have in flight. A prefetcher sends requests while its core has fewer
    lines in flight than the prefetcher has buffers."""
    cores = {"core": 1, "pair": 2, "chip": machine.cores_per_chip}.get(per, machine.cores)
    prefetches = max(int(p.buffers) if p.policy != "off" else 0 for p in (machine.l1d_prefetch, machine.l1i_prefetch))
    return cores * (int(machine.outstanding_misses) + prefetches)


def _check_overrides(machine: Machine, types: Mapping[str, Any]) -> None:
    known = [
        f"{kind}.{p['name']}"
        for kind, description in types.items()
        for p in description["params"]
        if not p.get("pointer")
    ] + [f"{kind}.{name}" for kind in types for name in OF_ALL]
    for key in machine.params:
        if key not in known:
            raise ConfigError(f"params.{key}: the protocol has no such parameter", suggest(key, known), "machine description")


def _override(machine: Machine, key: str, kind: str, bound: Any) -> Any:
    """The value of a parameter in `params`. `bound` is what the roles give for it: a value, or a key of the machine."""
    if isinstance(bound, str) and not bound.startswith("latencies."):
        raise ConfigError(f"params.{key}: the machine determines it", f"--set {bound}=VALUE")
    value = generic.plain(str(machine.params[key]))
    wanted = "true or false" if kind == "bool" else "a whole number"
    if not isinstance(value, int) or (kind == "bool") != isinstance(value, bool):
        raise ConfigError(f"params.{key}: {machine.params[key]!r:.40} is not of type {kind}", wanted)
    check_limits(value, kind, f"params.{key}")
    return value


# --- network --------------------------------------------------------------------------------------


def _network(
    machine: Machine,
    types: Mapping[str, Any],
    controllers: Sequence[Mapping[str, Any]],
    kind: str,
    jitter: Time | None,
) -> dict[str, Any]:
    common = {"jitter_fs": jitter.fs} if jitter else {}
    if kind == "ideal":
        return {"kind": kind, "latency_fs": IDEAL_LATENCY.fs, **common}
    if kind != "hypertransport":
        raise ConfigError(f"network: {kind!r}", "hypertransport or ideal")
    links, credits = machine.links, machine.links.credits
    return {
        "kind": kind,
        "routers": int(machine.chips),
        "ports": [{"controller": [c["machine"], c["version"]], "router": c["chip"]} for c in controllers],
        "router": {
            "latency_fs": machine.crossbar.latency.fs,
            "port_bytes_per_cycle": machine.crossbar.port.bytes,
            "clock": clock_json(machine.nb_clock),
        },
        "links": [
            {
                "a": e.a,
                "b": e.b,
                "width_bits": (e.width or links.width).bits,
                "clock_hz": int((e.clock or links.clock).hertz),
                "latency_fs": links.latency.fs,
                "credit_sets": credits.sets(e.width or links.width),
            }
            for e in machine.edges()
        ],
        "routes": machine.routes(),
        "vnet_channel": _vnet_channels(types),
        "credits": engine_json(links.credits),
        "packet_bytes": _packet_bytes(machine),
        **common,
    }


def _packet_bytes(machine: Machine) -> dict[str, int]:
    packets = machine.links.packets
    sizes = {name: getattr(packets, name).bytes for name in field_kinds(type(packets))}
    return sizes | {f"{name}_data": size + machine.line.bytes for name, size in sizes.items()}


def _vnet_channels(types: Mapping[str, Any]) -> dict[str, str]:
    """Channel of each virtual network, from the vnet types of the buffers that use it."""
    channels: dict[int, str] = {}
    for description in types.values():
        for buffer in description["buffers"]:
            if buffer.get("network") and buffer.get("vnet") is not None:
                channels.setdefault(int(buffer["vnet"]), CHANNELS.get(buffer.get("vnet_type") or "", "posted"))
    return {str(v): channels[v] for v in sorted(channels)}
