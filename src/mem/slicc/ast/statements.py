# SPDX-License-Identifier: BSD-3-Clause
"""Statements."""
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional

from .expressions import Expr, Name
from .nodes import Node, Pairs
from .types import Type, TypeRef

if TYPE_CHECKING:
    from .declarations import Builtin, InPort


@dataclass(eq=False, kw_only=True)
class Stmt(Node):
    pass


@dataclass(eq=False, kw_only=True)
class ExprStmt(Stmt):
    expr: Expr


@dataclass(eq=False, kw_only=True)
class Assign(Stmt):
    target: Expr
    value: Expr


@dataclass(eq=False, kw_only=True)
class LocalVar(Stmt):
    """`T x;` or `T x := init;`. Visible to the end of the enclosing block. It is its own declaration object."""

    name: str
    type_ref: TypeRef
    init: Optional[Expr] = None

    @property
    def type(self) -> Type:
        return self.type_ref.type

    @property
    def is_pointer(self) -> bool:
        return self.type.is_handle


@dataclass(eq=False, kw_only=True)
class If(Stmt):
    """`branches` are (condition, block) in order; `otherwise` is the final else's block or None."""

    branches: list[tuple[Expr, list[Stmt]]]
    otherwise: Optional[list[Stmt]]


@dataclass(eq=False, kw_only=True)
class Peek(Stmt):
    """Gives the head of the port's queue as `in_msg`. pairs: block_on, wake_up name an Addr field of the message."""

    port: Name
    message_ref: TypeRef
    pairs: Pairs
    body: list[Stmt]
    in_msg: Builtin = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class Enqueue(Stmt):
    """Builds `out_msg` and sends it `latency` cycles (default 1) later. `bypass` is the strict-FIFO bypass flag."""

    port: Name
    message_ref: TypeRef
    latency: Optional[Expr]
    bypass: Optional[Expr]
    body: list[Stmt]
    out_msg: Builtin = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class DeferEnqueue(Stmt):
    port: Name
    message_ref: TypeRef
    body: list[Stmt]
    out_msg: Builtin = None  # type: ignore[assignment]


@dataclass(eq=False, kw_only=True)
class StallAndWait(Stmt):
    port: Name
    address: Name


@dataclass(eq=False, kw_only=True)
class WakeupPort(Stmt):
    port: Name
    address: Name


@dataclass(eq=False, kw_only=True)
class CheckAllocate(Stmt):
    table: Name


@dataclass(eq=False, kw_only=True)
class CheckNextCycle(Stmt):
    pass


@dataclass(eq=False, kw_only=True)
class CheckStopSlots(Stmt):
    port: Name
    first: str
    second: str


@dataclass(eq=False, kw_only=True)
class CheckProbe(Stmt):
    """check_on_cache_probe: when `address` is blocked by this very port, delay the head and leave the port."""

    port: Name
    address: Name


@dataclass(eq=False, kw_only=True)
class Return(Stmt):
    value: Expr


@dataclass(eq=False, kw_only=True)
class Trigger(Stmt):
    """trigger(event, address[, entry][, tbe]) in an in_port; `entry` and `tbe` are there when the machine has the type."""

    event: Expr
    address: Expr
    entry: Optional[Expr]
    tbe: Optional[Expr]
    in_port: InPort


@dataclass(eq=False, kw_only=True)
class StallPort(Stmt):
    """stallPort(): look at the ports again in the next cycle."""


@dataclass(eq=False, kw_only=True)
class ErrorStmt(Stmt):
    """error(message): a protocol error, never returns."""

    message: Expr


@dataclass(eq=False, kw_only=True)
class Assert(Stmt):
    condition: Expr


@dataclass(eq=False, kw_only=True)
class DebugPrint(Stmt):
    """DPRINTF(flag, format, args..) or, with `flag` None, DPRINTFN."""

    flag: Optional[str]
    format: str
    args: list[Expr]


@dataclass(eq=False, kw_only=True)
class Comment(Stmt):
    """APPEND_TRANSITION_COMMENT(value)."""

    value: Expr


@dataclass(eq=False, kw_only=True)
class SetEntry(Stmt):
    """set_cache_entry(value); unset_cache_entry() has `value` None."""

    value: Optional[Expr]


@dataclass(eq=False, kw_only=True)
class SetTbe(Stmt):
    """set_tbe(value); unset_tbe() has `value` None."""

    value: Optional[Expr]
