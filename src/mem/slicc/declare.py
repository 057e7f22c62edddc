# SPDX-License-Identifier: BSD-3-Clause
"""First half of resolution: enters every declaration of the program and its machines into its namespace, and completes types
(fields, values, interfaces, methods, the implicit X_to_string and X_to_permission), parameters and their defaults. resolve.py
does the bodies."""
from __future__ import annotations

import re

from . import ast
from .build import MAX_DIGITS
from .conversions import ONE_TYPE
from .errors import Diagnostics, Stop, expected
from .parse import MORE_PRELUDE, PRELUDE, parse_expression
from .scopes import Namespace, Serial, Symbol

_WITHIN_MACHINES = {ast.Action: "action", ast.TransitionDecl: "transition", ast.InPort: "in_port", ast.OutPort: "out_port"}
_MISPLACED = "outside of a machine: expected within machine(..) { .. }"
ALIASES = {"AbstractEntry": "AbstractCacheEntry", "Prefetcher": "RubyPrefetcher"}
"""Names that types had in gem5 before 2020."""
OLD_TYPES = {"Address": "Addr", "Time": "Cycles or Tick"}
"""Types that gem5's SLICC no longer has, and what takes their place."""
VIRTUAL_NETWORKS = 16
"""The number of virtual networks in the engine (src/mem/ruby/network/params.hh)."""
RANGES = {"int": (-2**31, 2**31 - 1), "Cycles": (0, 2**63 - 1), "Tick": (0, 2**63 - 1), "uint32_t": (0, 2**32 - 1),
          "uint64_t": (0, 2**64 - 1)}
_NUMBER = re.compile(rf"-?[0-9]{{1,{MAX_DIGITS}}}")
_VOID = "of type void: expected a type that has values"


