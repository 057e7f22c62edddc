# SPDX-License-Identifier: BSD-3-Clause
"""Pure hits: the (state, event) pairs whose transition keeps the state and only calls back to the sequencer with the entry's own
data, updates the replacement order, counts, and pops the mandatory queue. The engine serves these inline, without the event loop;
all other accesses take their transition. A store that makes a clean exclusive line modified is not a pure hit. A port remembers a
hit until a transition of its line, so nothing else may decide that it is one: neither the time nor a variable of the controller.

The text has to prove a hit: an action with a statement that is not on the short list below is not pure. The code of the mandatory
in_port must have no effect before its trigger. The emitter makes a probe of that code. The probe runs to the first trigger, and
ends without an effect before any statement that it cannot execute (`probe_executes`) and any condition that it cannot evaluate. A
pure hit is served; any other request is enqueued.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from . import ast
from .ast import Expr, Machine, Stmt

_CALLBACKS = {"readCallback": "read", "writeCallback": "write"}
_LOOKS = {"lookup", "isTagPresent", "isPresent", "cacheAvail", "getTagLatency", "getDataLatency", "getCacheSize", "getNumBlocks",
          "isReady", "isEmpty", "isElement", "isSuperset", "intersectionIsEmpty", "count", "isSet", "areNSlotsAvailable", "getSize",
          "isStallMapEmpty", "getStallMapSize", "hasStalledMsg", "isDeferredMsgMapEmpty", "getMask", "isFull", "isOverlap", "containsMask"}
_LOOKING_FUNCTIONS = {"clockEdge", "curCycle", "curTick", "ticksToCycles", "cyclesToTicks", "mapAddressToMachine", "mapAddressToRange",
                      "machineIDToNodeID", "machineIDToVersion", "machineIDToMachineType", "createMachineID", "machineCount",
                      "makeLineAddress", "getOffset", "addressOffset", "mod", "bitSelect", "maskLowOrderBits", "intToID", "IDToInt",
                      "addressToInt", "intToAddress", "intToCycles", "intToTick", "zero_time", "max_tokens", "isWriteRequest",
                      "isReadRequest", "isDataReadRequest", "isHtmCmdRequest", "isTlbiRequest", "isBlocked"}
_MAX_DEPTH = 8
_CLOCKS = {"clockEdge", "curCycle", "curTick"}
_COUNTS = {"areNSlotsAvailable", "getSize", "isStallMapEmpty", "getStallMapSize"}
_PROBED = {"LineAddress", "Type", "AccessMode", "Prefetch"}
"""The fields of a request that a probe knows."""


@dataclass
class PureHit:
    """One pure hit. `callback` is "read" or "write". `writes` are constants that the actions store into fields of the entry, such
    as a dirty flag; a hit without them changes nothing in the controller. `touches` are the caches whose setMRU is called."""

    transition: ast.Transition
    callback: str
    writes: list[tuple[ast.Field, Expr]] = field(default_factory=list)
    touches: list[ast.Param] = field(default_factory=list)

    @property
    def state(self) -> ast.State:
        return self.transition.state

    @property
    def event(self) -> ast.Event:
        return self.transition.event


@dataclass
class HitAnalysis:
    """`port` is the mandatory in_port, or None; then there are no hits. `block_on` is its peek's pair: a blocked address must not be
    served inline. `clean_events` are the events that a probe of the port can reach. `hits` are the pairs whose actions have no
    further effect (`writes` empty); `nearly` are those that store constants into the entry."""

    port: ast.InPort | None = None
    block_on: str | None = None
    clean_events: set[str] = field(default_factory=set)
    hits: list[PureHit] = field(default_factory=list)
    nearly: list[PureHit] = field(default_factory=list)


class _Impure(Exception):
    pass


NOTHING_MORE: frozenset[str] = frozenset()


def looks_only(expr: Expr, depth: int = 0, also: frozenset[str] = NOTHING_MORE) -> bool:
    """Whether an expression has no side effect; `also` are methods, as TYPE.METHOD, that the caller does not count as one."""
    made: set[int] = set()
    for inner in ast.walk_expr(expr):  # outer before inner
        if isinstance(inner, ast.New) and id(inner) not in made or isinstance(inner, ast.Unary) and inner.op in ("++", "--"):
            return False
        if isinstance(inner, ast.MethodCall):
            if f"{inner.object.type}.{inner.name}" in also:
                made.update(map(id, inner.args))
            elif not (inner.name in _LOOKS and inner.method is not None and inner.method.body is None):
                return False
        if isinstance(inner, ast.ClassCall):
            return False
        if isinstance(inner, ast.Call) and not function_looks_only(inner.function, depth, also):
            return False
    return True


def function_looks_only(function: ast.Function | None, depth: int = 0, also: frozenset[str] = NOTHING_MORE) -> bool:
    if function is None or depth > _MAX_DEPTH:
        return False
    if function.body is None:
        return function.synthetic or function.name in _LOOKING_FUNCTIONS
    return all(statement_looks_only(statement, depth + 1, also) for statement in ast.walk_statements(function.body))


def statement_looks_only(statement: Stmt, depth: int = 0, also: frozenset[str] = NOTHING_MORE) -> bool:
    """Whether a statement, apart from its nested blocks, changes nothing but variables of its own function."""
    match statement:
        case ast.If() | ast.LocalVar() | ast.Return() | ast.DebugPrint() | ast.Comment() | ast.ErrorStmt() | ast.Assert() | ast.Peek():
            return all(looks_only(expr, depth, also) for expr in ast.child_exprs(statement))
        case ast.ExprStmt(expr=expr):
            return looks_only(expr, depth, also)
        case ast.Assign(target=ast.Name(kind="local"), value=value):
            return looks_only(value, depth, also)
    return False


# ---------------------------------------------------------------------------------------------------------- the mandatory port


def probe_evaluates(expr: Expr, port: ast.InPort) -> bool:
    """Whether a probe of the port may evaluate an expression: it has no side effect, reads of the request only what a probe knows
    (not the core, and not the number of bytes), reads no other port, and its value changes with transitions of the line alone."""
    return _known_to_probe(expr, port) and not reads_more_than_a_line(expr)


def reads_more_than_a_line(expr: Expr, depth: int = 0) -> bool:
    """Whether an expression, or a function that it calls, reads the clock, the number of messages or TBEs, or a variable of the
    controller other than a table by address."""
    given: set[int] = set()  # the time in isReady of an in_port, which a message that is there has reached; not that of a timer
    for inner in ast.walk_expr(expr):  # outer before inner
        match inner:
            case ast.MethodCall(name="isReady", object=ast.Name(kind="in_port"), args=args):
                given.update(map(id, args))
            case ast.MethodCall(name=name) if name in _COUNTS:
                return True
            case ast.Name(kind="object") if not _is_by_address(inner.type):
                return True
            case ast.Call(name=name, function=function) if name in _CLOCKS and id(inner) not in given or (
                    body_reads_more_than_a_line(function.body, depth + 1)):
                return True
    return False


def body_reads_more_than_a_line(body: list[Stmt] | None, depth: int = 0) -> bool:
    if body is None or depth > _MAX_DEPTH:
        return body is not None
    return any(reads_more_than_a_line(expr, depth) for statement in ast.walk_statements(body)
               if not isinstance(statement, (ast.DebugPrint, ast.Comment)) for expr in ast.child_exprs(statement))


def _is_by_address(type_: ast.Type) -> bool:
    return type_.is_external and any(m.formals and m.formals[0].type.name == "Addr" for found in type_.methods.values() for m in found)


def _known_to_probe(expr: Expr, port: ast.InPort) -> bool:
    known: set[int] = set()
    for inner in ast.walk_expr(expr):  # outer before inner
        if isinstance(inner, ast.Member) and inner.name in _PROBED:
            known.add(id(inner.object))
        elif isinstance(inner, ast.Name) and (inner.kind == "in_msg" and id(inner) not in known
                                              or inner.kind == "in_port" and inner.decl is not port):
            return False
    return looks_only(expr)


def probe_executes(statement: Stmt, port: ast.InPort) -> bool:
    """Whether a probe of the port may execute a statement, apart from its nested blocks."""
    evaluates = _known_to_probe if isinstance(statement, (ast.DebugPrint, ast.Comment)) else probe_evaluates  # these do nothing
    return statement_looks_only(statement) and all(evaluates(expr, port) for expr in ast.child_exprs(statement))


def _clean_triggers(machine: Machine, port: ast.InPort) -> set[str]:
    """The events whose trigger can be the first on a path without side effects."""
    clean: set[str] = set()

    def walk(block: list[Stmt]) -> bool:
        """Whether control can reach the end of the block without a side effect and without a trigger."""
        for statement in block:
            if isinstance(statement, ast.Trigger):
                if all(probe_evaluates(expr, port) for expr in ast.child_exprs(statement)):
                    clean.update(possible_events(statement.event, machine))
                return False
            if isinstance(statement, ast.If):
                if not branches(statement):
                    return False
            elif not probe_executes(statement, port) or isinstance(statement, ast.Peek) and not walk(statement.body):
                return False
        return True

    def branches(statement: ast.If) -> bool:
        """The same for an `if`; the probe ends before a condition that it cannot evaluate."""
        ends: list[bool] = []
        for condition, body in statement.branches:
            if not probe_evaluates(condition, port):
                return any(ends)
            ends.append(walk(body))
        ends.append(statement.otherwise is None or walk(statement.otherwise))
        return any(ends)

    walk(port.body)
    return clean


def possible_events(expr: Expr, machine: Machine) -> Iterator[str]:
    """Names of the events that a trigger's expression can give."""
    if isinstance(expr, ast.EnumRef):
        yield expr.value_name
        return
    named = [inner for inner in _with_functions(expr) if isinstance(inner, ast.EnumRef) and inner.type is machine.event_type]
    if named:
        yield from (ref.value_name for ref in named)
    else:
        yield from (event.name for event in machine.events)


