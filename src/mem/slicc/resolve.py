# SPDX-License-Identifier: BSD-3-Clause
"""Second half of resolution: bodies and expressions. Every name gets its declaration, every expression its type, every call its
overload; lists of states and events become transitions. After an error resolution continues with an unknown type that agrees
with every type, so that one mistake is reported once. ast/__init__.py states what holds afterwards."""
from __future__ import annotations

from collections.abc import Iterator

from . import ast, conversions
from .ast import Expr, Stmt, Type
from .calls import CallResolver
from .declare import Declarer
from .errors import Diagnostics, describe, expected
from .scopes import Namespace, Scope, Symbol
from .transitions import TransitionResolver

_STALL_HANDLERS = ("rsc_stall_handler", "prot_stall_handler")


class Resolver(CallResolver):
    """Walks the bodies of functions, methods, ports and actions. Its state: the namespace, the scope, and what encloses the
    statement."""

    def __init__(self, declarer: Declarer, diagnostics: Diagnostics) -> None:
        super().__init__(declarer, diagnostics)
        self.scope = Scope()
        self.returns: Type | None = None

    def run(self) -> None:
        program = self.program
        self.enter_space(self.declarer.space, None)
        self._methods(program.types)
        self._functions(program.functions)
        for machine in program.machines:
            self.enter_space(self.declarer.spaces[machine.name], machine)
            self._machine(machine)

    def enter_space(self, space: Namespace, machine: ast.Machine | None) -> None:
        self.space = space
        self.scope = space.scope
        self.machine = machine

    # ---- declarations with bodies

    def _methods(self, types: list[Type]) -> None:
        for declared in types:
            self.position = self.declarer.serial.of(declared)
            for field in declared.fields.values():
                if field.init is not None:
                    self._initial(field.init, field.type, f"field '{field.name}'",
                                  "" if "global" in declared.pairs else "only in global structures of gem5")
            outer = self.scope
            self.scope = Scope(outer)
            for field in declared.fields.values():
                self.scope.declare(field.name, Symbol("field", field, field.type, field.pointer or field.type.is_handle, field.loc))
            for overloads in declared.methods.values():
                for method in overloads:
                    self._function(method)
            self.scope = outer

    def _initial(self, init: Expr, declared: Type, what: str, in_gem5: str) -> None:
        """Resolves the initial value of a field or an object. It has to be a constant, because no other variable exists yet.
        `in_gem5` says what gem5 does otherwise."""
        value = init.operand if isinstance(init, ast.Unary) else init
        if not isinstance(value, (ast.Literal, ast.EnumRef, ast.Ood)):
            self.diagnostics.error(init.loc, f"{what}: begins with a computed value: expected a constant")
            return
        self.expr(init)
        self.assignable(init, declared, init.loc)
        if in_gem5:
            self.diagnostics.warning(init.loc, f"{what}: a value after ':=': {in_gem5}: expected default=\"..\"", "portability")

    def _functions(self, functions: list[ast.Function]) -> None:
        for function in functions:
            self.position = self.declarer.serial.of(function)
            self._function(function)

    def _function(self, function: ast.Function) -> None:
        if function.body is None:
            return
        outer = self.scope
        self.scope = Scope(outer)
        for formal in function.formals:
            if formal.name is not None and self.scope.declare(
                    formal.name, Symbol("formal", formal, formal.type, formal.is_pointer, formal.loc)):
                self.diagnostics.error(formal.loc, f"parameter '{formal.name}': already declared: expected a new name")
        self.returns, self.place = function.return_type, "function"
        self.block(function.body, own_scope=False)
        self.returns = None
        self.scope = outer

    def _machine(self, machine: ast.Machine) -> None:
        for decl in machine.decls:
            if isinstance(decl, (ast.InPort, ast.OutPort)):
                self._port(decl, machine)
        for decl in machine.objects:
            if decl.init is not None:
                self.position = self.declarer.serial.of(decl)
                zero = isinstance(decl.init, ast.Literal) and decl.init.value == 0
                self._initial(decl.init, decl.type, f"'{decl.name}'", "" if zero else "without effect in gem5")
        self._methods(machine.types)
        self._functions(machine.functions)
        for port in machine.in_ports:
            self.position = self.declarer.serial.of(port)
            self.place, self.in_port = "in_port", port
            self.block(port.body)
            self.in_port = None
        for action in machine.actions:
            self._action(action, machine)
        TransitionResolver(machine, self.declarer.serial, self.diagnostics).run()

    def _port(self, port: ast.InPort | ast.OutPort, machine: ast.Machine) -> None:
        self.position = self.declarer.serial.of(port)
        self.declarer.lookup_type(port.message_ref, self.space)
        self.expr(port.buffer)
        is_in = isinstance(port, ast.InPort)
        buffer = port.buffer.type
        if not self.is_unknown(buffer) and not (buffer.is_in_port_buffer if is_in else buffer.is_out_port_buffer):
            self.diagnostics.error(port.buffer.loc, f"queue of {'in' if is_in else 'out'}_port '{port.name}': of type {buffer}: expected "
                                   f"a queue such as MessageBuffer")
        kind = self.space.find_type("InPort" if is_in else "OutPort") or self.unknown
        symbol = Symbol("in_port" if is_in else "out_port", port, kind, False, port.loc)
        if self.scope.declare(port.name, symbol):
            self.diagnostics.error(port.loc, f"port '{port.name}': name already declared in machine '{machine.name}': expected a new name")
        if isinstance(port, ast.InPort):
            port.rsc_stall_handler, port.prot_stall_handler = (self._stall_handler(port, key) for key in _STALL_HANDLERS)
        known = ("desc", "rank", *_STALL_HANDLERS) if is_in else ("desc",)
        for key in port.pairs:
            if key not in (*known, "short"):
                self.diagnostics.warning(port.loc, f"{key}: at {'in' if is_in else 'out'}_port '{port.name}', where it has no effect: "
                                         f"expected {describe(known)}", "unknown-pair")

    def _stall_handler(self, port: ast.InPort, key: str) -> ast.Function | None:
        name = port.pairs.get(key)
        if name is None:
            return None
        found = self.space.find_functions(name)
        handler = next((f for f in found if not f.formals and f.return_type.name == "bool"), None)
        if handler is None:
            problem = f"with {found[0].signature()} of type {found[0].return_type}" if found else "unknown"
            self.diagnostics.error(port.loc, f"{key}: '{name}': {problem}: expected a function {name}() of type bool")
        return handler

    def _action(self, action: ast.Action, machine: ast.Machine) -> None:
        self.position = self.declarer.serial.of(action)
        self.place = "action"
        outer = self.scope
        self.scope = Scope(outer)
        self._builtin("address", self.space.find_type("Addr") or self.unknown, action.loc)
        if machine.tbe_type is not None:
            self._builtin("tbe", machine.tbe_type, action.loc)
        if machine.entry_type is not None:
            self._builtin("cache_entry", machine.entry_type, action.loc)
        self.block(action.body, own_scope=False)
        self.scope = outer
        for key in _resources(action.body):
            action.resources[key] = action.resources.get(key, 0) + 1

    def _builtin(self, name: str, kind: Type, loc: ast.Loc) -> ast.Builtin:
        builtin = ast.Builtin(loc=loc, name=name, type=kind, is_pointer=kind.is_handle)
        self.scope.declare(name, Symbol(name, builtin, kind, kind.is_handle, loc))
        return builtin

    # ---- statements

    def block(self, statements: list[Stmt], own_scope: bool = True) -> None:
        outer = self.scope
        if own_scope:
            self.scope = Scope(outer)
        for index, statement in enumerate(statements):
            replaced = self._statement(statement)
            if replaced is not None:
                statements[index] = replaced
        self.scope = outer

    def _statement(self, statement: Stmt) -> Stmt | None:
        """Resolves a statement; returns the node that replaces it if it is a call with a node of its own."""
        match statement:
            case ast.ExprStmt(expr=ast.Call() as call) if call.name in self.special:
                return self.special[call.name](call)
            case ast.ExprStmt(expr=expr):
                self.expr(expr)
                if not isinstance(expr, (ast.Call, ast.MethodCall, ast.ClassCall)) and not (
                        isinstance(expr, ast.Unary) and expr.op in ("++", "--")):
                    self.diagnostics.warning(expr.loc, "statement: no effect: expected an assignment or a call", "no-effect")
            case ast.LocalVar():
                self._local(statement)
            case ast.Assign(target=target, value=value):
                self._assign(target, value)
            case ast.If(branches=branches, otherwise=otherwise):
                for condition, body in branches:
                    self.expect(condition, "bool", "condition")
                    self.block(body)
                if otherwise is not None:
                    self.block(otherwise)
            case ast.Peek():
                self._peek(statement)
            case ast.Enqueue() | ast.DeferEnqueue():
                self._enqueue(statement)
            case ast.StallAndWait(port=port, address=address) | ast.WakeupPort(port=port, address=address) | ast.CheckProbe(
                    port=port, address=address):
                self._port_name(port, "in_port")
                self.expect(address, "Addr", "address")
                if isinstance(statement, ast.CheckProbe) and self.place != "in_port":
                    self.diagnostics.error(statement.loc, "check_on_cache_probe: misplaced: expected within an in_port")
            case ast.CheckAllocate(table=table):
                self.expr(table)
                if table.kind not in ("object", "param", ""):
                    self.diagnostics.error(table.loc, f"check_allocate: '{table.name}' is not a table: expected a table of the machine")
            case ast.CheckStopSlots(port=port):
                self.expr(port)
            case ast.Return(value=value):
                self._return(statement, value)
        return None

    def _local(self, statement: ast.LocalVar) -> None:
        declared = self.declarer.lookup_type(statement.type_ref, self.space)
        self.check_order(declared, statement.type_ref.loc)
        if declared is self.program.void_type:
            self.diagnostics.error(statement.loc, f"variable '{statement.name}': of type void: expected a type that has values")
        # gem5 enters the name before it looks at the value, so the value may not use an outer variable of that name
        earlier = self.scope.declare(statement.name, Symbol("local", statement, declared, statement.is_pointer, statement.loc))
        if earlier is not None:
            where = f" in line {earlier.loc.line}" if earlier.loc else ""
            self.diagnostics.error(statement.loc, f"variable '{statement.name}': already declared{where}: expected a new name")
        if statement.init is not None:
            self.expr(statement.init)
            self.assignable(statement.init, declared, statement.init.loc)

    def _assign(self, target: Expr, value: Expr) -> None:
        self.expr(target)
        self.expr(value)
        if not _is_place(target) and not self.is_unknown(target.type):
            self.diagnostics.error(target.loc, "assignment: to a value: expected a variable or a field")
        elif isinstance(target, ast.Name) and target.kind in ("in_port", "out_port", "in_msg"):
            self.diagnostics.error(target.loc, f"assignment: to {target.name}: expected a variable or a field")
        elif _root_kind(target) == "in_msg":
            self.diagnostics.error(target.loc, "assignment: to a received message: expected another variable or field")
        self.assignable(value, target.type, value.loc)

    def assignable(self, value: Expr, target: Type, loc: ast.Loc) -> None:
        """Reports when a value cannot be assigned to a variable of a type."""
        if self.is_unknown(value.type) or self.is_unknown(target):
            return
        price = conversions.cost(value.type, target, isinstance(value, ast.Ood))
        if price is None:
            downcast = value.type.is_handle and target.interface is value.type
            hint = f', as static_cast({target}, "pointer", ..) gives' if downcast else ""
            if (target.name, value.type.name) == ("NetDest", "Set"):
                hint = ", as its setNetDest(MachineType, Set) sets"
            if conversions.loses_bits(value.type, target):
                self.diagnostics.error(loc, f"assignment: {target} loses the upper bits of an Addr: expected a variable of type Addr")
                return
            self.diagnostics.error(loc, f"assignment: value of type {value.type}: expected {target}{hint}")
        elif price == conversions.NUMERIC:
            self.not_portable(loc, f"assignment: {value.type} to {target}")
        self.declarer.in_range(value, target, loc)

    def _peek(self, statement: ast.Peek) -> None:
        port = self._port_name(statement.port, "in_port")
        message = self.declarer.lookup_type(statement.message_ref, self.space)
        if isinstance(port, ast.InPort) and port.message is not message and not self.is_unknown(port.message, message):
            self.diagnostics.error(statement.message_ref.loc, f"peek: {message} at port '{port.name}': expected {port.message}")
        for key in ("block_on", "wake_up"):
            field = statement.pairs.get(key)
            if field is not None and not self.is_unknown(message):
                known = message.fields.get(field)
                if known is None:
                    self.diagnostics.error(statement.loc, f"{key}: '{field}' is not in {message}"
                                           + expected(field, message.fields, "a field of type Addr"))
                elif known.type.name != "Addr":
                    self.diagnostics.error(statement.loc, f"{key}: field '{field}' of type {known.type}: expected Addr")
        outer = self.scope
        self.scope = Scope(outer)
        statement.in_msg = self._builtin("in_msg", message, statement.loc)
        self.block(statement.body, own_scope=False)
        if statement.pairs.get("wake_up") in message.fields:
            statement.body.insert(0, self._wakes(statement.loc, statement.pairs["wake_up"]))
        self.scope = outer

    def _wakes(self, loc: ast.Loc, field: str) -> Stmt:
        """The call that `wake_up=` of a peek adds before its block. As an ordinary call, it needs no support in later layers."""
        message = ast.Name(loc=loc, name="in_msg")
        address = ast.Member(loc=loc, object=message, name=field)
        self.expr(address)
        void = ast.TypeRef(loc=loc, name="void", type=self.program.void_type)
        formal = ast.Formal(loc=loc, name=None, type_ref=ast.TypeRef(loc=loc, name="Addr", type=address.type))
        wake = ast.Function(loc=loc, name="wakeUpBuffers", return_ref=void, formals=[formal], pairs={}, machine=self.machine)
        call = ast.Call(loc=loc, name=wake.name, args=[address], function=wake, type=self.program.void_type)
        return ast.ExprStmt(loc=loc, expr=call)

    def _enqueue(self, statement: ast.Enqueue | ast.DeferEnqueue) -> None:
        port = self._port_name(statement.port, "out_port")
        message = self.declarer.lookup_type(statement.message_ref, self.space)
        if not self.is_unknown(message) and not message.is_message:
            self.diagnostics.error(statement.message_ref.loc, f'enqueue: {message}: expected a structure with interface="Message"')
        elif isinstance(port, ast.OutPort) and port.message is not message and not self.is_unknown(port.message, message):
            self._mismatch(statement, port, message)
        if isinstance(statement, ast.Enqueue):
            if statement.latency is not None:
                self.expr(statement.latency)
                if not self.is_unknown(statement.latency.type) and statement.latency.type.name not in ("int", "Cycles"):
                    self.diagnostics.error(statement.latency.loc, f"latency: of type {statement.latency.type}: expected Cycles or int")
            if statement.bypass is not None:
                self.expect(statement.bypass, "bool", "bypass flag")
        outer = self.scope
        self.scope = Scope(outer)
        statement.out_msg = self._builtin("out_msg", message, statement.loc)
        self.block(statement.body, own_scope=False)
        self.scope = outer

    def _mismatch(self, statement: ast.Enqueue | ast.DeferEnqueue, port: ast.OutPort, message: Type) -> None:
        """Reports a message of another type than the port's: a warning if an in_port takes this type from the same queue."""
        text = f"enqueue: {message} at port '{port.name}': expected {port.message}"
        in_ports = self.machine.in_ports if self.machine is not None else []
        if any(other.buffer.name == port.buffer.name and other.message is message for other in in_ports):
            self.diagnostics.warning(statement.message_ref.loc, text, "message-type")
        else:
            self.diagnostics.error(statement.message_ref.loc, text)

    def _port_name(self, name: ast.Name, kind: str) -> object:
        """The declaration of a port, or None after reporting that the name is something else."""
        self.expr(name)
        if name.kind not in (kind, ""):
            self.diagnostics.error(name.loc, f"'{name.name}': not an {kind}: expected an {kind}")
            return None
        return name.decl

    def _return(self, statement: ast.Return, value: Expr) -> None:
        self.expr(value)
        if self.returns is None:
            self.diagnostics.error(statement.loc, f"return: in an {self.place}: expected within a function")
        elif self.returns is self.program.void_type:
            self.diagnostics.error(statement.loc, "return: value in a void function: expected none")
        elif not self.is_unknown(value.type, self.returns):
            price = conversions.cost(value.type, self.returns, isinstance(value, ast.Ood))
            if price is None:
                self.diagnostics.error(value.loc, f"return: value of type {value.type}: expected {self.returns}")
            elif price == conversions.NUMERIC:
                self.not_portable(value.loc, f"return: {value.type} as {self.returns}")
            self.declarer.in_range(value, self.returns, value.loc)


