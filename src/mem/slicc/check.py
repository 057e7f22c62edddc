# SPDX-License-Identifier: BSD-3-Clause
"""Sense of a resolved protocol: what is well-typed but cannot be meant. Certain mistakes are errors. What may be meant, or stands in
widely used protocols, is a warning with an option name; `strict` names the options that are errors all the same, and `allow`
those of the errors with a name that are warnings all the same."""
from __future__ import annotations

from typing import Iterable, Iterator

from . import ast
from .ast import Machine, Stmt
from .errors import Diagnostics, describe, nearest

STRICT = frozenset({"unreachable-state", "unused-action", "unused-event", "missing-transition", "missing-return", "no-pop", "no-wakeup",
                    "incomplete-message", "wake-rank"})
"""What `--strict` turns into errors: the project's own protocols are built so."""
ALLOWABLE = frozenset({"enqueue-to-from"})
"""Errors that `--allow` turns into warnings, since some protocol out there means them."""

_SENT = {"Destination": "NetDest", "MessageSize": "MessageSizeType"}
_LETS_GO = {"dequeue", "recycle"}
_WAKES = {"wakeUpBuffers", "wakeUpAllBuffers", "wakeUpBuffer"}


class Checker:
    def __init__(self, program: ast.Program, diagnostics: Diagnostics, strict: Iterable[str] = (), allow: Iterable[str] = ()) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self.strict = frozenset(strict)
        self.allow = frozenset(allow)

    def mistake(self, loc: ast.Loc, message: str, option: str) -> None:
        """An error, unless its option is allowed."""
        if option in self.allow:
            self.diagnostics.warning(loc, message, option)
        else:
            self.diagnostics.error(loc, f"{message} (--allow {option})")

    def warn(self, loc: ast.Loc, message: str, option: str) -> None:
        if option in self.strict:
            self.diagnostics.error(loc, message)
        else:
            self.diagnostics.warning(loc, message, option)

    def run(self) -> None:
        if not self.program.machines:
            self.diagnostics.error(self.program.loc, "the protocol has no machine")
        for function in self._functions():
            self._returns(function)
        for machine in self.program.machines:
            self._ports(machine)
            self._messages(machine)
            self._use_of_states(machine)
            self._use_of_actions_and_events(machine)
            self._missing(machine)
            self._pops(machine)
            self._wakeups(machine)
            self._ranks_of_wakeups(machine)
        self._networks()

    def _functions(self) -> Iterator[ast.Function]:
        yield from self.program.functions
        for machine in self.program.machines:
            yield from machine.functions
        for declared in self.program.types + [declared for machine in self.program.machines for declared in machine.types]:
            for overloads in declared.methods.values():
                yield from overloads

    # ---- functions

    def _returns(self, function: ast.Function) -> None:
        if function.body is None:
            return
        if function.return_type is not self.program.void_type and not _ends(function.body):
            self.warn(function.loc, f"function '{function.name}' can end without returning a {function.return_type}", "missing-return")

    # ---- ports and messages

    def _ports(self, machine: Machine) -> None:
        for port in machine.out_ports:
            buffer = port.buffer.decl
            if isinstance(buffer, ast.Param) and buffer.network == "From":
                self.warn(port.loc, f"out_port '{port.name}' stands on '{buffer.name}', a From buffer: "
                          "what the network delivers to this machine", "from-buffer")
        for in_port in machine.in_ports:
            buffer = in_port.buffer.decl
            if isinstance(buffer, ast.Param) and buffer.network == "To":
                self.diagnostics.error(in_port.loc, f"in_port '{in_port.name}' reads '{buffer.name}', a To buffer: "
                                       "what this machine gives to the network")
        read = {port.buffer.name for port in machine.in_ports}
        written = {port.buffer.name for port in machine.out_ports}
        for param in machine.params:
            if param.network == "From" and param.name not in read:
                self.warn(param.loc, f"no in_port reads '{param.name}': what arrives there stays there", "unread-buffer")
            if param.network == "To" and param.name not in written:
                self.warn(param.loc, f"no out_port writes '{param.name}'", "unused-buffer")

    def _messages(self, machine: Machine) -> None:
        for block in _blocks(machine):
            for statement in ast.walk_statements(block):
                if isinstance(statement, (ast.Enqueue, ast.DeferEnqueue)):
                    self._sent(statement)

    def _sent(self, statement: ast.Enqueue | ast.DeferEnqueue) -> None:
        port = statement.port.decl
        buffer = port.buffer.decl if isinstance(port, ast.OutPort) else None
        if isinstance(buffer, ast.Param) and buffer.network == "From":
            self.mistake(statement.port.loc, f"'{statement.port.name}' enqueues into '{buffer.name}', a From buffer: "
                         "only the network puts messages there", "enqueue-to-from")
        if not isinstance(buffer, ast.Param) or buffer.network != "To" or buffer.virtual_network is None:
            return
        message = statement.message_ref.type
        for name, kind in _SENT.items():
            field = message.fields.get(name)
            if field is None or field.type.name != kind:
                self.diagnostics.error(statement.message_ref.loc, f"{message} is sent over the network and needs a field {kind} {name}"
                                       + ("" if field is None else f", not {field.type} {name}"))
            elif field.default_text is None or name == "Destination":
                if not _mentions_out_msg(statement.body, name):
                    self.warn(statement.loc, f"out_msg.{name} is not set", "incomplete-message")

    def _networks(self) -> None:
        """A virtual network has one vnet_type, and what is sent on it has to arrive somewhere."""
        kinds: dict[int, ast.Param] = {}
        sent: dict[int, ast.Param] = {}
        received: dict[int, ast.Param] = {}
        for machine in self.program.machines:
            for param in machine.params:
                network = param.virtual_network
                if network is None or param.network is None:
                    continue
                first = kinds.setdefault(network, param)
                if first.vnet_type != param.vnet_type:
                    self.warn(param.loc, f"virtual network {network} is of type '{first.vnet_type}' in machine "
                              f"'{first.machine.name}' and of type '{param.vnet_type}' here", "vnet-type")
                (sent if param.network == "To" else received).setdefault(network, param)
        if len(self.program.machines) == 1:
            return  # half of a protocol: the other side is not there to be asked
        for network, param in sent.items():
            if network not in received:
                self.warn(param.loc, f"nothing receives on virtual network {network}", "vnet-one-sided")
        for network, param in received.items():
            if network not in sent:
                self.warn(param.loc, f"nothing sends on virtual network {network}", "vnet-one-sided")

    # ---- states, events, actions

    def _use_of_states(self, machine: Machine) -> None:
        """States that no line can ever be in: not the initial state, no next state of a transition that can itself be taken,
        and not named as a value by any function or action."""
        initial = machine.initial_state()
        reached = {state.name for state in _named_states(machine)}
        if initial is not None:
            reached.add(initial.name)
        if any(transition.next_state is None for transition in machine.transitions):
            return  # getNextState computes it
        successors: dict[str, set[str]] = {}
        for transition in machine.transitions:
            if transition.next_state is not None and not transition.is_stall:
                successors.setdefault(transition.state.name, set()).add(transition.next_state.name)
        frontier = list(reached)
        while frontier:
            for name in successors.get(frontier.pop(), ()):
                if name not in reached:
                    reached.add(name)
                    frontier.append(name)
        for state in machine.states:
            if state.name not in reached:
                self.warn(state.loc, f"state '{state.name}' of machine '{machine.name}' cannot be reached", "unreachable-state")

    def _use_of_actions_and_events(self, machine: Machine) -> None:
        for action in machine.actions:
            if not action.used:
                self.warn(action.loc, f"action '{action.name}' is not used by any transition", "unused-action")
        taken = {transition.event.name for transition in machine.transitions}
        named = {expr.value_name for block in _blocks(machine) for expr in ast.walk_exprs(block)
                 if isinstance(expr, ast.EnumRef) and expr.type is machine.event_type}
        for event in machine.events:
            if event.name not in taken and event.name not in named:
                self.warn(event.loc, f"event '{event.name}' is neither triggered nor in a transition", "unused-event")
            elif event.name not in taken:
                self.warn(event.loc, f"event '{event.name}' has no transition in any state", "unused-event")
            elif event.name not in named:
                self.warn(event.loc, f"event '{event.name}' is never triggered", "unused-event")
        for state in machine.states:
            if machine.transitions and not any(transition.state is state for transition in machine.transitions):
                self.warn(state.loc, f"state '{state.name}' has no transition", "dead-end-state")

    def _missing(self, machine: Machine) -> None:
        """What a core asks for can come in every state that is not in the middle of a transaction. Events count as asked for when a
        function makes them out of the kind of request: others may be triggered in some states only."""
        asked: set[str] = set()
        for port in machine.in_ports:
            if port.message.name != "RubyRequest" or port.buffer.name != "mandatoryQueue":
                continue
            for statement in ast.walk_statements(port.body):
                if isinstance(statement, ast.Trigger) and isinstance(statement.event, ast.Call):
                    asked |= _events_of(statement.event, machine)
        events = [event.name for event in machine.events if event.name in asked
                  and any(transition.event is event for transition in machine.transitions)]
        reached = {transition.next_state.name for transition in machine.transitions if transition.next_state is not None}
        for state in machine.states:
            lacking = [event for event in events if (state.name, event) not in machine.table]
            if lacking and state.permission != "Busy" and (state.name in reached or state is machine.initial_state()):
                self.warn(state.loc, f"state '{state.name}' of machine '{machine.name}' has no transition for {describe(lacking)}, "
                          "which a core can ask for at any time", "missing-transition")

    # ---- queues

    def _pops(self, machine: Machine) -> None:
        """A transition that is triggered for the message at the head of a port, and neither takes that message away nor puts it
        off, runs again and again."""
        ports = _ports_of_events(machine)
        lets_go = {action.name: _ports_let_go(action.body, machine) for action in machine.actions}
        reported: set[ast.Loc] = set()
        for transition in machine.transitions:
            triggering = ports.get(transition.event.name)
            if not triggering or transition.is_stall or transition.loc in reported:
                continue
            freed = set().union(*(lets_go[action.name] for action in transition.actions)) if transition.actions else set()
            if "*" in freed or triggering & freed:
                continue
            if transition.next_state is transition.state or not transition.actions:
                reported.add(transition.loc)
                self.warn(transition.loc, f"nothing takes the message of event {transition.event.name} from port "
                          f"{describe(sorted(triggering))}, and the state stays {transition.state.name}", "no-pop")

    def _wakeups(self, machine: Machine) -> None:
        stalls = [statement for block in _blocks(machine) for statement in ast.walk_statements(block)
                  if isinstance(statement, ast.StallAndWait)]
        if not stalls:
            return
        for block in _blocks(machine):
            for statement in ast.walk_statements(block):
                if isinstance(statement, ast.WakeupPort) or isinstance(statement, ast.Peek) and "wake_up" in statement.pairs:
                    return
            for expr in ast.walk_exprs(block):
                if isinstance(expr, ast.Call) and (expr.name in _WAKES or expr.name.lower().startswith("wakeup")):
                    return
        self.warn(stalls[0].loc, f"machine '{machine.name}' stalls messages, and wakes none", "no-wakeup")

    def _ranks_of_wakeups(self, machine: Machine) -> None:
        """On gem5 wakeUpBuffers looks at ports of a lower rank than that whose message is being handled, and forgets the others."""
        stalling = {statement.port.decl for block in _blocks(machine) for statement in ast.walk_statements(block)
                    if isinstance(statement, ast.StallAndWait) and isinstance(statement.port.decl, ast.InPort)}
        waking = {action.name: call for action in machine.actions for call in ast.walk_exprs(action.body)
                  if isinstance(call, ast.Call) and call.name == "wakeUpBuffers"}
        if not stalling or not waking:
            return
        highest = max(stalling, key=lambda port: port.rank)
        lowest: dict[str, ast.InPort] = {}  # by event
        for port in sorted(machine.in_ports, key=lambda port: port.rank):
            for statement in ast.walk_statements(port.body):
                if isinstance(statement, ast.Trigger):
                    for event in _events_of(statement.event, machine):
                        lowest.setdefault(event, port)
        for transition in machine.transitions:
            handled = lowest.get(transition.event.name)
            for action in transition.actions:
                if action.name in waking and handled is not None and handled.rank <= highest.rank:
                    self.warn(waking.pop(action.name).loc, f"wakeUpBuffers in a transition of event {transition.event.name}, of port "
                              f"'{handled.name}' with rank {handled.rank}: on gem5 that wakes ports of lower rank only, not "
                              f"'{highest.name}' with rank {highest.rank}; wakeUpAllBuffers wakes all", "wake-rank")


