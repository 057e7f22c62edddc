# SPDX-License-Identifier: BSD-3-Clause
"""One machine of a model: the part of the state that is a controller's, and its rules: what it does with a message."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .. import ast
from ..emit_cpp.in_ports import of_several_types
from ..emit_cpp.machine import BASE_MEMBERS, MachineEmitter
from ..emit_cpp.places import place
from ..emit_cpp.types import in_c_order, in_order_of_use
from ..emit_cpp.writer import Writer, c_type, prototype, quoted
from ..errors import Diagnostics
from ..runtime_names import own_action
from .code import ModelCode
from .types import BYTES, VISITS, begins_with, emit_type, field_type
from .unread import Unread

ARRAYS = {"CacheMemory": "CacheArray", "DirectoryMemory": "CacheArray"}
TABLES = {"TBETable": "TBEArray", "PerfectCacheMemory": "PerfectCacheArray"}
MANDATORY, TO_MEMORY, FROM_MEMORY = "mandatoryQueue", "requestToMemory", "responseFromMemory"


@dataclass(frozen=True)
class Place:
    """A machine's controllers in the model: how many, and the values of their plain parameters."""

    count: int
    values: dict[str, Any]


class ModelMachine(MachineEmitter):
    """Writes one machine. From its base class it uses the calls of getState and of the setters."""

    def __init__(self, program: ast.Program, machine: ast.Machine, place: Place, kinds: dict[str, int], unread: Unread, out: Writer,
                 diagnostics: Diagnostics) -> None:
        super().__init__(program, machine, diagnostics)
        self.out, self.place, self.kinds, self.unread = out, place, kinds, unread
        polled = [self.model_code().buffer(port.buffer) for port in machine.in_ports]
        #: Buffers in which messages arrive, by number: the machine's own, and those from the network and from DRAM. The machine
        #: polls them in this order.
        self.inputs = {p.name: i for i, p in enumerate(sorted(
            (b for b in machine.params if b.is_buffer and b.network != "To" and b.name != TO_MEMORY),
            key=lambda b: polled.index(b.name) if b.name in polled else len(polled)))}

    def model_code(self, in_machine: bool = False) -> ModelCode:
        return ModelCode(self.out, self.diagnostics, self.unread, in_machine)

    @property
    def is_core(self) -> bool:
        return MANDATORY in self.inputs and not self.is_device

    @property
    def is_device(self) -> bool:
        return any(p.type.name == "DMASequencer" for p in self.machine.params)

    @property
    def has_memory(self) -> bool:
        """Whether it talks to DRAM."""
        return self.machine.param(TO_MEMORY) is not None

    def in_order(self, buffer: str) -> bool:
        """Whether messages of one sender arrive in their order; they always do in a machine's own buffers."""
        p = self.machine.param(buffer)
        return p is not None and buffer != FROM_MEMORY and (p.network is None or p.is_ordered)

    def declare(self) -> None:
        """Types, names and the part of the state."""
        for type_ in in_order_of_use(self.machine.types, self.diagnostics):
            emit_type(self.out, type_, self.diagnostics, self.kinds, self.unread)
        self.tables()
        self.data()

    def define(self) -> None:
        """The rules, which know the whole state."""
        with self.out.block(f"struct {self.machine.name}_Rules final : Rules", "};"):
            self.rules()

    def entry_of(self, param: ast.Param) -> str:
        """The type of the entries that the machine allocates in an array."""
        found = {}
        bodies = [f.body for f in self.machine.functions if f.body is not None] + [a.body for a in self.machine.actions]
        for e in (e for body in bodies for e in ast.walk_exprs(body)):
            if isinstance(e, ast.MethodCall) and isinstance(e.object, ast.Name) and e.object.name == param.name:
                for a in e.args:
                    if isinstance(a, ast.New):
                        found[a.type_ref.type.c_name] = a
        if len(found) > 1:
            self.diagnostics.error(param.loc, f"{param.name}: holds entries of several types: {', '.join(found)}: expected one in a model")
        return next(iter(found), self.entry)

    def data(self) -> None:
        """Writes the part of a controller that is state, with a visitor of its structures."""
        out, m = self.out, self.machine
        visits = []
        with out.block(f"struct {m.name}_Data", "};"):
            for p in m.params:
                if p.type.name in ARRAYS:
                    out(f"{ARRAYS[p.type.name]}<{self.entry_of(p)}, kLines> {p.name};")
                    visits.append(p.name)
            for o in m.objects:
                if o.type.name in TABLES:
                    element = (o.template or f"<{self.tbe}>").strip("<> ")
                    out(f"{TABLES[o.type.name]}<{element}, kLines> {o.name};")
                    visits.append(o.name)
                elif o.type.name == "TimerTable":
                    self.diagnostics.error(o.loc, f"{o.name}: TimerTable: not supported in a model, which has no times")
                elif o.pointer or (o.type.is_external and o.type.name not in (*BYTES, "bool", "Addr", *VISITS, "Set")):
                    self.diagnostics.error(o.loc, f"{o.name}: {o.type.name}: not supported in a model")
                else:
                    out(f"{field_type(o.type)} {o.name};")
            out("std::uint8_t nothing;")
            with out.block("template <class D, class V> static void visit_tables(D &d, V &&v)"):
                for name in visits:
                    out(f"v({quoted(name)}, d.{name});")
            with out.block("void forget([[maybe_unused]] Addr line)"):
                for name in visits:
                    out(f"{name}.forget(line);")
            with out.block("void begin()"):
                for o in m.objects:
                    if o.type.name not in TABLES and not o.pointer:
                        out(f"{o.name} = {{{begins_with(o, self.unread.keeps(o), self.diagnostics)}}};")
        out(f"static_assert(alignof({m.name}_Data) == 1);\n")

    def rules(self) -> None:
        out, m = self.out, self.machine
        out(f"using Entry_ = {self.entry};\nusing Tbe_ = {self.tbe};")
        out(f"{m.name}_Data &d_;")
        for p in m.params:
            if p.name in BASE_MEMBERS:
                continue
            if p.is_buffer:
                out(self.buffer_line(p))
            elif p.type.name in ARRAYS:
                out(f"{ARRAYS[p.type.name]}<{self.entry_of(p)}, kLines> *{p.name} = &d_.{p.name};")
            elif p.type.name == "Sequencer":
                out(f"Sequencer *{p.name} = this;")
            elif p.type.name == "DMASequencer":
                out(f"DeviceSequencer {p.name}_{{*this}}, *{p.name} = &{p.name}_;")
            elif p.pointer:
                out(f"{c_type(p.type)} *{p.name} = nullptr;")
            else:
                out(f"{c_type(p.type)} {p.name}{{{self.value(p)}}};")
        for o in m.objects:
            star = "*" if o.pointer else ""
            out(f"decltype(d_.{o.name}) {star or '&'}{o.name} = {'&' if star else ''}d_.{o.name};")
        out(f"{m.name}_Rules(State &s, unsigned controller, {m.name}_Data &d) : Rules(s, controller), d_(d) {{}}")
        with out.block("void run_located()"):
            out("try { run_(buffer_); } catch (Violation &v) { locate(v); throw; }")
        with out.block("void run_(unsigned number_)"), out.block("switch (number_)"):
            for name, number in self.inputs.items():
                ports = [p for p in m.in_ports if self.model_code().buffer(p.buffer) == name]
                out(f"case {number}: // {name}")
                several = of_several_types(ports)  # each takes its own
                for port in ports:
                    if port.prot_stall_handler is not None:
                        self.diagnostics.error(port.loc, f"in_port '{port.name}': prot_stall_handler: not supported in a model: expected "
                                                         "an action that does the same")
                    with out.block(f"if (message_->kind == {c_type(port.message)}::kKind)" if several else ""):
                        out(place(port, {}, f"in_port {port.name}"))
                        self.model_code(True).block(port.body)
                out("    return;")
        self.transitions()
        for function in m.functions:
            if function.body is not None and not function.name.startswith("functional"):
                with out.block(prototype(function)):
                    self.model_code(True).function(function)
        for action in m.actions:
            if action.used and action.name != "z_stall":
                with out.block(f"void {own_action(action.name)}([[maybe_unused]] Entry_ *&cache_entry, [[maybe_unused]] Tbe_ *&tbe, "
                               "[[maybe_unused]] Addr address)"):
                    out(place(action, {}, f"action {action.name}"))
                    self.model_code(True).block(action.body)
        self.found_entry()
        with out.block("unsigned state_of_([[maybe_unused]] Addr line)"):
            out(f"return getState({self.getstate_args('line')});")
        with out.block("AccessPermission permission_([[maybe_unused]] Addr line)"):
            out("return getAccessPermission(line);" if self.has("getAccessPermission") else "return AccessPermission_NotPresent;")

    def value(self, p: ast.Param) -> str:
        if p.name in self.place.values and p.type.name in ("int", "bool", "uint32_t", "uint64_t", "NodeID"):
            given = self.place.values[p.name]
            return str(given).lower() if isinstance(given, bool) else str(int(given))
        text = self.model_code().expr(p.default) if p.default is not None else ""
        if p.type.name == "bool":
            text = text.replace('std::string("True")', "true").replace('std::string("False")', "false")
        return text

    def buffer_line(self, p: ast.Param) -> str:
        if p.network == "To":
            if p.virtual_network is None:
                self.diagnostics.error(p.loc, f"{p.name}: virtual_network: not a number: expected one in a model")
            return f"NetworkBuffer {p.name}{{*this, {p.virtual_network}, {quoted(p.name)}}};"
        if p.name == TO_MEMORY:
            return f"MemoryBuffer {p.name}{{*this}};"
        return f"OwnBuffer {p.name}{{*this, {self.inputs[p.name]}}};"

    def transitions(self) -> None:
        """Writes `take_`, which makes the transition of an event unless the state stalls it. `file` and `line`: the trigger's."""
        out, m = self.out, self.machine
        with out.block(f"bool take_({self.event_type.c_name} event, Entry_ *cache_entry, Tbe_ *tbe, Addr address, const char *file, "
                       "unsigned line)"):
            out("if (address == kElsewhere) return abandon_();")
            out(f"const {self.state_type.c_name} state = getState({self.state_call()});")
            out("at(file, line);")
            out(f"[[maybe_unused]] {self.state_type.c_name} next = state;")
            if self.triggers is None:  # the value may be no event
                out(f"if (event >= {self.event_type.c_name}_NUM) no_transition_(k{m.name}_States[state], to_text(event));")
            out(f"note_({m.name}_Number, k{m.name}_Table[event][state], state, event, address);")
            with out.block(f"switch (k{m.name}_Table[event][state])"):
                for i, t in enumerate(m.transitions):
                    out(f"case {i + 1}:")
                    out.depth += 1
                    if self.stalls(t):
                        out("return stalled_();")
                    else:
                        if t.next_state is None:
                            out("next = getNextState(address);")
                        elif t.next_state is not t.state:
                            out(f"next = {t.next_state.c_name};")
                        for action in t.actions:
                            out(f"{own_action(action.name)}(cache_entry, tbe, address);")
                        out("break;")
                    out.depth -= 1
                out(f"default: no_transition_(k{m.name}_States[state], k{m.name}_Events[event]);")
            for name in ("setState", "setAccessPermission"):
                call = self.setter_call(name)
                if call:
                    out(call)
            out("d_.forget(address);\nreturn true;")

    def tables(self) -> None:
        out, m = self.out, self.machine
        states, events = in_c_order(m.states), in_c_order(m.events)
        out(f"constexpr unsigned {m.name}_Number = MachineType_{m.name};")
        out(f"inline constexpr const char *k{m.name}_States[] = {{{', '.join(quoted(s.name) for s in states)}}};")
        out(f"inline constexpr const char *k{m.name}_Events[] = {{{', '.join(quoted(e.name) for e in events)}}};")
        index = {t.key: i + 1 for i, t in enumerate(m.transitions)}
        with out.block(f"inline constexpr std::uint16_t k{m.name}_Table[{len(events)}][{len(states)}] =", "};"):
            for e in events:
                out("{" + ", ".join(str(index.get((s.name, e.name), 0)) for s in states) + "},")
        with out.block(f"inline constexpr TransitionName k{m.name}_Transitions[] =", "};"):
            for t in m.transitions:
                out(f"{{{quoted(t.state.name)}, {quoted(t.event.name)}, {'true' if self.stalls(t) else 'false'}}},")
        out()
