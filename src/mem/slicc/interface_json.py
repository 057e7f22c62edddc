# SPDX-License-Identifier: BSD-3-Clause
"""NAME.json, schema "moscope.protocol/1": what machine descriptions and tools read of a protocol.

| key | meaning |
|---|---|
| `machines[].params` | parameters without the message buffers; one whose `default` is null must be set (*) |
| `machines[].buffers` | message buffers with their networks |
| `declared` | number of (state, event) pairs with a transition, stalls included |
| `pure_hits` | see hits.py |
| `file`, `line` of actions and transitions | where the declaration begins; the file without its folder |
| `machines[].roles`, `sequencer` | the tables of NAME.roles.toml (roles.py); absent without the file |

(*) A type such as CacheMemory is an object; plain types are values; Cycles count the controller's clock.
"""
from __future__ import annotations

import json
from typing import Any

from . import ast
from .hits import analyse_hits
from .roles import Roles

SCHEMA = "moscope.protocol/1"


def interface(program: ast.Program, given: Roles | None = None) -> dict[str, Any]:
    """The description of a resolved protocol, and of its roles, as plain data."""
    machines = [_machine(machine) for machine in program.machines]
    for machine in machines:
        if given and machine["type"] in given.machines:
            machine["roles"] = given.machines[machine["type"]]
    return {
        "schema": SCHEMA,
        "protocol": program.name,
        "declared": sum(machine["declared"] for machine in machines),
        "machines": machines,
        "messages": [_message(declared) for declared in program.message_types()],
        **({"sequencer": given.sequencer} if given and given.sequencer else {}),
    }


def text(program: ast.Program, given: Roles | None = None) -> str:
    """The description as JSON text."""
    return json.dumps(interface(program, given), indent=1, ensure_ascii=False) + "\n"


def _machine(machine: ast.Machine) -> dict[str, Any]:
    hits = analyse_hits(machine)
    initial = machine.initial_state()
    return {
        "type": machine.name,
        "desc": machine.short,
        "params": [_param(param) for param in machine.params if not param.is_buffer],
        "buffers": [_buffer(param) for param in machine.params if param.is_buffer],
        "in_ports": [{"name": port.name, "buffer": port.buffer.name, "message": port.message.name, "rank": port.rank}
                     for port in machine.in_ports],
        "out_ports": [{"name": port.name, "buffer": port.buffer.name, "message": port.message.name} for port in machine.out_ports],
        "initial_state": initial.name if initial is not None else None,
        "states": [{"name": state.name, "permission": state.permission, "desc": state.desc} for state in machine.states],
        "events": [{"name": event.name, "desc": event.desc} for event in machine.events],
        "request_types": [request.name for request in machine.request_types],
        "actions": [{"name": action.name, "short": action.short, "desc": action.desc, **_place(action)} for action in machine.actions],
        "transitions": [_transition(transition) for transition in machine.transitions],
        "declared": len(machine.transitions),
        "pure_hits": [{"state": hit.state.name, "event": hit.event.name, "callback": hit.callback,
                       "touches": [param.name for param in hit.touches]} for hit in hits.hits],
    }


def _place(node: ast.Node) -> dict[str, Any]:
    return {"file": node.loc.file_name, "line": node.loc.line}


def _param(param: ast.Param) -> dict[str, Any]:
    default = param.default.value if isinstance(param.default, ast.Literal) else None
    return {"name": param.name, "type": param.type.name, "pointer": param.pointer, "default": default}


def _buffer(param: ast.Param) -> dict[str, Any]:
    special: dict[str, Any] = {"wire": True} if param.type.name == "WireBuffer" else {}
    special |= {"to": param.pairs["to"]} if "to" in param.pairs else {}
    return {"name": param.name, "network": param.network, "vnet": param.virtual_network, "vnet_type": param.vnet_type,
            "ordered": param.is_ordered, **special}


def _transition(transition: ast.Transition) -> dict[str, Any]:
    return {
        "state": transition.state.name,
        "event": transition.event.name,
        "next": transition.next_state.name if transition.next_state is not None else "*",
        "actions": [action.name for action in transition.actions],
        "stall": transition.is_stall,
        **_place(transition.decl),
    }


def _message(declared: ast.Type) -> dict[str, Any]:
    return {"name": declared.name, "fields": [{"name": field.name, "type": field.type.name} for field in declared.fields.values()]}
