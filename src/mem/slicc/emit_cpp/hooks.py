# SPDX-License-Identifier: BSD-3-Clause
"""Calls of the functions that the engine knows by name: the arguments of a machine's getState, its setters and its entry finders
for a line."""
from __future__ import annotations

from .. import ast
from ..check_hooks import hook
from ..hits import function_looks_only
from ..runtime_names import own_function
from .writer import Writer

_MAKES_ENTRY = frozenset({"DirectoryMemory.allocate"})
"""Counts as no effect: a directory has an entry for each of its lines and makes it at the first look-up."""


class HookCalls:
    """The part of a machine's emitter that writes these calls."""

    def __init__(self, machine: ast.Machine, out: Writer) -> None:
        self.machine, self.out = machine, out

    def has(self, name: str) -> bool:
        return bool(self.machine.function(name))

    def entry_finders(self) -> list[ast.Function]:
        """The functions that find a line's entry by its address alone and have no side effects, because inspecting a line must
        not take part in the protocol. Those that return the entry type of the actions come first."""
        found = [f for f in self.machine.functions if f.return_type.is_entry and f.body is not None
                 and [x.type.name for x in f.formals] == ["Addr"] and function_looks_only(f, also=_MAKES_ENTRY)]
        return sorted(found, key=lambda f: f.return_type is not self.machine.entry_type)

    def getstate_args(self, line: str) -> str:
        """The arguments of getState for a line of which only the address is known. Its TBE is in one of the machine's tables."""
        args = []
        tables = [f"{o.name}.lookup({line})" for o in self.machine.objects
                  if o.type.name == "TBETable" and o.element in (None, self.machine.tbe_type)]
        for x in self.formals_of("getState"):
            if x.type is self.machine.tbe_type:
                args.append(f"first_of({', '.join(tables)})" if len(tables) > 1 else tables[0] if tables else "nullptr")
            elif x.type is self.machine.entry_type:
                args.append(f"found_entry({line})")
            else:
                args.append(line)
        return ", ".join(args)

    def found_entry(self) -> None:
        """Writes found_entry, which returns the entry of a line from whichever array holds it: a machine may have one finder for
        each array, or one for all."""
        if self.machine.entry_type is None:
            return
        with self.out.block("Entry_ *found_entry([[maybe_unused]] Addr line)"):
            for finder in self.entry_finders():
                if finder.return_type is self.machine.entry_type:
                    self.out(f"if (auto *e = {own_function(finder)}(line)) return e;")
            self.out("return nullptr;")

    def formals_of(self, name: str) -> list[ast.Formal]:
        """The parameters of the function that the engine calls."""
        function = hook(self.machine, name)
        assert function is not None  # check_hooks requires it
        return function.formals

    def state_call(self) -> str:
        names = {id(self.machine.tbe_type): "tbe", id(self.machine.entry_type): "cache_entry"}
        return ", ".join(names.get(id(x.type), "address") for x in self.formals_of("getState"))

    def setter_call(self, function: str) -> str | None:
        if not self.has(function):
            return None
        args = []
        for x in self.formals_of(function):
            if x.type is self.machine.tbe_type:
                args.append("tbe")
            elif x.type is self.machine.entry_type:
                args.append("cache_entry")
            elif x.type is self.machine.state_type:
                args.append("next")
            else:
                args.append("address")
        return f"{function}({', '.join(args)});"