def _with_functions(expr: Expr, depth: int = 0) -> Iterator[Expr]:
    for inner in ast.walk_expr(expr):
        yield inner
        if isinstance(inner, ast.Call) and inner.function is not None and inner.function.body is not None and depth < _MAX_DEPTH:
            for below in ast.walk_exprs(inner.function.body):
                yield from _with_functions(below, depth + 1) if isinstance(below, ast.Call) else (below,)


# ---------------------------------------------------------------------------------------------------------------- transitions


class _HitReader:
    """Reads the actions of one transition; raises _Impure at the first statement that is not on the list."""

    def __init__(self, transition: ast.Transition, port: ast.InPort) -> None:
        self.port = port
        self.callbacks: list[str] = []
        self.pops = 0
        self.hit = PureHit(transition, "")

    def read(self) -> PureHit:
        for action in self.hit.transition.actions:
            for statement in action.body:
                self._statement(statement)
        if len(self.callbacks) != 1 or self.pops != 1:
            raise _Impure
        self.hit.callback = self.callbacks[0]
        return self.hit

    def _statement(self, statement: Stmt) -> None:
        match statement:
            case ast.DebugPrint() | ast.Comment() | ast.Assert():
                self._must(all(looks_only(expr) for expr in ast.child_exprs(statement)))
            case ast.LocalVar(init=None):
                pass
            case ast.LocalVar(init=ast.MethodCall() as call) if call.name == "dequeue":
                self._dequeue(call)
            case ast.LocalVar(init=init):
                self._must(init is not None and looks_only(init))
            case ast.ExprStmt(expr=ast.MethodCall() as call):
                self._method(call)
            case ast.ExprStmt(expr=ast.Unary(op="++", operand=operand)):
                self._must(operand.type.name == "Scalar")
            case ast.ExprStmt(expr=ast.Call(name=name, args=args, function=function)):
                self._must(name.startswith("profile") and function is not None and function.body is None)
                self._must(all(looks_only(arg) for arg in args))
            case ast.Assign(target=ast.Member(object=ast.Name(kind="cache_entry")) as target, value=value):
                self._must(isinstance(value, (ast.Literal, ast.EnumRef)))
                self.hit.writes.append((target.field, value))
            case ast.Peek(port=port, body=body):
                self._must(port.decl is self.port)
                for inner in body:
                    self._statement(inner)
            case _:
                raise _Impure

    def _must(self, condition: bool) -> None:
        if not condition:
            raise _Impure

    def _dequeue(self, call: ast.MethodCall) -> None:
        self._must(isinstance(call.object, ast.Name) and call.object.decl is self.port)
        self._must(all(looks_only(arg) for arg in call.args))
        self.pops += 1

    def _method(self, call: ast.MethodCall) -> None:
        owner = call.object
        self._must(isinstance(owner, ast.Name))
        assert isinstance(owner, ast.Name)
        if call.name == "dequeue":
            self._dequeue(call)
        elif call.name in _CALLBACKS and isinstance(owner.decl, ast.Param) and (
                owner.type.name == "Sequencer" or (owner.type.interface is not None and owner.type.interface.name == "Sequencer")):
            self._callback(call)
        elif call.name == "setMRU" and isinstance(owner.decl, ast.Param):
            self._must(all(looks_only(arg) for arg in call.args))
            self.hit.touches.append(owner.decl)
        else:
            self._must(call.name.startswith("profile") and all(looks_only(arg) for arg in call.args))

    def _callback(self, call: ast.MethodCall) -> None:
        where, data, *rest = call.args
        self._must(isinstance(where, ast.Name) and where.kind == "address")
        self._must(isinstance(data, ast.Member) and isinstance(data.object, ast.Name) and data.object.kind == "cache_entry")
        self._must(not rest or isinstance(rest[0], ast.Literal) and rest[0].value is False)  # not an external hit
        self._must(all(looks_only(arg) for arg in rest))
        self.callbacks.append(_CALLBACKS[call.name])


def analyse_hits(machine: Machine) -> HitAnalysis:
    """The pure hits of a checked machine."""
    analysis = HitAnalysis()
    for port in machine.in_ports:
        if port.buffer.name == "mandatoryQueue" and port.message.name == "RubyRequest":
            analysis.port = port
            break
    if analysis.port is None or machine.entry_type is None:
        return HitAnalysis()
    if sum(field.type.name == "DataBlock" for field in machine.entry_type.fields.values()) != 1:
        return HitAnalysis()  # the array that holds the line's bytes may depend on the state
    if any(body_reads_more_than_a_line(function.body) for function in machine.function("getState")):
        return HitAnalysis()
    for statement in ast.walk_statements(analysis.port.body):
        if isinstance(statement, ast.Peek):
            analysis.block_on = statement.pairs.get("block_on", analysis.block_on)
    analysis.clean_events = _clean_triggers(machine, analysis.port)
    for transition in machine.transitions:
        if transition.next_state is not transition.state or transition.request_types or transition.is_stall \
                or transition.event.name not in analysis.clean_events:
            continue
        try:
            hit = _HitReader(transition, analysis.port).read()
        except _Impure:
            continue
        (analysis.nearly if hit.writes else analysis.hits).append(hit)
    return analysis
