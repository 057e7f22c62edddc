# SPDX-License-Identifier: BSD-3-Clause
"""Errors about the functions that the engine calls by their names: it gives each of them what it has of a line."""
from __future__ import annotations

from . import ast
from .errors import Diagnostics, describe

_SETTERS = ("setState", "setAccessPermission")
_FORMS = {"getAccessPermission": [["Addr"]], "getNextState": [["Addr"]],
          "functionalRead": [["Addr", "Packet"], ["Addr", "Packet", "WriteMask"]]}
"""The types of parameters with which the engine calls these."""


def check_hooks(program: ast.Program, diagnostics: Diagnostics) -> None:
    for machine in program.machines:
        for name in ("getState", *_SETTERS):
            for function in machine.function(name)[:1]:
                _of_a_line(machine, function, diagnostics)
        for name, forms in _FORMS.items():
            found = machine.function(name)
            wanted = " or ".join(f"({describe(form)})" for form in forms)
            if found and not any([formal.type.name for formal in function.formals] in forms for function in found):
                diagnostics.error(found[0].loc, f"function {found[0].signature()}: called by the engine with other arguments: expected "
                                  f"{wanted}")
        for name, result in (("getState", machine.state_type), ("getAccessPermission", program.type("AccessPermission")),
                             ("getNextState", machine.state_type)):
            for function in machine.function(name)[:1]:
                if result is not None and function.return_type is not result:
                    diagnostics.error(function.loc, f"function '{name}': returns {function.return_type}: expected {result}")


def _of_a_line(machine: ast.Machine, function: ast.Function, diagnostics: Diagnostics) -> None:
    """Each parameter is the line's TBE, cache entry or address; of a setter also the new state."""
    given = [machine.tbe_type, machine.entry_type, machine.state_type if function.name in _SETTERS else None]
    for formal in function.formals:
        if formal.type.name != "Addr" and not any(formal.type is type_ for type_ in given):
            names = [str(type_) for type_ in given if type_ is not None]
            diagnostics.error(formal.loc, f"parameter of '{function.name}': of type {formal.type}: expected "
                              f"{describe([*names, 'Addr'])}, which the engine gives it")
