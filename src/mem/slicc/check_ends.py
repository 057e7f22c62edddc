# SPDX-License-Identifier: BSD-3-Clause
"""Warnings about what has only one end: message types that no machine sends, machine types that the protocol names and does not
have, an order that only one end of a virtual network declares, arrays that no code uses."""
from __future__ import annotations

from collections.abc import Callable, Iterator

from . import ast

_ADDRESSING = {"mapAddressToMachine", "mapAddressToRange", "createMachineID", "broadcast"}
"""What makes a destination of a machine type. Callbacks also name machine types, only for statistics."""

Warn = Callable[[ast.Loc, str, str], None]


def blocks(program: ast.Program) -> Iterator[list[ast.Stmt]]:
    functions = list(program.functions)
    for machine in program.machines:
        functions += machine.functions
        yield from (port.body for port in machine.in_ports)
        yield from (action.body for action in machine.actions)
    yield from (function.body for function in functions if function.body is not None)


def _messages(program: ast.Program, warn: Warn) -> None:
    own = [t for t in program.types if t.is_message and not t.is_external and not t.in_prelude]
    named = {port.message.name for machine in program.machines for port in (*machine.in_ports, *machine.out_ports)}
    for type_ in own:
        if type_.name not in named:
            warn(type_.loc, f"message type '{type_.name}': never used: expected a port of this type", "unused-message")


def _machine_types(program: ast.Program, warn: Warn) -> None:
    present = {machine.name for machine in program.machines}
    reported: set[str] = set()
    for block in blocks(program):
        for expr in ast.walk_exprs(block):
            if not (isinstance(expr, (ast.Call, ast.MethodCall)) and expr.name in _ADDRESSING):
                continue
            for arg in expr.args:
                if isinstance(arg, ast.EnumRef) and arg.type.name == "MachineType" and arg.value_name not in present | {"NULL"} | reported:
                    reported.add(arg.value_name)
                    warn(arg.loc, f"machine type '{arg.value_name}': no machine of the protocol: expected one of "
                         f"{', '.join(sorted(present))}", "unknown-machine")


def _order(program: ast.Program, warn: Warn) -> None:
    ends: dict[int, dict[str, list[ast.Param]]] = {}
    for machine in program.machines:
        for param in machine.params:
            if param.virtual_network is not None and param.network in ("To", "From"):
                ends.setdefault(param.virtual_network, {}).setdefault(param.network, []).append(param)
    for network, sides in ends.items():
        for here, there in (("To", "From"), ("From", "To")):
            others = sides.get(there, [])
            for param in sides.get(here, []):
                if _declared(param) and others and not any(map(_declared, others)):
                    warn(param.loc, f"virtual network {network}: ordered for '{param.name}' only: expected ordered=\"true\" on "
                         f"'{others[0].name}' of machine '{others[0].machine.name}' too", "ordered-one-end")


def _arrays(program: ast.Program, warn: Warn) -> None:
    """An array of the machine description stands for each `CacheMemory`, also for one that has the wrong name or is left over."""
    used = {id(e.decl) for block in blocks(program) for e in ast.walk_exprs(block) if isinstance(e, ast.Name)}
    for machine in program.machines:
        for param in machine.params:
            if param.type.name == "CacheMemory" and id(param) not in used:
                warn(param.loc, f"array '{param.name}' of machine '{machine.name}': never used: expected a use, or no such parameter",
                     "unused-array")


def _declared(param: ast.Param) -> bool:
    return param.pairs.get("ordered", "").lower() in ("true", "yes")


def check_ends(program: ast.Program, warn: Warn) -> None:
    _arrays(program, warn)
    if len(program.machines) > 1:  # else half of a protocol: the other side is unknown
        _messages(program, warn)
        _machine_types(program, warn)
        _order(program, warn)
