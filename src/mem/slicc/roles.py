# SPDX-License-Identifier: BSD-3-Clause
"""NAME.roles.toml in the folder of NAME.slicc: the roles of a protocol's machines in the simulated computer. Optional; gem5 ignores
it.

    [sequencer]                      # request types for accesses past the caches
    nt_store_type = "COMMIT"
    uncached_load_type = "IO"

    [machines.L3Cache]
    per = "chip"                     # core, pair (of cores), chip, node or none: how many controllers there are
    role = "cache"                   # cache, home (keeps a node's memory, orders its lines) or dma (has a DMASequencer)
    for_requests = ["number_of_TBEs"]  # plain parameters of at least the number of requests that its cores can have in flight
    below = "Directory"              # the machine, or kind of one, next towards memory (mapAddressToDownstreamMachine)
    [machines.L3Cache.arrays]        # which array of the machine description a CacheMemory parameter is
    L3cache = "l3"                   # l1i, l1d, l2, l3 or filter
    [machines.L3Cache.values]        # plain parameters: a number, a truth value, or the key of a machine's value
    hit_latency = "latencies.l3_hit"
    [machines.L3Cache.buffers.toDirectory]    # what gem5's set-up decides of a MessageBuffer, instead of the protocol's text
    virtual_network = 2
    vnet_type = "response"
    ordered = true
    to = "Directory.fromCache"       # without a virtual network: the buffer of another machine that it leads to
    [[machines.Cache.kinds]]         # a machine that is several levels: `name`, and the keys above but `buffers` for each one
    name = "l1"

For a protocol of gem5 that needs one and has none beside it, the file of its name in `gem5_roles` here is used, if it fits. What
the file leaves out is derived from names (src/python/moscope/config/bindings).
"""
from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import ast

SUFFIX = ".roles.toml"
PER = ("core", "pair", "chip", "node", "none")
ROLES = ("cache", "home", "dma")
BUFFERS: dict[str, type] = {"virtual_network": int, "vnet_type": str, "ordered": bool, "to": str}
WORDS = {int: "a number", str: "a string", bool: "true or false"}
OF_ALL = ("number_of_TBEs", "recycle_latency", "transitions_per_cycle")
"""Plain parameters that every machine has without declaring them."""
ARRAYS = ("l1i", "l1d", "l2", "l3", "filter")


class RolesError(Exception):
    """`file: what: problem: expected ...`."""


@dataclass(frozen=True)
class Roles:
    """`machines` by the name of the machine, and the sequencer's request types: the tables of the file."""

    machines: dict[str, dict[str, Any]] = field(default_factory=dict)
    sequencer: dict[str, str] = field(default_factory=dict)


def read(slicc: str, program: ast.Program) -> Roles:
    """The roles of a protocol, checked against it; empty without a file. `slicc` is the path of NAME.slicc. Raises RolesError."""
    path = Path(slicc).with_suffix(SUFFIX)
    if path.is_file():
        return _read(path, program)
    ours = Path(__file__).parent / "gem5_roles" / path.name
    try:
        return _read(ours, program) if ours.is_file() else Roles()
    except RolesError:
        return Roles()  # the file is for another protocol of the same name


def _read(path: Path, program: ast.Program) -> Roles:
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as problem:
        raise RolesError(f"{path}: {problem.strerror}: expected a readable file") from problem
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise RolesError(f"{path}: not TOML: {problem}: expected the tables machines and sequencer") from problem
    _known(path, "", found, ("machines", "sequencer"))
    _known(path, "sequencer.", found.get("sequencer", {}), ("nt_store_type", "uncached_load_type"))
    for key, value in found.get("sequencer", {}).items():
        if not isinstance(value, str):
            raise RolesError(f"{path}: sequencer.{key}: {value!r}: expected a request type, such as \"IO\"")
    machines = {machine.name: machine for machine in program.machines}
    _known(path, "machines.", found.get("machines", {}), machines)
    for name, given in found.get("machines", {}).items():
        _check_machine(path, f"machines.{name}.", given, machines[name])
    return Roles(found.get("machines", {}), found.get("sequencer", {}))


