# SPDX-License-Identifier: BSD-3-Clause
"""Expressions and statements of a model in C++: those of the engine's controllers, but for messages, triggers and times."""
from __future__ import annotations

from .. import ast
from ..emit_cpp.code import Code
from ..emit_cpp.writer import c_type, quoted


class ModelCode(Code):
    """As `Code`. A peeked message is the one that the rule is about; a message is sent by value; a trigger ends the rule when its
    transition is taken."""

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
        pass  # a message that is not taken stays, and is looked at again

    def _CheckStopSlots(self, s: ast.CheckStopSlots) -> None:
        pass  # buffers are as long as it takes

    def _StallPort(self, s: ast.StallPort) -> None:
        self.out("stalled_();")

    def _Trigger(self, s: ast.Trigger) -> None:
        args = ", ".join([self.expr(s.event), self.expr(s.entry) if s.entry is not None else "nullptr",
                          self.expr(s.tbe) if s.tbe is not None else "nullptr", self.expr(s.address)])
        self.out(f"if (take_({args})) return;")

    def _ErrorStmt(self, s: ast.ErrorStmt) -> None:
        self.out(f"error_at_({quoted(self.where(s))}, {self.expr(s.message)});")

    def _Assert(self, s: ast.Assert) -> None:
        condition = self.expr(s.condition)
        self.out(f"if (!({condition})) error_at_({quoted(self.where(s))}, {quoted('assertion failed: ' + condition)});")

    def where(self, s: ast.Stmt) -> str:
        return f"{s.loc.file.rsplit('/', 1)[-1]}:{s.loc.line}"