def _ends(block: list[Stmt]) -> bool:
    """Whether control cannot come out at the block's end."""
    if not block:
        return False
    match block[-1]:
        case ast.Return() | ast.ErrorStmt():
            return True
        case ast.Assert(condition=ast.Literal(value=False)):
            return True
        case ast.If(branches=branches, otherwise=otherwise):
            return otherwise is not None and _ends(otherwise) and all(_ends(body) for _, body in branches)
        case ast.Peek(body=body):
            return _ends(body)
    return any(_ends([statement]) for statement in block[:-1])


def _mentions_out_msg(block: list[Stmt], field: str) -> bool:
    """Whether a block touches a field of out_msg, or assigns or passes the whole of it."""
    for expr in ast.walk_exprs(block):
        if isinstance(expr, ast.Member) and expr.name == field and isinstance(expr.object, ast.Name) and expr.object.kind == "out_msg":
            return True
        if isinstance(expr, ast.Call) and any(isinstance(arg, ast.Name) and arg.kind == "out_msg" for arg in expr.args):
            return True
    return any(isinstance(statement, ast.Assign) and isinstance(statement.target, ast.Name) and statement.target.kind == "out_msg"
               for statement in ast.walk_statements(block))


def _blocks(machine: Machine) -> Iterator[list[Stmt]]:
    """All bodies of a machine."""
    for function in machine.functions:
        if function.body is not None:
            yield function.body
    for declared in machine.types:
        for overloads in declared.methods.values():
            for method in overloads:
                if method.body is not None:
                    yield method.body
    for port in machine.in_ports:
        yield port.body
    for action in machine.actions:
        yield action.body


