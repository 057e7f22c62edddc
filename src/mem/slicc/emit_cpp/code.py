# SPDX-License-Identifier: BSD-3-Clause
"""Expressions and statements in C++.

The same walk writes a controller's polling code, its actions and functions, and (with `probe`) the side-effect-free twin of the
mandatory queue's in_port, in which a trigger becomes a test whether the transition is a pure hit.
"""
from __future__ import annotations

from .. import ast
from ..ast.walk import child_exprs
from ..errors import Diagnostics
from ..events import certain_events
from ..hits import probe_evaluates, probe_executes
from ..runtime_names import own, own_function
from .enqueue import enqueue
from .places import CHECKED_OPERATORS, LAST_LINE, place, records_place
from .repeated import Key, assertions, key, repeated
from .writer import Writer, c_field, c_type, constant, initial, passed, quoted

#: Functions that check the operands of methods of WriteMask (foreign/located.hh).
MASK_CHECKS = {"setMask": "set_mask", "getMask": "get_mask", "test": "test_byte", "firstBitSet": "first_bit_set",
               "count": "count_bytes", "setBlockSize": "set_block_size"}

#: The same as CHECKED_OPERATORS for a function, by name and number of arguments.
CHECKED_CALLS = {("mod", 2): "remainder_of"}
CHECKED_ON_ENGINE = {**CHECKED_CALLS, ("bitSelect", 3): "select_bits", ("maskLowOrderBits", 2): "mask_bits",
                     ("makeLineAddress", 2): "mask_bits"}