def _is_place(expr: Expr) -> bool:
    return isinstance(expr, (ast.Name, ast.Member))


def _root_kind(expr: Expr) -> str:
    while isinstance(expr, ast.Member):
        expr = expr.object
    return expr.kind if isinstance(expr, ast.Name) else ""


def _resources(block: list[Stmt]) -> Iterator[ast.Resource]:
    """The ports and tables of which a block needs a slot, once per enqueue or check_allocate, in both arms of each if."""
    for statement in block:
        if isinstance(statement, (ast.Enqueue, ast.DeferEnqueue)):
            if isinstance(statement.port.decl, ast.OutPort):
                yield statement.port.decl
        elif isinstance(statement, ast.CheckAllocate):
            if isinstance(statement.table.decl, (ast.Param, ast.ObjectDecl)):
                yield statement.table.decl
        elif isinstance(statement, (ast.If, ast.Peek)):
            for inner in ast.child_blocks(statement):
                yield from _resources(inner)


def resolve(program: ast.Program, diagnostics: Diagnostics) -> None:
    """Resolves a parsed program in place. Raises Stop if there were errors."""
    declarer = Declarer(program, diagnostics)
    declarer.run()
    Resolver(declarer, diagnostics).run()
    elsewhere = {function.name for function in program.functions}
    for machine in program.machines:
        others = elsewhere | {function.name for function in machine.functions if function.body is None}
        for function in machine.functions:
            function.hides_others = function.body is not None and function.name in others
        _complete(machine, diagnostics)
    diagnostics.stop_on_error()


def _complete(machine: ast.Machine, diagnostics: Diagnostics) -> None:
    """Reports a machine without states, without events, or without the functions that the runtime calls to get and set states."""
    if machine.state_type is None or (machine.state_type.kind == "state" and not machine.states):
        diagnostics.error(machine.loc, f"machine '{machine.name}': no states: expected state_declaration(State, ..)")
    if machine.event_type is None or not machine.events:
        diagnostics.error(machine.loc, f"machine '{machine.name}': no events: expected enumeration(Event, ..)")
    needed = ("getState", "setState")
    missing = [name for name in needed if not machine.function(name)]
    if missing:
        diagnostics.error(machine.loc, f"machine '{machine.name}': functions missing: expected {describe(missing)}")
