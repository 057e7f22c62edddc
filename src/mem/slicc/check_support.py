# SPDX-License-Identifier: BSD-3-Clause
"""Reports every use of a function, method or type that moscope's runtime does not define (supported.py), at its place in the
protocol, so that the C++ compiler does not have to find it. What a protocol's own C++ header defines is used as it is."""
from __future__ import annotations

import re
from collections.abc import Iterator

from . import ast
from .errors import Diagnostics, expected
from .supported import COUNTED, FUNCTIONS, HTM_METHODS, NOT_IMPLEMENTED, PARAMETERS, TYPES

_WORD = re.compile(r"[A-Za-z_]\w*")
_IN_DEFAULTS = {"RubySystem", "getBlockSizeBits", "getBlockSizeBytes", "Cycles", "Addr", "Tick", "true", "false", "nullptr", "NULL", "this",
                "m_ruby_system"}
_IN_TEMPLATES = {"int", "bool", "std", "string", "Addr", "Tick", "Cycles", "uint32_t", "uint64_t"}
_OWN_MEMORY = {"std::string", "BoolVec", "TimerTable", "CacheMemory", "DirectoryMemory", *TYPES}


class _Support:
    def __init__(self, program: ast.Program, diagnostics: Diagnostics) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self.own = program.own_names()
        constants = {value.c_name for type_ in self.types() for value in type_.value_list}
        functions = {function.name for function in program.functions if function.body is None}
        self.known = _IN_DEFAULTS | constants | functions | self.own

    def types(self) -> Iterator[ast.Type]:
        yield from self.program.types
        for machine in self.program.machines:
            yield from machine.types

    def run(self) -> None:
        for type_ in self.types():
            if type_.in_prelude:
                continue
            self.default_of(type_)
            self.methods_of(type_)
            for field in type_.fields.values():
                self.variable(field, f"field '{field.name}'", set())
                if (type_.is_message or type_.is_entry) and not type_.is_external:
                    self.copied(type_, field, "message" if type_.is_message else "cache entry")
        self.bodies([f for f in self.program.functions if not f.loc.file.startswith("<")], None)
        for machine in self.program.machines:
            names = {p.name for p in machine.params} | {o.name for o in machine.objects}
            names |= {"number_of_TBEs", "transitions_per_cycle", "recycle_latency", "version", "clusterID"}
            for param in machine.params:
                self.parameter(param)
            for decl in machine.objects:
                self.variable(decl, f"'{decl.name}'", names)
                if decl.type.name in ("MessageBuffer", "WireBuffer"):  # nothing would wake the messages that are set aside in it
                    self.diagnostics.error(decl.loc, f"'{decl.name}': {decl.type} in the body of machine '{machine.name}': expected a "
                                           f"parameter, {decl.type} * {decl.name}")
            self.bodies(machine.functions, machine)

    def parameter(self, param: ast.Param) -> None:
        type_ = param.type
        if type_.kind == "struct" and not type_.is_enum and type_.name not in PARAMETERS | self.own:
            self.diagnostics.error(param.loc, f"parameter '{param.name}': of type {type_}: expected a plain value or one of "
                                   f"{', '.join(sorted(PARAMETERS))}")

    def variable(self, decl: ast.Variable, what: str, names: set[str]) -> None:
        """An object or field: its type is defined, and so is all that its default and constructor name."""
        self.defined(decl.type, decl.loc, what)
        self.template(decl, what)
        for key in ("default", "constructor"):
            text = decl.pairs.get(key)
            for word in _WORD.findall(re.sub(r"'[^']*'|\"[^\"]*\"", "", text or "")):
                plain = re.sub(r"^m_|_ptr$", "", word)
                if text is not None and word not in self.known and plain not in names and decl.type.name not in self.own:
                    self.diagnostics.error(decl.loc, f"{key} of {what}: '{word}': unknown: expected a constant or a parameter")

    def template(self, decl: ast.Variable, what: str) -> None:
        """The types that a table or queue holds are named as in C++: L1Cache_TBE is the TBE of the machine L1Cache."""
        text = decl.pairs.get("template")
        if text is None or decl.type.name not in TYPES:
            return
        types = {type_.c_name: type_ for type_ in self.types()}
        for word in _WORD.findall(text):
            if word not in types and word not in self.own | _IN_TEMPLATES:
                own = [name for name in types if name.endswith(f"_{word}")]
                self.diagnostics.error(decl.loc, f"template of {what}: '{word}': unknown"
                                       + (f": expected {' or '.join(own)}" if own else expected(word, types, "the C++ name of a type")))
            elif decl.type.name == "PerfectCacheMemory" and word in types and not types[word].is_entry:
                self.diagnostics.error(decl.loc, f"template of {what}: {types[word]}: expected a structure with "
                                       'interface="AbstractCacheEntry"')

    def copied(self, type_: ast.Type, field: ast.Field, whole: str, depth: int = 0) -> None:
        """Messages and entries are copied bytewise, so their fields own no memory."""
        if field.pointer or depth > 8:
            return
        if field.type.name in _OWN_MEMORY:
            self.diagnostics.error(field.loc, f"field '{field.name}': of type {field.type} in {whole} {type_}: expected a type of fixed "
                                   "size, as these are copied bytewise")
        if field.type.kind == "struct" and not field.type.is_external and not field.type.is_handle:
            for inner in field.type.fields.values():
                self.copied(type_, inner, whole, depth + 1)

    def defined(self, type_: ast.Type, loc: ast.Loc, what: str) -> None:
        foreign = type_.kind == "external" or (type_.is_external and not type_.is_message)
        if foreign and not type_.in_prelude and type_.name not in TYPES and type_.name not in self.own:
            self.diagnostics.error(loc, f"{what}: of external type {type_}: not supported"
                                   + expected(type_.name, TYPES, "a type that moscope or the protocol's header defines"))

    def default_of(self, type_: ast.Type) -> None:
        """An enumeration's default is one of its values, named as in C++."""
        text, values = type_.pairs.get("default"), [value.c_name for value in type_.value_list]
        if type_.is_enum and text is not None and text not in values:
            self.diagnostics.error(type_.loc, f"default of type '{type_.name}': '{text}': unknown"
                                   + expected(text, values, "one of its values"))

    def methods_of(self, type_: ast.Type) -> None:
        """Reports methods without a body in a structure that the protocol itself defines."""
        if type_.is_external:
            return
        for overloads in type_.methods.values():
            for method in overloads:
                if method.body is None and not (type_.is_entry and method.name in HTM_METHODS):
                    self.diagnostics.error(method.loc, f"method '{method.name}' of {type_}: without a body: expected one")

    def bodies(self, functions: list[ast.Function], machine: ast.Machine | None) -> None:
        for function in functions:
            if function.body is not None:
                self.block(function.body)
        methods = [m for t in (machine.types if machine else self.program.types) for ms in t.methods.values() for m in ms]
        for method in methods:
            if method.body is not None:
                self.block(method.body)
        if machine is not None:
            for port in machine.in_ports:
                self.block(port.body)
            for action in machine.actions:
                self.block(action.body)

    def block(self, block: list[ast.Stmt]) -> None:
        for statement in ast.walk_statements(block):
            if isinstance(statement, ast.LocalVar):
                self.defined(statement.type, statement.loc, f"variable '{statement.name}'")
            elif isinstance(statement, ast.CheckAllocate):
                self.counts(statement.table)
            elif isinstance(statement, ast.DeferEnqueue):
                self.diagnostics.error(statement.loc, "defer_enqueueing: not supported: expected an enqueue in the action that ends "
                                       "the wait")
            elif isinstance(statement, ast.CheckStopSlots):
                self.diagnostics.error(statement.loc, "check_stop_slots: not supported: expected a bounded buffer, at which the "
                                       "transition stalls")
        for expr in ast.walk_exprs(block):
            if isinstance(expr, ast.Call) and expr.function is not None:
                self.call(expr)
            elif isinstance(expr, (ast.MethodCall, ast.ClassCall)) and expr.method is not None:
                self.method(expr)

    def counts(self, table: ast.Name) -> None:
        """Reports a table in check_allocate that cannot say how many free places it has."""
        type_ = table.type
        own = {type_.name, "areNSlotsAvailable"} <= self.own
        is_buffer = isinstance(table.decl, ast.Param) and table.decl.is_buffer
        if not (type_.name in COUNTED or is_buffer or "areNSlotsAvailable" in type_.methods or own):
            self.diagnostics.error(table.loc, f"check_allocate: '{table.name}' of type {type_}, which counts no places: expected a table "
                                   "with a method areNSlotsAvailable, such as a TBETable")

    def call(self, expr: ast.Call) -> None:
        function = expr.function
        if function.body is not None or function.synthetic or expr.name in self.own or self.of_prelude(function):
            return
        counts = FUNCTIONS.get(expr.name)
        if counts is None:
            self.diagnostics.error(expr.loc, f"function '{expr.name}': external and not supported"
                                   + expected(expr.name, FUNCTIONS, "a body, or a function of the protocol's C++ header"))
        elif len(expr.args) not in counts:
            self.diagnostics.error(expr.loc, f"function '{expr.name}': with {len(expr.args)} arguments: expected "
                                   f"{' or '.join(map(str, counts))}")

    def of_prelude(self, function: ast.Function) -> bool:
        return any(t.in_prelude and t.loc.file.rsplit("/", 1)[0] == function.loc.file.rsplit("/", 1)[0] for t in self.program.types[:1])

    def method(self, expr: ast.MethodCall | ast.ClassCall) -> None:
        method = expr.method
        owner = method.owner
        if owner is None or method.body is not None or owner.name in self.own:
            return
        signature = method.signature().replace(" ", "")
        if "added" in method.pairs:
            if f"{owner.c_name}_{method.name}" not in self.own:
                self.diagnostics.error(expr.loc, f"method '{method.name}' of {owner}: added without C++: expected a function "
                                       f"{owner.c_name}_{method.name} in the protocol's header")
            return
        if owner.in_prelude:
            if signature in NOT_IMPLEMENTED.get(owner.name, ()):
                self.diagnostics.error(expr.loc, f"method {signature} of {owner}: not supported: expected another method of {owner}")
        elif owner.is_external and owner.name in TYPES and expr.name not in TYPES[owner.name].methods:
            self.diagnostics.error(expr.loc, f"method '{expr.name}' of {owner}: not supported"
                                   + expected(expr.name, TYPES[owner.name].methods, "a supported method", 16))


def check_support(program: ast.Program, diagnostics: Diagnostics) -> None:
    """Reports what cannot be expressed; the caller stops on errors."""
    _Support(program, diagnostics).run()