class Declarer:
    """Fills the lists of Program and Machine. Afterwards `space` is the program's Namespace, and `spaces` has one per machine, by
    name."""

    def __init__(self, program: ast.Program, diagnostics: Diagnostics) -> None:
        self.program = program
        self.own = program.own_names()
        self.diagnostics = diagnostics
        self.serial = Serial()
        self.space = Namespace()
        self.spaces: dict[str, Namespace] = {}
        self.constants: dict[str, ast.EnumValue] = {}
        program.void_type = ast.Type(loc=program.loc, name="void", kind="builtin", pairs={"primitive": "yes", "external": "yes"})
        program.ood_type = ast.Type(loc=program.loc, name="OOD", kind="builtin", pairs={})
        self.unknown = ast.Type(loc=program.loc, name="<unknown>", kind="unknown", pairs={})
        self.space.types["void"] = program.void_type

    def run(self) -> None:
        for decl in self.program.decls:
            self.serial.number(decl)
            if isinstance(decl, ast.Machine):
                self._enter_machine(decl)
            else:
                self._enter(decl, self.space, None)
        for old, name in ALIASES.items():
            if name in self.space.types:
                self.space.types.setdefault(old, self.space.types[name])
        known = self.space.types.get("MachineType")
        if known is None:
            self.diagnostics.error(self.program.loc, 'protocol: no prelude: expected include "RubySlicc_interfaces.slicc";')
            raise Stop
        self._machine_types([value.name for value in known.value_list])
        for declared in self.program.types:
            self._complete_type(declared, self.space)
        for name in self.space.functions:
            self._complete_functions(name, self.space)
        for machine in self.program.machines:
            self._complete_machine(machine)
        for declared in self.program.types:
            self._defaults(declared)
        for machine in self.program.machines:
            for declared in machine.types:
                self._defaults(declared)
        for decl in self.program.globals:
            self._object_type(decl, self.space)

    # ---- entering names

    def _machine_types(self, known: list[str]) -> None:
        """Reports machines whose names are no MachineType. What follows uses names that begin with the machine's, so it is not
        looked at."""
        unknown = [machine for machine in self.program.machines if machine.name not in known]
        for machine in unknown:
            self.diagnostics.error(machine.loc, f"machine '{machine.name}': unknown" + expected(machine.name, known, "a MachineType", 30))
        if unknown:
            raise Stop

    def _enter_machine(self, machine: ast.Machine) -> None:
        if any(other.name == machine.name for other in self.program.machines):
            self.diagnostics.error(machine.loc, f"machine '{machine.name}': declared twice: expected one machine of this name")
            return
        kind = machine.pairs.pop("enumeration_of_name")
        if kind != "MachineType":
            self.diagnostics.error(machine.loc, f"machine '{machine.name}': of type {kind}: expected MachineType:{machine.name}")
        self.program.machines.append(machine)
        space = self.spaces[machine.name] = Namespace(self.space)
        for param in machine.params:
            self.serial.number(param)
        for decl in machine.decls:
            self.serial.number(decl)
            if isinstance(decl, ast.Machine):
                self.diagnostics.error(decl.loc, f"machine '{decl.name}': within machine '{machine.name}': expected a '}}' before it")
            else:
                self._enter(decl, space, machine)

    def _enter(self, decl: ast.Node, space: Namespace, machine: ast.Machine | None) -> None:
        owner: ast.Program | ast.Machine = machine if machine is not None else self.program
        if isinstance(decl, ast.Type):
            self._enter_type(decl, space, machine)
            if space.types.get(decl.name) is decl:
                owner.types.append(decl)
        elif isinstance(decl, ast.Function):
            decl.machine = machine
            owner.functions.append(decl)
            space.functions.setdefault(decl.name, []).append(decl)
        elif isinstance(decl, ast.ObjectDecl):
            decl.machine = machine
            if machine is not None:
                machine.objects.append(decl)
            else:
                self.program.globals.append(decl)
        elif machine is None:
            what = next((text for kind, text in _WITHIN_MACHINES.items() if isinstance(decl, kind)), "declaration")
            self.diagnostics.error(decl.loc, f"{what}: {_MISPLACED}")
        elif isinstance(decl, ast.InPort):
            decl.index = len(machine.in_ports)
            rank = decl.pairs.get("rank", "0")
            if rank.isdecimal():
                decl.rank = int(rank[:MAX_DIGITS])
            else:
                self.diagnostics.error(decl.loc, f"rank: '{rank}': expected a number")
            machine.in_ports.append(decl)
        elif isinstance(decl, ast.OutPort):
            machine.out_ports.append(decl)
        elif isinstance(decl, ast.Action):
            self._enter_action(decl, machine)

    def _enter_action(self, action: ast.Action, machine: ast.Machine) -> None:
        for other in machine.actions:
            if other.name == action.name:
                self.diagnostics.error(action.loc, f"action '{action.name}': already declared in line {other.loc.line}: "
                                       "expected a new name")
                return
            if other.short == action.short:
                self.diagnostics.error(action.loc, f"short name '{action.short}': already that of action '{other.name}': "
                                       "expected a new one")
        machine.actions.append(action)

    def _enter_type(self, declared: ast.Type, space: Namespace, machine: ast.Machine | None) -> None:
        declared.machine = machine
        declared.in_prelude = declared.loc.file.startswith(PRELUDE)
        if declared.pairs.get("interface") == "AbstractEntry":  # gem5 before 2020: an entry that actions do not see
            declared.pairs |= {"interface": "AbstractCacheEntry", "main": "false"}
        earlier = space.types.get(declared.name)
        if earlier is not None and earlier.in_prelude and declared.loc.file.endswith(MORE_PRELUDE):
            self._extend(earlier, declared)
            return
        if earlier is not None:
            where = "by the prelude" if earlier.in_prelude else f"in line {earlier.loc.line}"
            self.diagnostics.error(declared.loc, f"type '{declared.name}': already declared {where}: expected a new name")
            return
        space.types[declared.name] = declared
        if declared.name in ("Event", "RequestType", "State") and machine is None and not declared.in_prelude:
            self.diagnostics.error(declared.loc, f"type '{declared.name}': {_MISPLACED}")
        if declared.kind == "state" and declared.name != "State":
            self.diagnostics.error(declared.loc, f"state_declaration: '{declared.name}': expected State")
        if declared.kind == "enum" and declared.name == "State":
            self.diagnostics.error(declared.loc, "enumeration: State: expected state_declaration(State, ..), which gives permissions")
        for value in declared.value_list:
            if value.name in declared.values:
                self.diagnostics.error(value.loc, f"value '{value.name}': already in '{declared.name}': expected a new name")
                continue
            value.index = len(declared.values)
            value.owner = declared
            declared.values[value.name] = value
            self.constants[value.c_name] = value
        declared.value_list = list(declared.values.values())
        if machine is not None:
            self._note_special(declared, machine)

    def _extend(self, known: ast.Type, more: ast.Type) -> None:
        """Adds to a type of the prelude what the protocol's extra prelude declares for it, marked with the pair "added"."""
        for member in more.members:
            if isinstance(member, (ast.ObjectDecl, ast.Function)):
                member.pairs["added"] = "yes"
        known.members.extend(more.members)
        for value in more.value_list:
            if value.name in known.values:
                self.diagnostics.error(value.loc, f"value '{value.name}': already in '{known.name}': expected a new name")
                continue
            value.pairs["added"] = "yes"
            value.index, value.owner = len(known.values), known
            known.values[value.name] = value
            known.value_list.append(value)
            self.constants[value.c_name] = value

    def _note_special(self, declared: ast.Type, machine: ast.Machine) -> None:
        if declared.name == "State":
            machine.state_type = declared
        elif declared.name == "Event":
            machine.event_type = declared
        elif declared.name == "RequestType":
            machine.request_type_type = declared
        elif declared.name == "TBE" and not declared.is_external:
            machine.tbe_type = declared
        elif declared.is_entry and declared.pairs.get("main", "").lower() != "false":
            if machine.entry_type is not None:
                self.diagnostics.error(declared.loc, f"type '{declared.name}': second cache entry after '{machine.entry_type.name}': "
                                       'expected main="false"')
            else:
                machine.entry_type = declared

    # ---- completing what was entered

    def lookup_type(self, ref: ast.TypeRef, space: Namespace) -> ast.Type:
        """Fills in a reference; reports an unknown type."""
        found = space.find_type(ref.name)
        if found is None and ref.name in OLD_TYPES:
            self.diagnostics.error(ref.loc, f"type '{ref.name}': of gem5 before 2015: expected {OLD_TYPES[ref.name]}, and a protocol in "
                                   "today's SLICC (gem5's history shows how its own protocols changed)")
            found = self.unknown
        if found is None:
            self.diagnostics.error(ref.loc, f"type '{ref.name}': unknown{expected(ref.name, space.type_names(), 'a declared type')}")
            found = self.unknown
        ref.type = found
        return found

    def _complete_type(self, declared: ast.Type, space: Namespace) -> None:
        name = declared.pairs.get("interface")
        if name is not None and name != "Message":
            declared.interface = space.find_type(name)
            if declared.interface is None:
                self.diagnostics.error(declared.loc, f"interface '{name}': unknown"
                                       + expected(name, space.type_names(), "a declared type"))
            elif declared.kind == "struct" and not declared.is_external and not declared.is_entry:
                self.diagnostics.error(declared.loc, f"interface '{name}': of a structure of the protocol's own: expected Message, "
                                       f"AbstractCacheEntry, or a field of type {name}")
        for member in list(declared.members):
            if isinstance(member, ast.ObjectDecl):
                self._add_field(declared, member, space)
            elif isinstance(member, ast.Function):
                member.owner = declared
                member.machine = declared.machine
                if declared.is_external and not declared.in_prelude and f"{declared.name}_{member.name}" in self.own:
                    member.pairs["added"] = "yes"
                declared.methods.setdefault(member.name, []).append(member)
                self._signature(member, space)
        for overloads in declared.methods.values():
            self._distinct(overloads, f"method of '{declared.name}'")
        if declared.kind in ("enum", "state"):
            self._implicit_function(declared, "to_string", "std::string", space)
        if declared.kind == "state":
            self._implicit_function(declared, "to_permission", "AccessPermission", space)
            self._permissions(declared)

    def _permissions(self, declared: ast.Type) -> None:
        known = self.space.find_type("AccessPermission")
        for state in declared.states:
            kind = state.pairs.pop("permission_type")
            if kind != "AccessPermission":
                self.diagnostics.error(state.loc, f"state '{state.name}': permission of type {kind}: expected AccessPermission")
            elif known is not None and state.permission not in known.values:
                self.diagnostics.error(state.loc, f"permission '{state.permission}': unknown"
                                       + expected(state.permission, known.values, "an AccessPermission"))

    def _add_field(self, declared: ast.Type, member: ast.ObjectDecl, space: Namespace) -> None:
        field = ast.Field(loc=member.loc, name=member.name, type_ref=member.type_ref, pointer=member.pointer, pairs=member.pairs,
                          init=member.init, owner=declared, names_type=not (declared.in_prelude or declared.is_external)
                          and space.find_type(member.name) is not None)
        if field.name in declared.fields:
            self.diagnostics.error(field.loc, f"field '{field.name}': already in '{declared.name}': expected a new name")
            return
        if self.lookup_type(field.type_ref, space) is self.program.void_type:
            self.diagnostics.error(field.loc, f"field '{field.name}': {_VOID}")
        declared.fields[field.name] = field
        declared.members = [field if other is member else other for other in declared.members]

    def _implicit_function(self, declared: ast.Type, what: str, result: str, space: Namespace) -> None:
        def ref(name: str) -> ast.TypeRef:
            return ast.TypeRef(loc=declared.loc, name=name, type=space.find_type(name) or self.unknown)

        function = ast.Function(loc=declared.loc, name=f"{declared.c_name}_{what}", return_ref=ref(result), pairs={"external": "yes"},
                                formals=[ast.Formal(loc=declared.loc, name=None, type_ref=ref(declared.name))], body=None,
                                machine=declared.machine, synthetic=True)
        space.functions.setdefault(function.name, []).append(function)

    def _complete_functions(self, name: str, space: Namespace) -> None:
        for function in space.functions[name]:
            if not function.synthetic:
                self._signature(function, space)
        self._distinct(space.functions[name], "function")

    def _signature(self, function: ast.Function, space: Namespace) -> None:
        self.lookup_type(function.return_ref, space)
        for formal in function.formals:
            if self.lookup_type(formal.type_ref, space) is self.program.void_type:
                self.diagnostics.error(formal.loc, f"parameter of '{function.name}': {_VOID}")
            if formal.name is None and function.body is not None:
                self.diagnostics.error(formal.loc, f"parameter of '{function.name}': unnamed: expected a name in a function with a body")
            if formal.type.is_handle and formal.qualifier not in ("", "PTR"):
                self.diagnostics.warning(formal.loc, f"parameter of '{function.name}': '&' with handle type '{formal.type}', where it has "
                                         "no effect: expected no '&'", "no-effect")
                formal.qualifier = ""

    def _distinct(self, overloads: list[ast.Function], what: str) -> None:
        seen: dict[tuple[str, ...], ast.Function] = {}
        defined: dict[tuple[str, ...], ast.Function] = {}
        for function in overloads:
            key = tuple(formal.type_ref.name for formal in function.formals)
            earlier = seen.setdefault(key, function)
            if earlier is not function:
                self.diagnostics.error(function.loc, f"{what} {function.signature()}: already declared in line "
                                       f"{earlier.loc.line}: expected other parameter types")
            elif function.body is not None:
                earlier = defined.setdefault(tuple(ONE_TYPE.get(name, name) for name in key), function)
                if earlier is not function:
                    self.diagnostics.error(function.loc, f"{what} {function.signature()}: in C++ the same as {earlier.signature()} of line "
                                           f"{earlier.loc.line}: expected another name, or other parameter types")

    def _complete_machine(self, machine: ast.Machine) -> None:
        space = self.spaces[machine.name]
        for declared in machine.types:
            self._complete_type(declared, space)
        for name in space.functions:
            self._complete_functions(name, space)
        for param in machine.params:
            self.lookup_type(param.type_ref, space)
            self._network(param)
            symbol = Symbol("param", param, param.type, False, param.loc)
            if space.scope.declare(param.name, symbol):
                self.diagnostics.error(param.loc, f"parameter '{param.name}': already declared: expected a new name")
            if param.default is not None:
                param.default = self._param_default(param, param.default)
            elif param.pairs.get("default") is not None:
                expr = self.constant(param.pairs["default"], param.loc)
                param.default = self._param_default(param, expr) if expr is not None else None
        for decl in machine.objects:
            self._object_type(decl, space)

    def _object_type(self, decl: ast.ObjectDecl, space: Namespace) -> None:
        if self.lookup_type(decl.type_ref, space) is self.program.void_type:
            self.diagnostics.error(decl.loc, f"'{decl.name}': {_VOID}")
        template = (decl.template or "").strip("<> ")
        for declared in space.types.values():
            if template and declared.c_name == template:
                decl.element = declared
        decl.default_text = decl.pairs.get("default", decl.type.pairs.get("default"))
        if decl.default_text is not None:
            decl.default_value = self.constant(decl.default_text, decl.loc)
            self.in_range(decl.default_value, decl.type, decl.loc)
        kind = "object" if decl.machine is not None else "global"
        earlier = space.scope.declare(decl.name, Symbol(kind, decl, decl.type, False, decl.loc))
        if earlier is not None:
            where = f" in line {earlier.loc.line}" if earlier.loc else ""
            self.diagnostics.error(decl.loc, f"'{decl.name}': already declared{where}: expected a new name")

    def _network(self, param: ast.Param) -> None:
        if param.network is None:
            return
        if param.network not in ("To", "From"):
            self.diagnostics.error(param.loc, f"network: '{param.network}': expected To or From")
        if not param.is_buffer:
            self.diagnostics.error(param.loc, f"network: on '{param.name}' of type {param.type}: expected a MessageBuffer")
        elif "virtual_network" not in param.pairs:
            self.diagnostics.warning(param.loc, f"buffer '{param.name}': no virtual_network: expected a number, or a direct "
                                     "connection to its peer", "network")
        elif param.virtual_network is None:
            self.diagnostics.error(param.loc, f"virtual_network: '{param.pairs['virtual_network']}': expected 0 to {VIRTUAL_NETWORKS - 1}")
        elif param.virtual_network >= VIRTUAL_NETWORKS:
            self.diagnostics.error(param.loc, f"virtual_network: {param.virtual_network}: expected 0 to {VIRTUAL_NETWORKS - 1}")
        elif "vnet_type" not in param.pairs:
            self.diagnostics.error(param.loc, f"buffer '{param.name}': no vnet_type: expected one with virtual_network")

    def in_range(self, value: ast.Expr | None, declared: ast.Type, loc: ast.Loc) -> None:
        """Reports a number that C++ cannot hold in a type."""
        sign, literal = (-1, value.operand) if isinstance(value, ast.Unary) and value.op == "-" else (1, value)
        if not isinstance(literal, ast.Literal) or isinstance(literal.value, (bool, str)) or declared.name not in RANGES:
            return
        low, high = RANGES[declared.name]
        number = sign * literal.value
        if number > high or number < min(low, -2**31):
            self.diagnostics.error(loc, f"number: {number}: expected {low} to {high} ({declared.name})")

    def _param_default(self, param: ast.Param, given: ast.Expr) -> ast.Expr | None:
        """A literal of the parameter's type. gem5 also accepts Python's spelling in a string."""
        value: object = None
        if isinstance(given, ast.Unary) and given.op == "-" and isinstance(given.operand, ast.Literal):
            value = -given.operand.value if isinstance(given.operand.value, (int, float)) else None
        elif isinstance(given, ast.Literal):
            value = given.value
        name = param.type.name
        if name == "bool" and isinstance(value, str) and value in ("True", "False", "true", "false"):
            value = value in ("True", "true")
        elif name not in ("bool", "std::string") and isinstance(value, str) and _NUMBER.fullmatch(value):
            value = int(value)
        fits = {"bool": isinstance(value, bool), "std::string": isinstance(value, str)}.get(
            name, isinstance(value, (int, float, str)) and not isinstance(value, bool))
        if name in ("int", "Cycles", "Tick", "uint32_t", "uint64_t") and not isinstance(value, int):
            fits = False
        if not fits or (param.type.kind == "struct" and param.type is not self.unknown):
            self.diagnostics.error(given.loc, f"default of '{param.name}': of another type: expected {name}")
            return None
        low, high = RANGES.get(name, (0, 0))
        if name in RANGES and isinstance(value, int) and not low <= value <= high:
            self.diagnostics.error(given.loc, f"default of '{param.name}': {value}: expected {low} to {high} ({name})")
            return None
        return ast.Literal(loc=given.loc, value=value, type=param.type)  # type: ignore[arg-type]

    # ---- defaults

    def _defaults(self, declared: ast.Type) -> None:
        for field in declared.fields.values():
            field.default_text = field.pairs.get("default", field.type.pairs.get("default"))
            if field.default_text is not None:
                field.default_value = self.constant(field.default_text, field.loc)
                self.in_range(field.default_value, field.type, field.loc)

    def constant(self, text: str, loc: ast.Loc) -> ast.Expr | None:
        """The value of C++ text in a pair if it is a plain constant (a number, a bool, an enumeration value, nullptr), else None."""
        if text in self.constants:
            value = self.constants[text]
            ref = ast.TypeRef(loc=loc, name=value.owner.name, type=value.owner)
            return ast.EnumRef(loc=loc, type_ref=ref, value_name=value.name, value=value, type=value.owner)
        if text in ("nullptr", "NULL"):
            return ast.Ood(loc=loc, type=self.program.ood_type, is_pointer=True)
        expr = parse_expression(text, loc)
        negative = isinstance(expr, ast.Unary) and expr.op == "-"
        if negative:
            expr = expr.operand  # type: ignore[union-attr]
        if isinstance(expr, ast.Call) and expr.name == "Cycles" and len(expr.args) == 1:
            expr = expr.args[0]
        if not isinstance(expr, ast.Literal):
            return None
        value = -expr.value if negative and not isinstance(expr.value, (str, bool)) else expr.value  # type: ignore[assignment]
        name = "bool" if isinstance(value, bool) else "std::string" if isinstance(value, str) else "int"
        return ast.Literal(loc=loc, value=value, type=self.space.find_type(name) or self.unknown)  # type: ignore[arg-type]
