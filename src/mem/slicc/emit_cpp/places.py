# SPDX-License-Identifier: BSD-3-Clause
"""Which statements of a protocol from outside record their place before they run, so that errors name it.

A null handle and a failed assertion record the place themselves. The statements of a machine's function record their own places.
What is left are calls of the runtime that can fail. All calls count as such, except for the look-ups and statistics named here.
"""
from __future__ import annotations

from .. import ast
from ..ast.walk import child_exprs
from .recursion import is_recursive
from .writer import quoted

_METHODS = frozenset({
    *(f"CacheMemory.{name}" for name in (
        "lookup", "isTagPresent", "cacheAvail", "setMRU", "profileDemandHit", "profileDemandMiss", "getTagLatency", "getDataLatency")),
    "TBETable.lookup", "TBETable.isPresent", "AbstractCacheEntry.changePermission"})
_FUNCTIONS = frozenset({
    "clockEdge", "curCycle", "machineCount", "machineIDToMachineType", "machineIDToNodeID", "machineIDToVersion",
    "wakeUpAllBuffers", "wakeUpBuffer", "wakeUpBuffers", "zero_time"})

#: The function that checks the operands of an operator in models and on the engine: C++ does not define the result of all.
CHECKED_OPERATORS = {"/": "divide", "%": "remainder_of", "<<": "shift_left", ">>": "shift_right"}

#: The last line of a file that errors can name (LocatedController::kBitsOfLine).
LAST_LINE = (1 << 20) - 1


def place(node: ast.Node, files: dict[str, None] | None = None, what: str = "") -> str:
    """The place of a node: as a C++ statement, which adds the file to `files`, or as a comment for errors of the C++ compiler.
    With `what` (in models), the statement also names the action or in_port that begins there."""
    name = node.loc.file_name
    if files is not None:
        files[name] = None
    return (f"in({quoted(what)}, " if what else "at(") + f"{quoted(name)}, {min(node.loc.line, LAST_LINE)});"


def records_place(s: ast.Stmt) -> bool:
    """Whether a statement, apart from nested statements, records its place."""
    match s:
        case ast.Enqueue() | ast.Peek():
            return False  # the first records it before it sends, the second where it gives up
        case ast.If() | ast.Return() | ast.LocalVar() | ast.Assign() | ast.ExprStmt() | ast.SetEntry() | ast.SetTbe() | ast.Assert():
            return any(can_fail(e) for e in child_exprs(s))
    return True


def can_fail(expr: ast.Expr) -> bool:
    """Whether the evaluation of an expression can fail without a place of its own."""
    return any(_fails_itself(e) for e in ast.walk_expr(expr))


def _fails_itself(e: ast.Expr) -> bool:
    match e:
        case ast.Name() | ast.Literal() | ast.EnumRef() | ast.IsValid() | ast.Unary() | ast.Member() | ast.Ood():
            return False
        case ast.Binary(op=op):
            return op in CHECKED_OPERATORS
        case ast.StaticCast(mode=mode):
            return mode == "ref"
        case ast.MethodCall(name="isReady", object=ast.Name(kind="in_port")):
            return False
        case ast.MethodCall(name=name, object=target, method=method):
            kind = "AbstractCacheEntry" if target.type is not None and target.type.is_entry else str(target.type)
            return "added" in method.pairs or method.body is not None or f"{kind}.{name}" not in _METHODS
        case ast.Call(name=name, function=ast.Function(body=None, synthetic=synthetic)):
            return name not in _FUNCTIONS and not (synthetic and name.endswith("_to_permission"))
        case ast.Call(function=ast.Function() as function):
            ends = function.return_ref.name == "void" or ast.never_ends(function.body or [])
            return function.machine is None or is_recursive(function) or not ends
    return True