def _check_machine(path: Path, where: str, given: Any, machine: ast.Machine) -> None:
    _known(path, where, given, ("per", "role", "arrays", "values", "for_requests", "buffers", "below", "kinds"))
    for_requests = given.get("for_requests", [])
    if not isinstance(for_requests, list):
        raise RolesError(f"{path}: {where}for_requests: {for_requests!r}: expected a list of plain parameters")
    _known(path, f"{where}for_requests.", dict.fromkeys(map(str, for_requests)), _plain(machine))
    _check_buffers(path, f"{where}buffers.", given.get("buffers", {}), machine)
    kinds = given.get("kinds", [])
    if not isinstance(kinds, list):
        raise RolesError(f"{path}: {where}kinds: {kinds!r}: expected tables [[{where}kinds]]")
    for n, kind in enumerate(kinds):
        _known(path, f"{where}kinds.{n}.", kind, ("name", "per", "role", "arrays", "values", "below"))
        if not isinstance(kind.get("name"), str):
            raise RolesError(f"{path}: {where}kinds.{n}.name: {kind.get('name')!r}: expected a string")
        _check_kind(path, f"{where}kinds.{n}.", {"per": "core", "role": "cache", **kind}, machine)
    _check_kind(path, where, given, machine)


def _check_kind(path: Path, where: str, given: Any, machine: ast.Machine) -> None:
    for key, allowed in (("per", PER), ("role", ROLES)):
        if key in given and given[key] not in allowed:
            raise RolesError(f"{path}: {where}{key}: {given[key]!r}: expected one of {', '.join(allowed)}")
    devices = any(p.type.name == "DMASequencer" for p in machine.params)
    if "role" in given and (given["role"] == "dma") != devices:
        raise RolesError(f"{path}: {where}role: {given['role']!r} of a machine with{'' if devices else 'out'} a DMASequencer: expected "
                         f"{'dma' if devices else 'cache or home'}")
    arrays = {p.name for p in machine.params if p.type.name == "CacheMemory"}
    _known(path, f"{where}arrays.", given.get("arrays", {}), arrays)
    for name, array in given.get("arrays", {}).items():
        if array not in ARRAYS:
            raise RolesError(f"{path}: {where}arrays.{name}: {array!r}: expected one of {', '.join(ARRAYS)}")
    _known(path, f"{where}values.", given.get("values", {}), _plain(machine))
    if not isinstance(given.get("below", ""), str):
        raise RolesError(f"{path}: {where}below: {given['below']!r}: expected the name of a machine, or of a kind of one")
    for name, value in given.get("values", {}).items():
        if not isinstance(value, (bool, int, str)):
            raise RolesError(f"{path}: {where}values.{name}: {value!r}: expected a number, true, false or a key of the machine")


def _plain(machine: ast.Machine) -> set[str]:
    """The plain parameters of a machine."""
    return {p.name for p in machine.params if not (p.pointer or p.is_buffer or p.type.name == "CacheMemory")} | set(OF_ALL)


def _check_buffers(path: Path, where: str, given: Any, machine: ast.Machine) -> None:
    """The tables of a machine's buffers; each kind of value as BUFFERS says."""
    _known(path, where, given, [p.name for p in machine.params if p.is_buffer])
    for name, table in given.items():
        _known(path, f"{where}{name}.", table, BUFFERS)
        for key, value in table.items():
            if type(value) is not BUFFERS[key]:
                raise RolesError(f"{path}: {where}{name}.{key}: {value!r}: expected {WORDS[BUFFERS[key]]}")


def apply(given: Roles, program: ast.Program) -> None:
    """Sets what the roles say of buffers in the protocol's own declarations."""
    for machine in program.machines:
        buffers = given.machines.get(machine.name, {}).get("buffers", {})
        for param in machine.params:
            for key, value in buffers.get(param.name, {}).items():
                param.pairs[key] = str(value).lower() if isinstance(value, bool) else str(value)


def _known(path: Path, where: str, given: Any, allowed: Iterable[str]) -> None:
    if not isinstance(given, dict):
        raise RolesError(f"{path}: {where.rstrip('.')}: {given!r}: expected a table")
    for key in given:
        if key not in allowed:
            raise RolesError(f"{path}: {where}{key}: unknown: expected {', '.join(sorted(allowed)) or 'nothing here'}")
