# SPDX-License-Identifier: BSD-3-Clause
"""Checks of a resolved protocol for what is well typed but wrong. Certain mistakes are errors. What may be intended, or occurs
in widely used protocols, is a warning with an option name. `strict` names options whose warnings become errors."""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import ast
from .ast import Machine, Stmt
from .check_data import check_data
from .check_ends import check_ends
from .check_hooks import check_hooks
from .check_names import check_names
from .check_support import check_support
from .errors import Diagnostics, describe

STRICT = frozenset({"unreachable-state", "unused-action", "unused-event", "missing-transition", "missing-return", "no-pop", "no-wakeup",
                    "stall-other-port", "incomplete-message", "format-values", "wake-rank", "enqueue-to-from", "unused-message",
                    "unknown-machine", "ordered-one-end", "compared-data"})
"""What `--strict` turns into errors. The project's own protocols are built with it."""

_SENT = {"Destination": "NetDest", "MessageSize": "MessageSizeType"}
_LETS_GO = {"dequeue", "recycle"}
_WAKES = {"wakeUpBuffers", "wakeUpAllBuffers", "wakeUpBuffer"}


class Checker:
    """One method per rule; `run` calls all of them."""

    def __init__(self, program: ast.Program, diagnostics: Diagnostics, strict: Iterable[str] = ()) -> None:
        self.program = program
        self.diagnostics = diagnostics
        self.strict = frozenset(strict)

    def warn(self, loc: ast.Loc, message: str, option: str) -> None:
        if option in self.strict:
            self.diagnostics.error(loc, message)
        else:
            self.diagnostics.warning(loc, message, option)

    def run(self) -> None:
        if not self.program.machines:
            self.diagnostics.error(self.program.loc, "protocol: no machine: expected at least one")
        for function in self._functions():
            self._returns(function)
            self._prints(function.body or [])
        for machine in self.program.machines:
            self._ports(machine)
            self._messages(machine)
            self._use_of_states(machine)
            self._use_of_actions_and_events(machine)
            self._missing(machine)
            self._pops(machine)
            self._wakeups(machine)
            self._stalls_of_other_ports(machine)
            self._ranks_of_wakeups(machine)
            for body in [port.body for port in machine.in_ports] + [action.body for action in machine.actions]:
                self._prints(body)
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
        if function.return_type is not self.program.void_type and not ast.never_ends(function.body):
            self.warn(function.loc, f"function '{function.name}': can end without a value: expected a return of "
                      f"{function.return_type}", "missing-return")

    # ---- ports and messages

    def _prints(self, block: list[Stmt]) -> None:
        """Warns of a DPRINTF whose number of values differs from that of its format: gem5 marks the difference in its output.
        moscope prints nothing there."""
        for statement in ast.walk_statements(block):
            if isinstance(statement, ast.DebugPrint):
                slots = statement.format.replace("%%", "").count("%")
                if slots != len(statement.args):
                    self.warn(statement.loc, f"DPRINTF: {len(statement.args)} values for the format: expected {slots}", "format-values")

    def _ports(self, machine: Machine) -> None:
        for port in machine.out_ports:
            buffer = port.buffer.decl
            if isinstance(buffer, ast.Param) and buffer.network == "From":
                self.warn(port.loc, f"out_port '{port.name}': on '{buffer.name}', which the network fills: expected a To buffer",
                          "from-buffer")
        for in_port in machine.in_ports:
            buffer = in_port.buffer.decl
            if isinstance(buffer, ast.Param) and buffer.network == "To":
                self.diagnostics.error(in_port.loc, f"in_port '{in_port.name}': on '{buffer.name}', which the network empties: "
                                       "expected a From buffer")
        read = {port.buffer.name for port in machine.in_ports}
        written = {port.buffer.name for port in machine.out_ports}
        for param in machine.params:
            if param.network == "From" and param.name not in read:
                self.warn(param.loc, f"buffer '{param.name}': never read: expected an in_port that removes its messages", "unread-buffer")
            if param.network == "To" and param.name not in written:
                self.warn(param.loc, f"buffer '{param.name}': never written: expected an out_port", "unused-buffer")

    def _messages(self, machine: Machine) -> None:
        for block in _blocks(machine):
            for statement in ast.walk_statements(block):
                if isinstance(statement, (ast.Enqueue, ast.DeferEnqueue)):
                    self._sent(statement)

    def _sent(self, statement: ast.Enqueue | ast.DeferEnqueue) -> None:
        port = statement.port.decl
        buffer = port.buffer.decl if isinstance(port, ast.OutPort) else None
        if isinstance(buffer, ast.Param) and buffer.network == "From":
            self.warn(statement.port.loc, f"enqueue: into '{buffer.name}', which the network fills: expected a To buffer, or an internal "
                      "buffer", "enqueue-to-from")
        if not isinstance(buffer, ast.Param) or buffer.network != "To" or buffer.virtual_network is None:
            return
        message = statement.message_ref.type
        for name, kind in _SENT.items():
            field = message.fields.get(name)
            if field is None or field.type.name != kind:
                problem = "missing" if field is None else f"of type {field.type}"
                self.diagnostics.error(statement.message_ref.loc, f"field '{name}' of {message}: {problem}: expected {kind}, since the "
                                       "message is sent over the network")
            elif (field.default_text is None or name == "Destination") and not _mentions_out_msg(statement.body, name):
                self.warn(statement.loc, f"out_msg.{name}: not set: expected an assignment", "incomplete-message")

    def _networks(self) -> None:
        """Reports a virtual network with two types, without a sender or without a receiver."""
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
                    self.warn(param.loc, f"virtual network {network}: of type '{param.vnet_type}': expected '{first.vnet_type}' as in "
                              f"machine '{first.machine.name}'", "vnet-type")
                (sent if param.network == "To" else received).setdefault(network, param)
        if len(self.program.machines) == 1:
            return  # half of a protocol: the other side is unknown
        for network, param in sent.items():
            if network not in received:
                self.warn(param.loc, f"virtual network {network}: no receiver: expected a From buffer", "vnet-one-sided")
        for network, param in received.items():
            if network not in sent:
                self.warn(param.loc, f"virtual network {network}: no sender: expected a To buffer", "vnet-one-sided")

    # ---- states, events, actions

    def _use_of_states(self, machine: Machine) -> None:
        """Reports states that no line can be in: neither the initial state, nor the next state of a transition from a reachable
        state, nor named as a value by a function or an action."""
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
                self.warn(state.loc, f"state '{state.name}' of machine '{machine.name}': unreachable: expected a transition to it",
                          "unreachable-state")

    def _use_of_actions_and_events(self, machine: Machine) -> None:
        for action in machine.actions:
            if not action.used:
                self.warn(action.loc, f"action '{action.name}': unused: expected a transition that runs it", "unused-action")
        taken = {transition.event.name for transition in machine.transitions}
        named = {expr.value_name for block in _blocks(machine) for expr in ast.walk_exprs(block)
                 if isinstance(expr, ast.EnumRef) and expr.type is machine.event_type}
        for event in machine.events:
            if event.name not in taken and event.name not in named:
                self.warn(event.loc, f"event '{event.name}': unused: expected a trigger and a transition", "unused-event")
            elif event.name not in taken:
                self.warn(event.loc, f"event '{event.name}': in no transition: expected at least one", "unused-event")
            elif event.name not in named:
                self.warn(event.loc, f"event '{event.name}': never triggered: expected a trigger", "unused-event")
        for state in machine.states:
            if machine.transitions and not any(transition.state is state for transition in machine.transitions):
                self.warn(state.loc, f"state '{state.name}': no transition: expected at least one", "dead-end-state")

    def _missing(self, machine: Machine) -> None:
        """Reports stable states without a transition for a core's request, which can arrive in each of them. An event counts as a
        core's request when a function derives it from the request's type; others may be triggered in some states only."""
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
                self.warn(state.loc, f"state '{state.name}' of machine '{machine.name}': no transition for {describe(lacking)}: expected "
                          "one, since a core can request it at any time", "missing-transition")

    # ---- queues

    def _pops(self, machine: Machine) -> None:
        """Reports transitions for the message at the head of a port that neither remove nor postpone it: such a transition
        repeats forever."""
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
                self.warn(transition.loc, f"transition for event {transition.event.name}: leaves the message in port "
                          f"{describe(sorted(triggering))} and the state {transition.state.name}: expected a dequeue", "no-pop")

    def _wakeups(self, machine: Machine) -> None:
        stalls = [statement for block in _blocks(machine) for statement in ast.walk_statements(block)
                  if isinstance(statement, ast.StallAndWait)]
        if not stalls:
            return
        for block in _blocks(machine):
            for statement in ast.walk_statements(block):
                if isinstance(statement, ast.WakeupPort):
                    return
            for expr in ast.walk_exprs(block):
                if isinstance(expr, ast.Call) and (expr.name in _WAKES or expr.name.lower().startswith("wakeup")):
                    return
        self.warn(stalls[0].loc, f"machine '{machine.name}': never wakes stalled messages: expected wakeUpBuffers(address)", "no-wakeup")

    def _stalls_of_other_ports(self, machine: Machine) -> None:
        """Warns of a stall_and_wait on another port than the one whose message caused the transition: that port may hold another
        message, or none."""
        ports = _ports_of_events(machine)
        stalls = {action.name: [s for s in ast.walk_statements(action.body) if isinstance(s, ast.StallAndWait)]
                  for action in machine.actions}
        reported: set[ast.Loc] = set()
        for transition in machine.transitions:
            triggering = ports.get(transition.event.name)
            for stall in (s for action in transition.actions for s in stalls[action.name]):
                if triggering and stall.port.name not in triggering and stall.loc not in reported:
                    reported.add(stall.loc)
                    self.warn(stall.loc, f"stall_and_wait: port '{stall.port.name}' in a transition of event {transition.event.name}: "
                              f"expected port {describe(sorted(triggering))}, whose message the transition is about", "stall-other-port")

    def _ranks_of_wakeups(self, machine: Machine) -> None:
        """Reports calls of wakeUpBuffers that fail on gem5: there it wakes only ports of a lower rank than the current
        message's, and drops the messages of the others."""
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
                    self.warn(waking.pop(action.name).loc, f"wakeUpBuffers: in a transition of event {transition.event.name} of port "
                              f"'{handled.name}', rank {handled.rank}, does not wake '{highest.name}', rank {highest.rank}, on gem5: "
                              "expected wakeUpAllBuffers", "wake-rank")


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
    """States that are used as a value, other than in a comparison."""
    for block in _blocks(machine):
        compared: set[int] = set()
        for expr in ast.walk_exprs(block):
            if isinstance(expr, ast.Binary) and expr.op in ("==", "!="):
                compared.update((id(expr.left), id(expr.right)))
            elif isinstance(expr, ast.EnumRef) and expr.type is machine.state_type and id(expr) not in compared and expr.value is not None:
                yield expr.value


def _ports_of_events(machine: Machine) -> dict[str, set[str]]:
    """For each event that is triggered only with the address of the message at a port's head: those ports."""
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
    """The events that an expression can give, as far as its text names them."""
    if isinstance(expr, ast.EnumRef):
        return {expr.value_name}
    if isinstance(expr, ast.Call) and expr.function is not None and expr.function.body is not None:
        return {inner.value_name for inner in ast.walk_exprs(expr.function.body)
                if isinstance(inner, ast.EnumRef) and inner.type is machine.event_type}
    return set()


def _ports_let_go(block: list[Stmt], machine: Machine, depth: int = 0) -> set[str]:
    """Ports whose head message a block removes or postpones; "*" stands for an unknown port."""
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


def check(program: ast.Program, diagnostics: Diagnostics, strict: Iterable[str] = ()) -> None:
    """Checks a resolved program. Raises Stop if there were errors."""
    checker = Checker(program, diagnostics, strict)
    checker.run()
    check_names(program, diagnostics)
    check_hooks(program, diagnostics)
    check_support(program, diagnostics)
    check_ends(program, checker.warn)
    check_data(program, checker.warn)
    diagnostics.stop_on_error()