def _named_states(machine: Machine) -> Iterator[ast.EnumValue]:
    """States that stand as a value somewhere, not merely in a comparison."""
    for block in _blocks(machine):
        compared: set[int] = set()
        for expr in ast.walk_exprs(block):
            if isinstance(expr, ast.Binary) and expr.op in ("==", "!="):
                compared.update((id(expr.left), id(expr.right)))
            elif isinstance(expr, ast.EnumRef) and expr.type is machine.state_type and id(expr) not in compared and expr.value is not None:
                yield expr.value


def _ports_of_events(machine: Machine) -> dict[str, set[str]]:
    """For each event that is only ever triggered with the address of the message at a port's head: those ports."""
    ports: dict[str, set[str]] = {}
    elsewhere: set[str] = set()
    for port in machine.in_ports:
        for statement in ast.walk_statements(port.body):
            if not isinstance(statement, ast.Trigger):
                continue
            events = _events_of(statement.event, machine)
            of_message = isinstance(statement.address, ast.Member) and isinstance(statement.address.object, ast.Name) \
                and statement.address.object.kind == "in_msg"
            for event in events:
                if of_message:
                    ports.setdefault(event, set()).add(port.name)
                else:
                    elsewhere.add(event)
    return {event: names for event, names in ports.items() if event not in elsewhere}


