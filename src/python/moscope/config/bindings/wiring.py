# SPDX-License-Identifier: BSD-3-Clause
"""Buffers that lead from one controller straight into another, and controllers that several cores share. In gem5, Python code
outside of the protocol decides both. Here a buffer's `to` in NAME.roles.toml decides. Without it, a To buffer that has no virtual
network leads to the only matching From buffer without one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moscope.schema.errors import ConfigError

from .generic import SEQUENCERS

Types = Mapping[str, Mapping[str, Any]]
End = tuple[str, str]  # machine, buffer


def sequencers_of(description: Mapping[str, Any], core: int) -> dict[str, Any]:
    """The cores behind each sequencer of a controller whose first core is `core`, if it has several."""
    names = [p["name"] for p in description["params"] if p["type"] in SEQUENCERS]
    return {"sequencers": {name: core + i for i, name in enumerate(names)}} if len(names) > 1 else {}


def wires(types: Types, controllers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`{"wires": [..]}` of the elaborated machine: a wire connects two controllers of the same core, or else of the same chip."""
    found = []
    for (sender, out), (receiver, into) in _pairs(types):
        place = "core" if all(_per(types, kind) in ("core", "pair") for kind in (sender, receiver)) else "chip"
        ends = {c[place]: c for c in controllers if c["machine"] == receiver}
        for c in controllers:
            if c["machine"] == sender and c[place] in ends:
                found.append({"from": {"machine": sender, "version": c["version"], "buffer": out},
                              "to": {"machine": receiver, "version": ends[c[place]]["version"], "buffer": into}})
    return {"wires": found} if found else {}


def _per(types: Types, kind: str) -> str:
    return str(types[kind]["roles"]["per"])


def _pairs(types: Types) -> Iterator[tuple[End, End]]:
    present = {kind: m for kind, m in types.items() if _per(types, kind) != "none"}
    open_ends = [(kind, b) for kind, m in present.items() for b in m["buffers"]
                 if b.get("vnet") is None and (b.get("network") == "From" or b.get("wire"))]
    for kind, m in present.items():
        read = {p["buffer"] for p in m.get("in_ports", ())}
        for b in m["buffers"]:
            if b.get("vnet") is not None or not (b.get("network") == "To" or b.get("wire") and b["name"] not in read):
                continue
            fitting = [(other, e["name"]) for other, e in open_ends if other != kind and _fits(kind, b, other, e)]
            if len(fitting) != 1:
                known = ", ".join(f"{other}.{e['name']}" for other, e in open_ends if other != kind) or "none"
                raise ConfigError(f"protocol buffer {kind}.{b['name']}: it has no virtual network, and its peer is ambiguous (open ends: "
                                  f"{known})", f'buffers.{b["name"]}.to = "MACHINE.BUFFER" in [machines.{kind}] of NAME.roles.toml')
            yield (kind, b["name"]), fitting[0]


def _fits(kind: str, out: Mapping[str, Any], other: str, into: Mapping[str, Any]) -> bool:
    if out.get("to"):
        return bool(out["to"] == f"{other}.{into['name']}")
    if out.get("wire") or into.get("wire"):
        return bool(out["name"] == into["name"])
    return _meant(out["name"], "To", other) and _meant(into["name"], "From", kind)


def _meant(name: str, word: str, machine: str) -> bool:
    """Whether a buffer may lead to, or come from, this machine according to its name: `bufferToL1` does for L1Cache."""
    _, found, peer = name.partition(word)
    return not found or machine.lower().startswith(peer.lower()) or peer.lower().startswith(machine.lower())
