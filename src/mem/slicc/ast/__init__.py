# SPDX-License-Identifier: BSD-3-Clause
"""The syntax tree of SLICC, and what later layers may rely on.

All layers share one tree. `parse.py` builds it, and `resolve.py` fills in every attribute marked *resolved*; `check.py`, `hits.py`
and the emitters only read it. The language is that of gem5 24: its parser is the reference for syntax, its symbol classes for
meaning. Latencies are in cycles of the controller that runs the statement.

What holds after `resolve.resolve(program)` returned without an error
---------------------------------------------------------------------
* `Program.types`, `.functions`, `.globals` and `.machines` list the declarations in order, the prelude first. What a machine
  declares is only in that machine's lists.
* Every `TypeRef.type`, `Expr.type` and `Expr.is_pointer` is set. `Expr.type` is a `Type` object, one object per declared
  type: compare with `is`. The type of `OOD` is `Program.ood_type`; a call without result has `Program.void_type`.
* `is_pointer` says that the value is a nullable handle and that a member access goes through it: values of a type with
  `Type.is_handle` (the machine's TBE, everything with interface AbstractCacheEntry, AbstractCacheEntry itself),
  formals and locals declared `T * x`, `new T`, `static_cast(T, "pointer", x)`, calls of functions with `return_by_pointer="yes"`, `OOD`.
  A machine parameter or object is never `is_pointer`: whether it was declared with a star is `decl.pointer`.
* `Name.decl` is the declaration object and `Name.kind` one of NAME_KINDS; `EnumRef.value`, `Member.field`, `Call.function`,
  `MethodCall.method`, `ClassCall.method` are set. Overloads have been chosen: exact match first, then derived for
  interface, then among int, Cycles, Tick, uint32_t, uint64_t, NodeID, and bool for a number. Arguments were type-checked;
  no conversion nodes are inserted, an emitter compares the types itself.
* `x[y, ..]` is a `MethodCall` of `lookup` with `subscript=True`.
* `T x := e;` and `T x;` are `LocalVar` statements. `else if` chains are the `branches` of one `If`.
* Calls with a meaning of their own are nodes of their own: `Trigger`, `StallPort`, `ErrorStmt`, `Assert`,
  `DebugPrint`, `Comment`, `SetEntry`, `SetTbe`. They do not occur as `Call`.
* `Machine.transitions` has exactly one `Transition` per (state, event) pair, lists expanded in order. `next_state` is a
  `State`, or None for `*` (ask getNextState(address) before the actions run). A transition without a next state names its
  own state. `Transition.is_stall`: one of its actions is called z_stall; no action runs, and the message stays at the head of its port.
* `Machine.in_ports` is in order of declaration, which is the order of polling; `rank` serves wake-ups only.
* `Action.resources` and `Transition.resources` map an `OutPort`, a TBE table or another named place to the slots needed: one
  per enqueue or check_allocate in the text of the action, both arms of an `if` counted, summed over the actions. A
  transition starts only when all are free; otherwise it is a resource stall.
* Within the body of a structure's method, the structure's own fields are `Name`s of kind "field".

Declarations that have no body are external: the runtime, or the class behind an external type, provides them.
"""
from .declarations import (
    Action,
    Builtin,
    Declaration,
    Formal,
    Function,
    InPort,
    ObjectDecl,
    OutPort,
    Param,
    Port,
    Resource,
)
from .expressions import (
    Binary,
    Call,
    ClassCall,
    EnumRef,
    Expr,
    IsValid,
    Literal,
    Member,
    MethodCall,
    Name,
    New,
    Ood,
    StaticCast,
    Unary,
)
from .nodes import NAME_KINDS, Loc, Node, Pairs, SourceFile
from .program import Include, Machine, Program, ProtocolDecl, Transition, TransitionDecl, Word
from .statements import (
    Assert,
    Assign,
    CheckAllocate,
    CheckNextCycle,
    CheckProbe,
    CheckStopSlots,
    Comment,
    DebugPrint,
    DeferEnqueue,
    Enqueue,
    ErrorStmt,
    ExprStmt,
    If,
    LocalVar,
    Peek,
    Return,
    SetEntry,
    SetTbe,
    StallAndWait,
    StallPort,
    Stmt,
    Trigger,
    WakeupPort,
)
from .types import EnumValue, Event, Field, RequestType, State, Type, TypeRef, Variable
from .walk import child_blocks, child_exprs, never_ends, walk_expr, walk_exprs, walk_statements

__all__ = [
    "Action", "Assert", "Assign", "Binary", "Builtin", "Call", "CheckAllocate", "CheckNextCycle", "CheckProbe",
    "CheckStopSlots", "ClassCall", "Comment", "DebugPrint", "Declaration", "DeferEnqueue", "Enqueue", "EnumRef", "EnumValue",
    "ErrorStmt", "Event", "Expr", "ExprStmt", "Field", "Formal", "Function", "If", "InPort", "Include", "IsValid",
    "Literal", "Loc", "LocalVar", "Machine", "Member", "MethodCall", "NAME_KINDS", "Name", "New", "Node", "ObjectDecl",
    "Ood", "OutPort", "Pairs", "Param", "Peek", "Port", "Program", "ProtocolDecl", "RequestType", "Resource", "Return",
    "SetEntry", "SetTbe", "SourceFile", "StallAndWait", "StallPort", "State", "StaticCast", "Stmt", "Transition", "TransitionDecl",
    "Trigger", "Type", "TypeRef", "Unary", "Variable", "WakeupPort", "Word", "child_blocks", "child_exprs",
    "never_ends", "walk_expr", "walk_exprs", "walk_statements",
]  # fmt: skip