def _events_of(expr: ast.Expr, machine: Machine) -> set[str]:
    """The events that an expression can be, as far as the text tells."""
    if isinstance(expr, ast.EnumRef):
        return {expr.value_name}
    if isinstance(expr, ast.Call) and expr.function is not None and expr.function.body is not None:
        return {inner.value_name for inner in ast.walk_exprs(expr.function.body)
                if isinstance(inner, ast.EnumRef) and inner.type is machine.event_type}
    return set()


def _ports_let_go(block: list[Stmt], machine: Machine, depth: int = 0) -> set[str]:
    """Ports whose head a block takes away or puts off; "*" for what cannot be told."""
    names: set[str] = set()
    for statement in ast.walk_statements(block):
        if isinstance(statement, ast.StallAndWait):
            names.add(statement.port.name)
    for expr in ast.walk_exprs(block):
        if isinstance(expr, ast.MethodCall) and expr.name in _LETS_GO and isinstance(expr.object, ast.Name):
            names.add(expr.object.name)
        elif isinstance(expr, ast.Call) and expr.function is not None:
            if expr.function.body is not None and depth < 8:
                names |= _ports_let_go(expr.function.body, machine, depth + 1)
            elif expr.name.startswith("dequeue"):
                names.add("*")
    return names


def missing_transitions(machine: Machine) -> list[tuple[str, str]]:
    """(state, event) pairs without a transition, in order of declaration."""
    return [(state.name, event.name) for state in machine.states for event in machine.events
            if (state.name, event.name) not in machine.table]


def unknown_option(name: str, known: Iterable[str]) -> str:
    """An error message for a name that is no option of a set, or nothing."""
    names = sorted(known)
    return "" if name in names else f"there is no option '{name}'{nearest(name, names) or '; there are ' + describe(names, 20)}"


def check(program: ast.Program, diagnostics: Diagnostics, strict: Iterable[str] = (), allow: Iterable[str] = ()) -> None:
    """Reports what makes no sense. Raises Stop if there were errors."""
    Checker(program, diagnostics, strict, allow).run()
    diagnostics.stop_on_error()