class Code:
    """Writes expressions and statements to `out`; one method per kind of node. Reports what C++ cannot express."""

    is_model = False  # messages have no more than the fields that the protocol declares

    def __init__(self, out: Writer, diagnostics: Diagnostics, probe: ast.InPort | None = None, heads: dict[str, int] | None = None,
                 located: bool = False, checked: bool = False) -> None:
        self.out = out
        self.diagnostics = diagnostics
        self.probe = probe
        # Buffers for which the controller keeps the time of the first message, each with its index.
        self.heads = heads or {}
        # For a protocol from outside: statements that can fail in the runtime record their place, and operations that can fail are
        # checked (foreign/located.hh).
        self.located = located and probe is None
        # The files that these statements are in, for the controller's table of files.
        self.files: dict[str, None] = {}
        # The statement that is being written; null handles and failed assertions record its place.
        self.statement: ast.Stmt | None = None
        # Variables with the results of look-ups that hold until the end of a row of assertions.
        self.made: dict[Key, str] = {}
        self.variables = 0
        # C++ text for the beginning of the next nested block.
        self.opening = ""
        # The same checks where there is no controller: in functions of messages, and outside of machines.
        self.checked = checked
        # Buffers with several in_ports, each of which takes one type of message and leaves the others to the other in_ports. Set
        # while an in_port is written.
        self.shared: frozenset[str] = frozenset()
        # A message becomes the cause of what follows when it is peeked at, not when it starts a transition.
        self.is_cause = False
        # A stall may end although the controller makes no transition.
        self.stalls_end_unseen = False
        # The statements of an in_port that take no message out of a buffer.
        self.keeps_heads = False
        # Of those: the buffer whose isReady() the statements depend on, and the buffer whose first message is in_msg.
        self.ready = self.peeked = ""

    # ------------------------------------------------------------------------------------------------ expressions

    def is_pointer(self, e: ast.Expr) -> bool:
        """Whether a member access on this C++ expression is written with an arrow."""
        if isinstance(e, ast.Name) and isinstance(e.decl, ast.Param):
            return e.decl.pointer and not e.decl.is_buffer
        if isinstance(e, ast.Name) and e.kind == "object" and isinstance(e.decl, ast.ObjectDecl):
            return e.decl.pointer
        return e.is_pointer

    def buffer(self, name: ast.Name) -> str:
        """The C++ member behind a port or buffer name."""
        return self.buffer(name.decl.buffer) if isinstance(name.decl, ast.Port) else name.name

    def expr(self, e: ast.Expr) -> str:
        if self.made and (made := self.made.get(key(e) or ())):
            return made
        text: str = getattr(self, "_" + type(e).__name__)(e)
        return text

    def args(self, args: list[ast.Expr]) -> str:
        return ", ".join(self.expr(a) for a in args)

    def passed(self, function: ast.Function, args: list[ast.Expr]) -> str:
        return ", ".join(passed(function, a, to, self.expr(a)) for a, to in zip(args, function.formals, strict=True))

    def unchecked(self, e: ast.Expr) -> str:
        """An expression as errors show it: without the checks of a protocol from outside."""
        return Code(Writer(), self.diagnostics).expr(e)

    def _Literal(self, e: ast.Literal) -> str:
        return constant(e)

    def _Name(self, e: ast.Name) -> str:
        if e.kind in ("in_port", "out_port"):
            return self.buffer(e)
        if e.kind == "field" and isinstance(e.decl, ast.Field):
            return c_field(e.decl)
        return own(e.name) if e.kind in ("local", "formal") else e.name

    def _EnumRef(self, e: ast.EnumRef) -> str:
        return constant(e)

    def _Member(self, e: ast.Member) -> str:
        if "added" in e.field.pairs:  # added to a message of the engine by the extra prelude; the engine's message has no such field
            return f"{c_type(e.field.type)}{{{initial(e.field)}}}"
        if self.located and self.is_pointer(e.object) and e.object.type is not None and e.object.type.is_handle:
            return f"{self.present(e.object)}->{c_field(e.field)}"
        return f"{self.expr(e.object)}{'->' if self.is_pointer(e.object) else '.'}{c_field(e.field)}"

    def _Call(self, e: ast.Call) -> str:
        checked = (CHECKED_CALLS if self.is_model else CHECKED_ON_ENGINE).get((e.name, len(e.args)))
        if self.checked and checked and e.function.body is None:
            return f"{checked}({self.args(e.args)})"
        return f"{own_function(e.function)}({self.passed(e.function, e.args)})"

    def _MethodCall(self, e: ast.MethodCall) -> str:
        target = e.object
        added = "added" in e.method.pairs  # a function of the protocol's header
        if not added and isinstance(target, ast.Name) and (target.kind == "in_port" or (target.type and target.type.name == "InPort")):
            return self.port_method(target, e)
        if added and e.method.owner is not None:
            object_ = f"{'*' if self.is_pointer(target) else ''}{self.expr(target)}"
            return f"{e.method.owner.c_name}_{e.name}({', '.join([object_, *map(self.expr, e.args)])})"
        if e.name == "equal" and target.type is not None and target.type.name == "DataBlock":
            return f"({self.expr(target)} == {self.expr(e.args[0])})"
        if self.located:
            checked = self.checked_method(target, e)
            if checked is not None:
                return checked
        arrow = "->" if self.is_pointer(target) else "."
        in_place = target.type is not None and target.type.name == "CacheMemory"
        args = ", ".join(map(self.in_place, e.args)) if in_place else self.passed(e.method, e.args)
        return f"{self.expr(target)}{arrow}{e.name}({args})"

    def object(self, e: ast.Expr) -> str:
        """What an expression that may be a pointer points to."""
        return f"{'*' if self.is_pointer(e) else ''}{self.expr(e)}"

    def in_place(self, e: ast.Expr) -> str:
        """An argument for a method of CacheMemory, which constructs new entries in place."""
        return f"NewEntry<{c_type(e.type_ref.type)}>{{}}" if isinstance(e, ast.New) else self.expr(e)

    def checked_method(self, target: ast.Expr, e: ast.MethodCall) -> str | None:
        """A call that may fail, with its check; None if it needs none."""
        kind = target.type.name if target.type is not None else ""
        args = [self.expr(a) for a in e.args]
        match kind, e.name:
            case "CacheMemory", "cacheProbe":
                return f"victim_of({self.object(target)}, {args[0]})"
            case "PerfectCacheMemory", "lookup":
                return f"lookup_or_make({self.expr(target)}, {args[0]})"
            case "NetDest", "add" if e.args[0].type.name == "MachineID":
                return f"{self.expr(target)}.add(existing({args[0]}))"
            case "NetDest", "isElement" | "remove":
                return f"{'is_element' if e.name == 'isElement' else 'remove_from'}({self.expr(target)}, {args[0]})"
            case "CacheMemory", "allocate" | "allocateVoid":
                arrow = "->" if self.is_pointer(target) else "."
                given = [f"not_in({self.object(target)}, {args[0]})", *map(self.in_place, e.args[1:])]
                return f"{self.expr(target)}{arrow}{e.name}({', '.join(given)})"
            case "Set", "add" | "remove" | "isElement":
                return f"{self.expr(target)}.{e.name}(number_of_set({args[0]}))"
            case "TimerTable", "nextAddress":
                return f"next_address({self.expr(target)})"
            case "DataBlock", "copyPartial" if len(args) == 3:
                return f"copy_partial({self.object(target)}, {', '.join(args)})"
            case "WriteMask", method if method in MASK_CHECKS:
                return f"{MASK_CHECKS[method]}({', '.join([self.object(target), *args])})"
            case "DirectoryMemory", "allocate" | "deallocate":
                arrow, has = "->" if self.is_pointer(target) else ".", "not_in" if e.name == "allocate" else "entered_in"
                line = f"{has}({self.object(target)}, kept_by({self.object(target)}, {args[0]}))"
                return f"{self.expr(target)}{arrow}{e.name}({', '.join([line, *args[1:]])})"
        if target.type is not None and target.type.is_handle and self.is_pointer(target):
            return f"{self.present(target)}->{e.name}({self.passed(e.method, e.args)})"
        return None

    def present(self, handle: ast.Expr) -> str:
        """A handle that must not be null."""
        where = "" if self.statement is None else f", {self.here(self.statement)}"
        return f"present({self.expr(handle)}, {quoted(shown(handle))}{where})"

    def here(self, s: ast.Stmt) -> str:
        """The place of a statement, as a number."""
        self.files[s.loc.file_name] = None
        return f"here({quoted(s.loc.file_name)}, {min(s.loc.line, LAST_LINE)})"

    def has_slots(self, resource: ast.Resource, slots: int) -> str:
        """Whether an out_port or a table has this many free slots now. gem5 checks the slots at the same moment."""
        if isinstance(resource, ast.OutPort):
            return f"{self.buffer(resource.buffer)}.areNSlotsAvailable({slots}, now_)"
        methods = resource.type.methods.get("areNSlotsAvailable", [])
        by_pointer = resource.pointer and not (isinstance(resource, ast.Param) and resource.is_buffer)
        if methods and all("added" in method.pairs for method in methods):  # a function of the protocol's header
            return f"{resource.type.c_name}_areNSlotsAvailable({'*' * by_pointer}{resource.name}, {slots}, now_)"
        return f"{resource.name}{'->' if by_pointer else '.'}areNSlotsAvailable({slots}, now_)"

    def port_method(self, port: ast.Name, e: ast.MethodCall) -> str:
        buffer, args = self.buffer(port), [self.expr(a) for a in e.args]
        match e.name:
            case "isReady" if self.probe is not None:
                return "true"
            case "isReady" if buffer in self.heads and args == ["clockEdge()"]:
                return f"head_ready({self.heads[buffer]})"
            case "dequeue":
                return f"{'take' if self.located and buffer_type(port) else 'dequeue'}({buffer})"
            case "recycle" if self.located:
                return f"recycle_head({buffer}, {args[0]}, {args[1]})"
            case "recycle":
                return f"{buffer}.recycle({args[0]}, ({args[0]}) + ({args[1]}))"
        return f"{buffer}.{e.name}({', '.join(args)})"

    def _ClassCall(self, e: ast.ClassCall) -> str:
        return f"{c_type(e.type_ref.type)}::{e.name}({self.passed(e.method, e.args)})"

    def _Binary(self, e: ast.Binary) -> str:
        if self.checked and e.op in CHECKED_OPERATORS:
            return f"{CHECKED_OPERATORS[e.op]}({self.expr(e.left)}, {self.expr(e.right)})"
        return f"({self.expr(e.left)} {e.op} {self.expr(e.right)})"

    def _Unary(self, e: ast.Unary) -> str:
        return f"({e.op}{self.expr(e.operand)})"

    def _IsValid(self, e: ast.IsValid) -> str:
        return f"({self.expr(e.operand)} {'==' if e.negated else '!='} nullptr)"

    def _StaticCast(self, e: ast.StaticCast) -> str:
        operand = self.expr(e.operand)
        if e.mode == "ref":
            operand = f"*({operand})" if e.operand.is_pointer else f"({operand})"
        sign = {"pointer": " *", "ref": " &"}.get(e.mode, "")
        return f"static_cast<{c_type(e.type_ref.type)}{sign}>({operand})"

    def _New(self, e: ast.New) -> str:
        if e.type_ref.type.is_entry:
            return f"EntryPool<{c_type(e.type_ref.type)}>::make()"
        return f"new {c_type(e.type_ref.type)}()"

    def _Ood(self, e: ast.Ood) -> str:
        return constant(e)

    # ------------------------------------------------------------------------------------------------- statements

    def block(self, statements: list[ast.Stmt]) -> None:
        around = self.statement
        row: list[ast.Assert] = []  # assertions that share look-ups, from the next one on
        for i, s in enumerate(statements):
            self.statement = s
            if self.located and isinstance(s, ast.Assert):
                if not row:
                    self.made, row = {}, assertions(statements, i)
                    self.make_once(repeated(row))
                row = row[1:]
            elif not isinstance(s, (ast.Assert, ast.DebugPrint, ast.Comment)):
                self.made, row = {}, []
            if self.probe is not None and not isinstance(s, (ast.If, ast.Trigger)) and not probe_executes(s, self.probe):
                # A statement with an effect ends the probe: the request goes through the queue.
                self.out("return nullptr;")
                return
            if (self.located or self.checked) and not isinstance(s, (ast.DebugPrint, ast.Comment, ast.CheckAllocate)) and s.loc.line:
                self.out(place(s, self.files) if self.records_places and self.can_fail(s) else "// " + place(s))
            getattr(self, "_" + type(s).__name__)(s)
        self.statement, self.made = around, {}

    def make_once(self, lookups: dict[Key, ast.Expr]) -> None:
        """Writes variables for the results of look-ups."""
        for lookup, e in lookups.items():
            self.variables += 1
            name = f"made{self.variables}_"
            self.out(f"const auto {name} = {self.expr(e)};")
            self.made[lookup] = name

    def function(self, f: ast.Function) -> None:
        """The body of a function. In a protocol from outside, its end without a value is an error, not what C++ makes of it."""
        self.block(f.body or [])
        if (self.located or self.checked) and f.return_ref.name != "void" and not ast.never_ends(f.body or []):
            self.ended_without_value(f, f"function '{f.name}': ended without a value: expected a return of {f.return_type}")

    def ended_without_value(self, f: ast.Function, error: str) -> None:
        self.out(f"assertion_failed({quoted(error)}, {quoted(f.loc.file_name)}, {f.loc.line});")

    @property
    def records_places(self) -> bool:
        return self.located

    def locate(self, s: ast.Node) -> None:
        """Records the place of a statement, for errors in what follows."""
        if self.records_places:
            self.out(place(s, self.files))

    def can_fail(self, s: ast.Stmt) -> bool:
        """Whether a statement, apart from nested statements, can end in an error that has to name its place."""
        if self.located:
            return records_place(s)
        plain = (ast.Name, ast.Literal, ast.EnumRef, ast.IsValid, ast.Unary, ast.Binary)
        return not isinstance(s, (ast.If, ast.Return, ast.LocalVar, ast.Assign)) or any(
            not isinstance(e, plain) and not (isinstance(e, ast.Member) and not self.is_pointer(e.object))
            or isinstance(e, ast.Binary) and e.op in CHECKED_OPERATORS for child in child_exprs(s) for e in ast.walk_expr(child))

    def _ExprStmt(self, s: ast.ExprStmt) -> None:
        e = s.expr
        value = not (isinstance(e, (ast.Call, ast.MethodCall, ast.ClassCall)))
        self.out(("(void)" if value else "") + self.expr(e) + ";")

    def _Assign(self, s: ast.Assign) -> None:
        if isinstance(s.target, ast.Name) and s.target.kind == "out_msg" and not self.is_model:
            self.out(f"copy_fields({self.expr(s.target)}, {self.expr(s.value)});")
            return
        self.out(f"{self.expr(s.target)} = {self.expr(s.value)};")

    def _LocalVar(self, s: ast.LocalVar) -> None:
        base = c_type(s.type)
        pointer = s.is_pointer or (s.init is not None and s.init.is_pointer)
        if pointer:
            init = self.expr(s.init) if s.init is not None else "nullptr"
            self.out(f"[[maybe_unused]] {base} *{own(s.name)} = {init};")
        elif s.init is not None:
            self.out(f"[[maybe_unused]] {base} {own(s.name)} = {self.expr(s.init)};")
        else:
            self.out(f"[[maybe_unused]] {base} {own(s.name)}{{}};")

    def _If(self, s: ast.If) -> None:
        word = "if"
        for condition, body in s.branches:
            if self.probe is not None and not probe_evaluates(condition, self.probe):
                self.out("return nullptr;" if word == "if" else "} else {\n    return nullptr;\n}")
                return
            self.out(f"{word} ({self.expr(condition)}) {{")
            around, self.ready = self.ready, self.found_ready(condition) or self.ready
            self.nested(body)
            self.ready = around
            word = "} else if"
        if s.otherwise is not None:
            self.out("} else {")
            self.nested(s.otherwise)
        self.out("}")

    def nested(self, body: list[ast.Stmt]) -> None:
        self.out.depth += 1
        if self.opening:
            self.out(self.opening)
            self.opening = ""
        self.block(body)
        self.out.depth -= 1

    def _Peek(self, s: ast.Peek) -> None:
        # Blocking on an address (block_on=) belongs to split locked accesses, which are closures here.
        base = c_type(s.message_ref.type)
        with self.out.block(""):
            if self.located:
                buffer = self.buffer(s.port)
                head = "head_for" if buffer in self.shared else "ready_head" if buffer == self.ready else "head"
                self.out(f"[[maybe_unused]] {base} &in_msg = {head}<{base}>({buffer}, {self.here(s)});")
            elif self.probe is None:
                self.out(f"[[maybe_unused]] {base} &in_msg = *static_cast<{base} *>({self.buffer(s.port)}.peek());")
            if self.is_cause:
                self.out(f"cause({self.buffer(s.port)});")
            around, self.peeked = self.peeked, self.buffer(s.port) if self.keeps_heads else ""
            self.block(s.body)
            self.peeked = around

    def found_ready(self, condition: ast.Expr) -> str:
        """The buffer that certainly has a message if the condition holds, as long as no statement takes one; empty: none."""
        match condition:
            case ast.MethodCall(name="isReady", object=ast.Name(kind="in_port") as port, args=[now]) if self.keeps_heads:
                return self.buffer(port) if buffer_type(port) and self.expr(now) == "clockEdge()" else ""
        return ""

    def _Enqueue(self, s: ast.Enqueue) -> None:
        with self.out.block(""):
            enqueue(self, s)

    def _DeferEnqueue(self, s: ast.DeferEnqueue) -> None:
        self.diagnostics.error(s.loc, "defer_enqueueing: not supported: expected an enqueue in the action that ends the wait")

    def _StallAndWait(self, s: ast.StallAndWait) -> None:
        if self.located:
            self.out(f"stall_head({self.buffer(s.port)}, {self.expr(s.address)});")
        else:
            self.out(f"{self.buffer(s.port)}.stall({self.expr(s.address)});")

    def _WakeupPort(self, s: ast.WakeupPort) -> None:
        self.out(f"{self.buffer(s.port)}.wake({self.expr(s.address)});")

    def _CheckAllocate(self, s: ast.CheckAllocate) -> None:
        pass  # a resource of the transition

    def _CheckNextCycle(self, s: ast.CheckNextCycle) -> None:
        self.out("look_again_next_cycle();")

    def _CheckStopSlots(self, s: ast.CheckStopSlots) -> None:
        self.diagnostics.error(s.loc, "check_stop_slots: not supported: expected a bounded buffer, at which the transition stalls")

    def _CheckProbe(self, s: ast.CheckProbe) -> None:
        pass  # no address is ever blocked: locked accesses are closures

    def _Return(self, s: ast.Return) -> None:
        self.out(f"return {self.expr(s.value)};")

    def _Trigger(self, s: ast.Trigger) -> None:
        event = self.expr(s.event)
        args = ", ".join([self.expr(s.entry) if s.entry is not None else "nullptr",
                          self.expr(s.tbe) if s.tbe is not None else "nullptr",
                          self.expr(s.address)])
        if self.probe is not None:
            known = all(probe_evaluates(e, self.probe) for e in ast.child_exprs(s))
            self.out(f"return if_pure({event}, {args});" if known else "return nullptr;")
            return
        buffer = s.in_port.buffer
        is_timer = buffer.type is not None and buffer.type.name == "TimerTable"
        head = ", in_msg" if self.peeked == self.buffer(buffer) else ""
        self.out("no_cause();" if is_timer else f"cause({self.buffer(buffer)}{head});")
        possible = certain_events(s.event)
        if possible is None:
            self.transition(f"doTransition({event}, {args})", s.in_port)
        elif isinstance(s.event, ast.EnumRef):
            self.transition(f"on_{s.event.value.name}({args})", s.in_port)
        else:
            with self.out.block(f"switch ({event})"):
                for value in possible:
                    self.out(f"case {value.c_name}:")
                    self.transition(f"on_{value.name}({args})", s.in_port)
                    self.out("break;")
                self.out("default: __builtin_unreachable();")

    def transition(self, call: str, port: ast.InPort) -> None:
        with self.out.block(f"switch ({call})"):
            self.out("case Result::valid: goto after_transition;")
            self.out(f"case Result::resource_stall: {after(port.rsc_stall_handler)}look_again_next_cycle(); break;")
            again = "look_again_next_cycle(); " * self.stalls_end_unseen
            self.out(f"case Result::protocol_stall: {after(port.prot_stall_handler)}{again}break;")

    def _StallPort(self, s: ast.StallPort) -> None:
        self.out("look_again_next_cycle();")

    def _ErrorStmt(self, s: ast.ErrorStmt) -> None:
        where = f"{quoted(s.loc.file_name)}, {s.loc.line}"
        if self.probe is not None:
            self.out("return nullptr;")
        elif isinstance(s.message, ast.Literal):  # no string is made on the hot path
            self.out(f"assertion_failed({quoted(str(s.message.value))}, {where});")
        else:
            self.out(f"protocol_error({self.expr(s.message)}, {where});")

    def _Assert(self, s: ast.Assert) -> None:
        if self.probe is not None:
            return
        condition = self.expr(s.condition)
        where = f"{quoted(s.loc.file_name)}, {s.loc.line}" + (f", {self.here(s)}" if self.located else "")
        self.out(f"protocol_assert({condition}, {quoted('assertion failed: ' + self.unchecked(s.condition))}, {where});")

    def _DebugPrint(self, s: ast.DebugPrint) -> None:
        pass  # `moscope trace` shows messages and transitions

    def _Comment(self, s: ast.Comment) -> None:
        pass

    def _SetEntry(self, s: ast.SetEntry) -> None:
        self.out(f"cache_entry = {self.entry_value(s.value)};")

    def _SetTbe(self, s: ast.SetTbe) -> None:
        self.out(f"tbe = {self.entry_value(s.value)};")

    def entry_value(self, value: ast.Expr | None) -> str:
        if value is None:
            return "nullptr"
        text = self.expr(value)
        target = value.type
        if target is not None and target.name == "AbstractCacheEntry":
            return f"static_cast<Entry_ *>({text})"
        return text


def after(handler: ast.Function | None) -> str:
    """What a stall does first: if the in_port has a handler for it and the handler says so, it polls all in_ports again at once."""
    return f"if ({own_function(handler)}()) goto after_transition; " if handler is not None else ""


def buffer_type(port: ast.Name) -> bool:
    """Whether an in_port reads messages, not a timer table."""
    buffer = port.decl.buffer if isinstance(port.decl, ast.Port) else None
    return buffer is not None and buffer.type is not None and buffer.type.name in ("MessageBuffer", "WireBuffer")


def shown(e: ast.Expr) -> str:
    """A handle as an error names it."""
    match e:
        case ast.Name(name=name):
            return name
        case ast.Call(name=name) | ast.MethodCall(name=name):
            return f"{name}(..)"
        case ast.Member(object=object_, name=name):
            return f"{shown(object_)}.{name}"
    return "a handle"
