# SPDX-License-Identifier: BSD-3-Clause
"""Expressions and statements of a model in C++: those of the engine's controllers, but for messages, triggers and times."""
from __future__ import annotations

from .. import ast
from ..emit_cpp.code import Code, shown
from ..emit_cpp.places import place
from ..emit_cpp.writer import Writer, c_field, c_type, quoted
from ..errors import Diagnostics
from .unread import Unread, counted

COUNTS = frozenset({"int", "uint32_t", "uint64_t", "Scalar", "NodeID", "RequestorID"})
"""Types of numbers that a state holds in one byte. Times are not among them: in a model they are 0."""


class ModelCode(Code):
    """Like `Code`, with these differences. A peeked message is the message of the rule. A message is sent by value. A trigger
    ends the rule when its transition is taken. What the engine checks at run time in a protocol from outside (a null handle, a
    divisor of 0) is a violation here."""

    is_model = True

    def __init__(self, out: Writer, diagnostics: Diagnostics, unread: Unread, in_machine: bool = False) -> None:
        super().__init__(out, diagnostics, checked=True)
        self.unread = unread
        self.in_machine = in_machine  # the rules of a machine, which record the place that a violation names

    @property
    def records_places(self) -> bool:
        return self.in_machine

    def is_handle(self, e: ast.Expr) -> bool:
        return self.is_pointer(e) and e.type is not None and e.type.is_handle

    def present(self, e: ast.Expr) -> str:
        where = "" if self.in_machine else f"{self.where(e)}: "
        return f"present_({self.expr(e)}, {quoted(where + shown(e))})"

    def _Member(self, e: ast.Member) -> str:
        if self.is_handle(e.object):
            return f"{self.present(e.object)}->{c_field(e.field)}"
        return super()._Member(e)

    def _MethodCall(self, e: ast.MethodCall) -> str:
        if self.is_handle(e.object) and "added" not in e.method.pairs:
            return f"{self.present(e.object)}->{e.name}({self.passed(e.method, e.args)})"
        return super()._MethodCall(e)

    def _Assign(self, s: ast.Assign) -> None:
        if isinstance(s.target, ast.Name) and isinstance(s.target.decl, ast.ObjectDecl) and not self.unread.keeps(s.target.decl):
            self.out(f"static_cast<void>({self.expr(s.value)});")  # it may be a call, or a violation
        elif s.target.type.name in COUNTS and self.unread.decides(s.target):
            self.out(f"assign_({self.expr(s.target)}, {self.expr(s.value)}, {quoted(self.where(s))});")
        else:
            super()._Assign(s)

    def _ExprStmt(self, s: ast.ExprStmt) -> None:
        e, object_ = s.expr, counted(s.expr)
        if object_ is not None and not self.unread.keeps(object_):
            return  # a statistic
        if isinstance(e, ast.Unary) and e.operand.type.name in COUNTS and self.unread.decides(e.operand):
            number = self.expr(e.operand)
            self.out(f"assign_({number}, {number} {e.op[0]} 1, {quoted(self.where(s))});")
        else:
            super()._ExprStmt(s)

    def port_method(self, port: ast.Name, e: ast.MethodCall) -> str:
        buffer, args = self.buffer(port), [self.expr(a) for a in e.args]
        return f"{buffer}.{e.name}({', '.join(args)})"

    def _Peek(self, s: ast.Peek) -> None:
        base = c_type(s.message_ref.type)
        with self.out.block(""):
            self.out(f"[[maybe_unused]] {base} &in_msg = {self.buffer(s.port)}.template peek<{base}>();")
            self.block(s.body)

    def _Enqueue(self, s: ast.Enqueue) -> None:
        base = c_type(s.message_ref.type)
        with self.out.block(""):
            self.out(f"{base} out_msg{{}};")
            self.block(s.body)
            self.locate(s)
            self.out(f"{self.buffer(s.port)}.send(out_msg);")

    def _DeferEnqueue(self, s: ast.DeferEnqueue) -> None:
        self.diagnostics.error(s.loc, "defer_enqueueing: not supported in a model: expected an enqueue in the action that ends the wait")

    def _New(self, e: ast.New) -> str:
        return f"NewEntry<{c_type(e.type_ref.type)}>{{}}"

    def _StallAndWait(self, s: ast.StallAndWait) -> None:
        self.out(f"{self.buffer(s.port)}.set_aside({self.expr(s.address)});")

    def _WakeupPort(self, s: ast.WakeupPort) -> None:
        self.out(f"{self.buffer(s.port)}.wake({self.expr(s.address)});")

    def _CheckNextCycle(self, s: ast.CheckNextCycle) -> None:
        pass  # a message that is not taken stays in its buffer and is polled again

    def _CheckStopSlots(self, s: ast.CheckStopSlots) -> None:
        pass  # buffers are never full

    def _StallPort(self, s: ast.StallPort) -> None:
        self.out("stalled_();")

    def _Trigger(self, s: ast.Trigger) -> None:
        args = ", ".join([self.expr(s.event), self.expr(s.entry) if s.entry is not None else "nullptr",
                          self.expr(s.tbe) if s.tbe is not None else "nullptr", self.expr(s.address),
                          quoted(s.loc.file_name), str(s.loc.line)])
        self.out(f"if (take_({args})) return;")

    def _ErrorStmt(self, s: ast.ErrorStmt) -> None:
        self.out(self.violation(s, self.expr(s.message)))

    def _Assert(self, s: ast.Assert) -> None:
        condition = self.expr(s.condition)
        self.out(f"if (!({condition})) {self.violation(s, quoted('assertion failed: ' + self.unchecked(s.condition)))}")

    def ended_without_value(self, f: ast.Function, error: str) -> None:
        self.out(self.violation(f, quoted(error)))

    def violation(self, s: ast.Node, text: str) -> str:
        """A statement that ends the rule. It records its place: a function that `s` has called may have recorded another one."""
        if self.in_machine:
            return f"{{ {place(s, self.files)} throw Violation({text}); }}"
        return f"error_at_({quoted(self.where(s))}, {text});"

    def where(self, s: ast.Node) -> str:
        return f"{s.loc.file_name}:{s.loc.line}"
