# SPDX-License-Identifier: BSD-3-Clause
"""Errors about the functions that the engine calls by name. The engine can pass only what it has for a line (TBE, entry, address,
state), so other parameters are errors."""
from __future__ import annotations

from . import ast
from .errors import Diagnostics, describe

_SETTERS = ("setState", "setAccessPermission")
_FORMS = {"getAccessPermission": [["Addr"]], "getNextState": [["Addr"]],
          "functionalRead": [["Addr", "Packet"], ["Addr", "Packet", "WriteMask"]]}
"""The parameter types with which the engine can call each of these functions."""


def hook(machine: ast.Machine, name: str) -> ast.Function | None:
    """The overload of getState, setState or setAccessPermission that the engine calls: the one whose parameters match the
    arguments of gem5's call, in whatever order the overloads are declared."""
    found = machine.function(name)
    if len(found) <= 1:
        return found[0] if found else None
    return next((f for f in found if [formal.type for formal in f.formals] == _given(machine, name)), None)


def _given(machine: ast.Machine, name: str) -> list[ast.Type | None]:
    """The types of the arguments that gem5 passes."""
    addr = next((f.type for function in machine.function(name) for f in function.formals if f.type.name == "Addr"), None)
    given = [machine.tbe_type if name != "setAccessPermission" else None, machine.entry_type]
    return [*(type_ for type_ in given if type_ is not None), addr, *([machine.state_type] if name in _SETTERS else [])]


def check_hooks(program: ast.Program, diagnostics: Diagnostics) -> None:
    for machine in program.machines:
        for name in ("getState", *_SETTERS):
            found, function = machine.function(name), hook(machine, name)
            if function is not None:
                _of_a_line(machine, function, diagnostics)
            elif found:
                wanted = ", ".join(str(type_ or "Addr") for type_ in _given(machine, name))
                diagnostics.error(found[0].loc, f"function '{name}': {len(found)} of this name, none with the parameters of the engine's "
                                  f"call: expected one with ({wanted})")
        for name, forms in _FORMS.items():
            found = machine.function(name)
            wanted = " or ".join(f"({describe(form)})" for form in forms)
            if found and not any(_has_form(function, forms) for function in found):
                diagnostics.error(found[0].loc, f"function {found[0].signature()}: called by the engine with other arguments: expected "
                                  f"{wanted}")
        for name, result in (("getState", machine.state_type), ("getAccessPermission", program.type("AccessPermission")),
                             ("getNextState", machine.state_type)):
            found = machine.function(name)
            function = hook(machine, name) if name == "getState" else next((f for f in found if _has_form(f, _FORMS[name])), None)
            for called in [function or found[0]] if found else []:
                if result is not None and called.return_type is not result:
                    diagnostics.error(called.loc, f"function '{name}': returns {called.return_type}: expected {result}")


def _has_form(function: ast.Function, forms: list[list[str]]) -> bool:
    return [formal.type.name for formal in function.formals] in forms


def _of_a_line(machine: ast.Machine, function: ast.Function, diagnostics: Diagnostics) -> None:
    """Checks that each parameter is the line's TBE, cache entry or address, or, of a setter, the new state."""
    given = [machine.tbe_type, machine.entry_type, machine.state_type if function.name in _SETTERS else None]
    for formal in function.formals:
        if formal.type.name != "Addr" and not any(formal.type is type_ for type_ in given):
            names = [str(type_) for type_ in given if type_ is not None]
            diagnostics.error(formal.loc, f"parameter of '{function.name}': of type {formal.type}: expected "
                              f"{describe([*names, 'Addr'])}, which the engine gives it")
