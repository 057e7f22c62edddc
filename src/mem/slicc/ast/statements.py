# SPDX-License-Identifier: BSD-3-Clause
"""Statements."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .expressions import Expr, Name
from .nodes import RESOLVED, Node, Pairs
from .types import Typed, TypeRef

if TYPE_CHECKING:
    from .declarations import Builtin, InPort


class Stmt(Node):
    """The base of all statements."""


class ExprStmt(Stmt):
    """An expression for its effect."""

    expr: Expr


class Assign(Stmt):
    """`target := value;`."""

    target: Expr
    value: Expr


class LocalVar(Stmt, Typed):
    """`T x;` or `T x := init;`. Visible to the end of the enclosing block. It is its own declaration object."""

    name: str
    init: Expr | None = None

    @property
    def is_pointer(self) -> bool:
        return self.type.is_handle


class If(Stmt):
    """`branches` are (condition, block) in order; `otherwise` is the final else's block or None."""

    branches: list[tuple[Expr, list[Stmt]]]
    otherwise: list[Stmt] | None


class _WithMessage(Stmt):
    """A statement whose block works on a message of a port."""

    port: Name
    message_ref: TypeRef


class Peek(_WithMessage):
    """Gives the head of the port's queue as `in_msg`. pairs: block_on, wake_up name an Addr field of the message. *resolved*: the
    body begins with the call of wakeUpBuffers that wake_up asks for."""

    pairs: Pairs
    body: list[Stmt]
    in_msg: Builtin = RESOLVED


class DeferEnqueue(_WithMessage):
    """defer_enqueueing: builds `out_msg` and keeps it until enqueueDeferredMessages."""

    body: list[Stmt]
    out_msg: Builtin = RESOLVED


class Enqueue(_WithMessage):
    """Builds `out_msg` and sends it `latency` cycles (default 1) later. `bypass` is the strict-FIFO bypass flag."""

    latency: Expr | None
    bypass: Expr | None
    body: list[Stmt]
    out_msg: Builtin = RESOLVED


class _AtPort(Stmt):
    """A statement about the messages for one address at a port."""

    port: Name
    address: Name


class StallAndWait(_AtPort):
    """Sets the head of the port aside until its address is woken."""


class WakeupPort(_AtPort):
    """Puts the messages that wait for the address back into the port's queue."""


class CheckProbe(_AtPort):
    """check_on_cache_probe: when `address` is blocked by this very port, delay the head and leave the port."""


class CheckAllocate(Stmt):
    """check_allocate: the transition needs a free slot of the table."""

    table: Name


class CheckNextCycle(Stmt):
    """Polls the ports again in the next cycle."""


class CheckStopSlots(Stmt):
    """check_stop_slots: reserves slots of an out_port."""

    port: Name
    first: str
    second: str


class Return(Stmt):
    """`return value;`."""

    value: Expr


class Trigger(Stmt):
    """trigger(event, address[, entry][, tbe]) in an in_port; `entry` and `tbe` are there when the machine has the type."""

    event: Expr
    address: Expr
    entry: Expr | None
    tbe: Expr | None
    in_port: InPort


class StallPort(Stmt):
    """stallPort(): polls the ports again in the next cycle."""


class ErrorStmt(Stmt):
    """error(message): a protocol error, never returns."""

    message: Expr


class Assert(Stmt):
    """assert(condition): a protocol error when the condition is false."""

    condition: Expr


class DebugPrint(Stmt):
    """DPRINTF(flag, format, args..) or, with `flag` None, DPRINTFN."""

    flag: str | None
    format: str
    args: list[Expr]


class Comment(Stmt):
    """APPEND_TRANSITION_COMMENT(value)."""

    value: Expr


class SetEntry(Stmt):
    """set_cache_entry(value); unset_cache_entry() has `value` None."""

    value: Expr | None


class SetTbe(Stmt):
    """set_tbe(value); unset_tbe() has `value` None."""

    value: Expr | None
