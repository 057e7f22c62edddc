# SPDX-License-Identifier: BSD-3-Clause
"""One controller class per machine: parameters, polling of in_ports, a flat transition table, actions."""
from __future__ import annotations

from .. import ast
from ..errors import Diagnostics
from ..events import triggers
from ..hits import HitAnalysis, analyse_hits
from ..runtime_names import own_action, own_function
from ..supported import COUNTED, TYPES
from .code import Code
from .hooks import HookCalls
from .in_ports import in_ports
from .inlining import Inlining
from .latencies import is_unsolicited, shortest_latency
from .places import place
from .traits import counted_buffers, needs_no_message, queues_memory, stalls_end_unseen
from .types import HEADER, bound_depth, capacity, data_field, emit_type, in_c_order, in_order_of_use, in_type, message_numbers
from .writer import Writer, c_field, c_type, initial, prototype, quoted

CACHE, DIRECTORY, SEQUENCER, DMA = "CacheMemory", "DirectoryMemory", "Sequencer", "DMASequencer"
#: Members that every controller has from its base class, whatever the protocol declares.
BASE_MEMBERS = {"version", "machineID", "clusterID", "recycle_latency", "number_of_TBEs", "transitions_per_cycle"}

#: At most AbstractController::kHeads.
KEPT_HEADS = 8


class MachineEmitter(HookCalls):
    """Writes the source of one machine's controller."""

    def __init__(self, program: ast.Program, machine: ast.Machine, diagnostics: Diagnostics) -> None:
        assert machine.state_type is not None and machine.event_type is not None  # the resolver requires both
        super().__init__(machine, Writer())
        self.program, self.diagnostics = program, diagnostics
        self.state_type, self.event_type = machine.state_type, machine.event_type
        self.name = f"{machine.name}_Controller"
        self.entry = c_type(machine.entry_type) if machine.entry_type else "AbstractCacheEntry"
        self.tbe = c_type(machine.tbe_type) if machine.tbe_type else "NoTbe"
        self.base = "LocatedController" if program.foreign else "AbstractController"
        self.numbers = message_numbers(program)
        self.asks_event = any(f.name in ("curTransitionEvent", "curTransitionNextState") and f.body is None for f in machine.functions)
        self.stalls_end_unseen = stalls_end_unseen(machine)
        self.triggers = triggers(machine)
        # For a protocol from outside: the files with its statements, and its actions and in_ports. The generated code names them by
        # number.
        self.files: dict[str, None] = {}
        self.whats: dict[str, None] = {}
        self.hit_states = {h.transition.state.name for h in analyse_hits(machine).hits}
        # Transitions of an event that are alike share their code.
        different = {(t.event.name, self.effect(t)): t for t in machine.transitions}
        self.inlining = Inlining(machine, different.values(), self.triggers, program.foreign)

    def code(self, probe: ast.InPort | None = None) -> Code:
        code = Code(self.out, self.diagnostics, probe, self.heads(), self.program.foreign, self.program.foreign)
        code.stalls_end_unseen, code.files = self.stalls_end_unseen, self.files
        return code

    def heads(self) -> dict[str, int]:
        """The buffers that in_ports read, in the order of polling, each with its number: at most as many as a controller keeps
        heads for."""
        read = [port.buffer for port in self.machine.in_ports]
        names = dict.fromkeys(b.name for b in read if isinstance(b.decl, ast.Param) and b.decl.is_buffer)
        return {name: number for number, name in enumerate(list(names)[:KEPT_HEADS])}

    def source(self) -> str:
        out, m = self.out, self.machine
        out(HEADER + f'\n#include "{self.program.name}_types.hh"\n')
        out(f"namespace moscope::protocol_{self.program.name} {{\nnamespace {{\n")
        for type_ in in_order_of_use(m.types, self.diagnostics):
            emit_type(out, type_, self.diagnostics, self.numbers, self.program.foreign)
        self.tables()
        before_class = len(out.lines)
        with out.block(f"class {self.name} final : public {self.base}", "};"):
            out.depth -= 1
            out("  public:")
            out.depth += 1
            out(f"using Entry_ = {self.entry};")
            out(f"using Tbe_ = {self.tbe};")
            self.construction()
            self.inspection()
            out("\nprivate:")
            self.members()
            self.place_setters()
            self.polling()
            self.dispatch()
            for function in m.functions:
                if function.body is not None:
                    with out.block(prototype(function)):
                        bound_depth(out, self.program.foreign, function)
                        self.code().function(function)
            for action in m.actions:
                if action.used and action.name != "z_stall":
                    with out.block(self.action_prototype(action)):
                        self.says_where("action", action)
                        self.code().block(action.body)
            self.pure_hits()
        if self.program.foreign:  # written last, when all files and places are known
            out.lines[before_class:before_class] = [f"constexpr const char *{name}[] = {{{', '.join(map(quoted, names or ['']))}}};"
                                                    for name, names in (("kFiles", self.files), ("kWhats", self.whats))]
        with out.block("AbstractController *create(EventQueue &queue, std::string name, Clock clock)"):
            out(f"return new {self.name}(queue, std::move(name), clock);")
        out("\n} // namespace\n")
        counts = f"{len(m.states)}, {len(m.events)}"
        out(f"const MachineInfo {m.name}_info{{MachineType_{m.name}, {quoted(m.name)}, {counts}, kStates, kEvents, "
            f"kTransitions, {len(m.transitions)}, create}};")
        out(f"\n}} // namespace moscope::protocol_{self.program.name}")
        return out.text()

    def action_prototype(self, action: ast.Action) -> str:
        """Entry and TBE are references where the action sets them."""
        statements = list(ast.walk_statements(action.body))
        entry = "&" if any(isinstance(s, ast.SetEntry) for s in statements) else ""
        tbe = "&" if any(isinstance(s, ast.SetTbe) for s in statements) else ""
        inlined = "[[gnu::always_inline]] " if self.inlining.inlines(action) else ""
        return (f"{inlined}void {own_action(action.name)}([[maybe_unused]] Entry_ *{entry}cache_entry, [[maybe_unused]] Tbe_ *{tbe}tbe, "
                "[[maybe_unused]] Addr address)")

    # ------------------------------------------------------------------------------------------------------ tables

    def stalls(self, t: ast.Transition) -> bool:
        return any(a.name == "z_stall" for a in t.actions)

    def tables(self) -> None:
        out, m = self.out, self.machine
        states, events = in_c_order(m.states), in_c_order(m.events)
        with out.block("constexpr StateInfo kStates[] =", "};"):
            for s in states:
                out(f"{{{quoted(s.name)}, AccessPermission_{s.permission}}},")
        out(f"constexpr const char *kEvents[] = {{{', '.join(quoted(e.name) for e in events)}}};")
        with out.block("constexpr TransitionInfo kTransitions[] =", "};"):
            for t in m.transitions:
                after = -1 if t.next_state is None else states.index(t.next_state)
                actions = quoted(",".join(a.name for a in t.actions))
                out(f"{{{states.index(t.state)}, {events.index(t.event)}, {after}, {actions}, "
                    f"{'true' if self.stalls(t) else 'false'}}},")
        index = {t.key: i + 1 for i, t in enumerate(m.transitions)}
        out("// Transition number plus one by event and state; 0: none.")
        with out.block(f"constexpr std::uint16_t kTable[{len(events)}][{len(states)}] =", "};"):
            for e in events:
                out("{" + ", ".join(str(index.get((s.name, e.name), 0)) for s in states) + "},")
        out()

    # ------------------------------------------------------------------------------------------- parameters, members

    def shortest(self, buffer: ast.Param) -> str:
        """The least latency, in cycles, of all messages that the machine sends into the buffer."""
        return " ".join(shortest_latency(self.machine, buffer, self.code().expr).split())

    def construction(self) -> None:
        out, m = self.out, self.machine
        with out.block(f"{self.name}(EventQueue &queue_, std::string name_, Clock clock_)\n    "
                       + f": {self.base}(queue_, std::move(name_), wake_entry, clock_)"):
            out("info = nullptr;")
            out(f"static_assert({len(self.heads())} <= kHeads);")
            out("counts_ = transition_counts_ + 1;" + "\nfiles_ = kFiles;\nwhats_ = kWhats;" * self.program.foreign)
            for p in m.params:
                if p.is_buffer:
                    out(f"{p.name}.name = this->name() + {quoted('.' + p.name)};")
            for p in counted_buffers(m):
                out(f"{p.name}.capacity = 1u << 30; // the network counts the messages of buffers with a bound")
            for buffer in {self.code().buffer(port.buffer): port.buffer for port in m.in_ports}.values():
                if isinstance(buffer.decl, ast.Param) and buffer.decl.is_buffer:
                    head = self.heads().get(buffer.name)
                    out(f"reads({buffer.name});" if head is None else f"reads({buffer.name}, {head});")
        with out.block("std::vector<BufferPort> buffers() override"), out.block("return", "};"):
            for p in m.params:
                if p.is_buffer:
                    direction = {"To": "T", "From": "F"}.get(p.network or "", "-")
                    vnet = -1 if p.virtual_network is None else p.virtual_network
                    ordered = "true" if p.is_ordered else "false"
                    out(f"{{{quoted(p.name)}, &{p.name}, '{direction}', {vnet}, {quoted(p.vnet_type or '')}, {ordered}, "
                        f"{self.shortest(p)}, {'true' if is_unsolicited(m, p) else 'false'}}},")
            if self.program.foreign and queues_memory(m):
                out("{\"requestToMemory\", &memory_requests_, '-', -1, \"\", false, 0, false},")
        for kind, c_kind, setter in ((CACHE, CACHE, "set_cache"), (DIRECTORY, DIRECTORY, "set_directory"),
                                     (SEQUENCER, SEQUENCER, "set_sequencer"), (DMA, DMA, "set_dma_sequencer")):
            with out.block(f"bool {setter}([[maybe_unused]] std::string_view param_, [[maybe_unused]] {c_kind} *value_) override"):
                out("bool any_ = false;")
                for p in m.params:
                    if c_type(p.type) == kind:
                        out(f"if (param_.empty() || param_ == {quoted(p.name)}) {p.name} = value_, any_ = true;")
                out("return any_;")
        with out.block("bool set_value(std::string_view param_, std::int64_t value_) override"):
            for p in m.params:
                if self.plain(p) and p.name not in BASE_MEMBERS:
                    out(f"if (param_ == {quoted(p.name)}) return {p.name} = static_cast<{c_type(p.type)}>(value_), true;")
            for name in sorted(BASE_MEMBERS - {"version", "machineID"}):
                out(f"if (param_ == {quoted(name)}) return {name} = static_cast<decltype({name})>(value_), true;")
            out("return false;")
        with out.block("void init() override"):
            out(f"info = &{m.name}_info;")
            for o in m.objects:
                if o.type.name in COUNTED:
                    out(f"{o.name}.set_capacity(static_cast<unsigned>({capacity(o)}));")
                elif o.type.name == "PerfectCacheMemory":
                    out(f"stores.tables.push_back({'' if o.pointer else '&'}{o.name});")
        out()

    def plain(self, p: ast.Param) -> bool:
        return not p.pointer and p.type.name != "std::string"

    def place_setters(self) -> None:
        if self.program.foreign:
            with self.out.block("static consteval std::uint32_t here(NumberIn<kFiles> file, std::uint32_t line)"):
                self.out("return place_number(file.number, line);")
            self.out("void at(NumberIn<kFiles> file, std::uint32_t line) { set_place(place_number(file.number, line)); }")
            self.out("void in(NumberIn<kWhats> what) { set_what(what.number); }")

    def members(self) -> None:
        out, m = self.out, self.machine
        for p in m.params:
            if p.name in BASE_MEMBERS:
                continue
            if self.program.foreign:
                out("// " + place(p))
            if p.is_buffer:
                out(f"MessageBuffer {p.name};")
            elif p.pointer:
                out(f"{c_type(p.type)} *{p.name} = nullptr;")
            else:
                default = self.code().expr(p.default) if p.default is not None else ""
                if p.type.name == "bool":
                    default = default.replace('std::string("True")', "true").replace('std::string("False")', "false")
                out(f"{c_type(p.type)} {p.name}{{{default}}};")
        for o in m.objects:
            if self.program.foreign:
                out("// " + place(o))
            known = TYPES.get(o.type.name)
            element = o.template or (f"<{self.tbe}>" if o.type.name in ("TBETable", "MN_TBETable") else "")
            base = o.type.name if known is not None or o.type.name == "TimerTable" else c_type(o.type)
            init = in_type(o, initial(o))
            if o.type.name in COUNTED:
                init = ""
            if o.pointer:
                out(f"{base}{element} *{o.name} = new {base}{element}();")
            else:
                out(f"{base}{element} {o.name}{{{init}}};")
        if self.asks_event:
            event, state = self.event_type.c_name, self.state_type.c_name
            out(f"{event} transition_event_{{}};\n{state} transition_next_{{}};")
            out(f"{event} curTransitionEvent() const {{ return transition_event_; }}")
            out(f"{state} curTransitionNextState() const {{ return transition_next_; }}")
        out("// By kTable's numbers, of which none is 0.")
        out(f"std::uint64_t transition_counts_[{len(m.transitions)} + 1] = {{}};")
        out()

    # ----------------------------------------------------------------------------------- inspection by other components

    def inspection(self) -> None:
        out, m = self.out, self.machine
        self.found_entry()
        with out.block("AccessPermission permission([[maybe_unused]] Addr line) override"):
            out("return getAccessPermission(line);" if self.has("getAccessPermission") else "return AccessPermission_NotPresent;")
        with out.block("unsigned state_of([[maybe_unused]] Addr line) override"):
            out(f"return getState({self.getstate_args('line')});")
        with out.block("void functional_read([[maybe_unused]] Addr line, [[maybe_unused]] Packet &pkt) override"):
            for f in m.function("functionalRead"):
                if len(f.formals) == 2:
                    out("functionalRead(line, &pkt);")
                elif len(f.formals) == 3:  # a mask of the bytes that have been found so far
                    out("WriteMask found_;\nfunctionalRead(line, &pkt, found_);\npkt.found = pkt.found && found_.isFull();")
        self.view()
        tables = [o.name for o in m.objects if o.type.name == "TBETable"]
        with out.block("unsigned tbes_in_use() const override"):
            out(f"return {' + '.join(t + '.count()' for t in tables) or '0'};")
        with out.block("void for_each_entry([[maybe_unused]] void *context, "
                       "[[maybe_unused]] void (*f)(void *, const AbstractCacheEntry &)) override"):
            for p in m.params:
                if p.type.name == CACHE:
                    out(f"if ({p.name}) {p.name}->for_each([&](const AbstractCacheEntry *e) {{ f(context, *e); }});")
        out()

    def view(self) -> None:
        out, m = self.out, self.machine

        def fields(type_: ast.Type | None, of: str, into: str) -> None:
            for f in type_.fields.values() if type_ is not None else []:
                if f.type.name != "DataBlock" and not f.pointer and not f.type.is_handle:
                    out(f'append_field(view_.{into}, "{f.name}", {of}->{c_field(f)});')

        with out.block("[[gnu::cold]] void view(Addr line, LineView &view_) override"):
            out("view_.state = state_of(line);")
            for finder in self.entry_finders()[:1]:
                name = "found_entry" if finder.return_type is m.entry_type else own_function(finder)
                with out.block(f"if ([[maybe_unused]] const auto *e = {name}(line))"):
                    fields(finder.return_type, "e", "entry")
            for o in m.objects:
                if o.type.name == "TBETable":
                    with out.block(f"if ([[maybe_unused]] const auto *t = {o.name}.lookup(line))"):
                        out("view_.has_tbe = true;")
                        fields(m.tbe_type, "t", "tbe")
            for p in m.params:
                if p.type.name == CACHE:
                    out(f"if ({p.name}) if (const AbstractCacheEntry *e = {p.name}->lookup(line))")
                    out(f"    view_.ways.push_back({{{quoted(p.name)}, e->slot / {p.name}->geometry().ways, "
                        f"e->slot % {p.name}->geometry().ways}});")

    # -------------------------------------------------------------------------------------------------------- running

    def polling(self) -> None:
        out, m = self.out, self.machine
        with out.block("static void wake_entry(Component &c, Tick t)"):
            out(f"auto &self = static_cast<{self.name} &>(static_cast<AbstractController &>(c));")
            out("self.begin_wake(t);")
            if self.program.foreign:
                out("Tick next = kNever;\nself.located([&]() __attribute__((always_inline)) { next = self.poll(); });")
                out("self.end_wake(next);")
            else:
                out("self.end_wake(self.poll());")
        heads, read = self.heads(), dict.fromkeys(self.code().buffer(port.buffer) for port in m.in_ports)
        without = [buffer for buffer in read if buffer not in heads]
        out("// Runs transitions as long as one is possible. Returns when the next message that waits is due.")
        with out.block("[[gnu::always_inline]] inline Tick poll()"):
            in_ports(self)
            out("return next_due();")
            if m.in_ports:
                out("after_transition:")
                if not without and not needs_no_message(m):
                    out(f"if (const Tick next = first_head({len(heads)}); next > now_) return rest_until(next); // no port is ready")
                with out.block("if (++transitions_ >= transitions_per_cycle)"):
                    out("look_again_next_cycle();\nreturn next_due();")
                out("goto again;")
        with out.block("Tick next_due() const"):
            out(f"Tick next = next_head({len(heads)});")
            for buffer in without:
                out(f"next = due({buffer}, next);")
            out("return next;")

    def says_where(self, what: str, node: ast.Action | ast.InPort) -> None:
        """For a protocol from outside, records which action or in_port is running."""
        if self.program.foreign:
            self.out(self.naming(what, node))

    def naming(self, what: str, node: ast.Action | ast.InPort) -> str:
        """The C++ statement with which an action or in_port of a protocol from outside begins."""
        self.whats[f"{what} {node.name}"] = None
        return f"in({quoted(f'{what} {node.name}')});"

    def dispatch(self) -> None:
        """One function for each event, and one that takes any event where a trigger needs it."""
        out, m = self.out, self.machine
        events = in_c_order(m.events)
        for event in events:
            self.event_function(event)
        if self.triggers is not None:
            return  # each trigger calls the functions of its events
        with out.block(f"Result doTransition({self.event_type.c_name} event, Entry_ *cache_entry, Tbe_ *tbe, Addr address)"):
            with out.block("switch (event)"):
                for event in events:
                    out(f"case {event.c_name}: return on_{event.name}(cache_entry, tbe, address);")
                out("default: break;")
            out(f"no_transition(getState({self.state_call()}), event, address);")

    def event_function(self, event: ast.Event) -> None:
        """Writes the transitions of an event. States with the same transition share its code."""
        out, state = self.out, self.state_type.c_name
        alike: dict[tuple[object, ...], list[ast.Transition]] = {}
        for t in self.machine.transitions:
            if t.event is event:
                alike.setdefault(self.effect(t), []).append(t)
        with out.block(f"{self.inlining.event_attribute(event)}Result on_{event.name}(Entry_ *cache_entry, Tbe_ *tbe, Addr address)"):
            out(f"const {state} state = getState({self.state_call()});")
            out(f"[[maybe_unused]] {state} next = state;")
            out("in_state_ = state;")
            if self.asks_event:
                out(f"transition_event_ = {event.c_name};")
            with out.block("switch (state)"):
                for transitions in alike.values():
                    for t in transitions:
                        out(f"case {t.state.c_name}:")
                    out.depth += 1
                    inline = any(self.serves_inline(t.state) for t in transitions)
                    if inline:
                        out("before_change(address);")
                    if self.stalls(transitions[0]):
                        out("return Result::protocol_stall;")
                    else:
                        self.transition(transitions[0])
                        if inline:
                            out("forget_line(address);")
                        self.end_transition(event, transitions)
                    out.depth -= 1
                out(f"default: no_transition(state, {event.c_name}, address);")

    def end_transition(self, event: ast.Event, transitions: list[ast.Transition]) -> None:
        """Writes the end of transitions that share their code. With a single state, its number and the transition's are constants
        for the compiler."""
        out, state = self.out, transitions[0].state.c_name if len(transitions) == 1 else "state"
        out(f"++transition_counts_[kTable[{event.c_name}][{state}]];")
        out(f"traced({state}, {event.c_name}, next, address);")
        for call in filter(None, map(self.setter_call, ("setState", "setAccessPermission"))):
            out(call)
        out(f"settled({state}, {event.c_name}, next, address);")
        out("return Result::valid;")

    def serves_inline(self, state: ast.State) -> bool:
        """Whether the core may hit on a line in this state without the protocol. In a protocol from outside, a trigger may pass
        no entry although the line has one, so all states count."""
        return self.program.foreign or state.name in self.hit_states

    def effect(self, t: ast.Transition) -> tuple[object, ...]:
        """What a transition does, apart from the state that it starts in."""
        next_state = "*" if t.next_state is None else "" if t.next_state is t.state else t.next_state.c_name
        return (next_state, *((id(resource), slots) for resource, slots in t.resources.items()), *(a.name for a in t.actions))

    def transition(self, t: ast.Transition) -> None:
        for resource, slots in t.resources.items():
            self.out(f"if (!{self.code().has_slots(resource, slots)}) return Result::resource_stall;")
        if t.next_state is None:
            self.out("next = getNextState(address);")
        elif t.next_state is not t.state:
            self.out(f"next = {t.next_state.c_name};")
        if self.asks_event:
            self.out("transition_next_ = next;")
        for action in t.actions:
            self.out(f"{own_action(action.name)}(cache_entry, tbe, address);")

    # ---------------------------------------------------------------------------------------------------------- hits

    def pure_hits(self) -> None:
        """The inline path: whether an access is a hit that the compiler has proved to be pure."""
        out, m = self.out, self.machine
        found = analyse_hits(m)
        if found.port is None or m.entry_type is None or not found.hits:
            with out.block("bool probe_hit(Addr, RubyRequestType, RubyRequestType, HitInfo &) override"):
                out("return false;")
            return
        out("// Pure hits: the transition keeps the state and only calls back, touches the order and pops.")
        self.hit_table(found)
        with out.block(f"Entry_ *if_pure({self.event_type.c_name} event, Entry_ *cache_entry, Tbe_ *tbe, Addr address)"):
            out(f"return cache_entry && kPureHit[getState({self.state_call()})][event] ? cache_entry : nullptr;")
        with out.block("Entry_ *pure_hit(Addr line_, RubyRequestType type_)"):
            out("struct { Addr LineAddress, PhysicalAddress; RubyRequestType Type; RubyAccessMode AccessMode; PrefetchBit Prefetch; "
                "int Size, contextId; Addr ProgramCounter; } in_msg{line_, line_, type_, RubyAccessMode_User, PrefetchBit_No, 8, 0, 0};")
            out("(void)in_msg;")
            self.code(found.port).block(found.port.body)
            out("return nullptr;")
        with out.block("bool probe_hit(Addr line, RubyRequestType type, RubyRequestType other, HitInfo &hit_) override"):
            out("Entry_ *const e = pure_hit(line, type);")
            out("if (!e) return false;")
            caches = [p.name for p in m.params if p.type.name == CACHE]
            for i, name in enumerate(caches):
                out(f"{'else ' if i else ''}if ({name} && {name}->holds(e)) hit_.stamp = {name}->stamp(e->slot);")
            out(f"hit_.bytes = e->{data_field(m.entry_type)}.bytes();")
            out("hit_.other = other != RubyRequestType_NULL && pure_hit(line, other) == e;")
            out("return true;")

    def hit_table(self, found: HitAnalysis) -> None:
        """Writes the table of pure hits. A hit that does not update the replacement order has no stamp, so it is not served inline."""
        pairs = {h.transition.key for h in found.hits if h.touches}
        states, events = in_c_order(self.machine.states), in_c_order(self.machine.events)
        none = self.triggers is None  # a trigger may give a value that is no event
        with self.out.block(f"static constexpr bool kPureHit[{len(states)}][{len(events) + none}] =", "};"):
            for s in states:
                self.out("{" + ", ".join("true" if (s.name, e.name) in pairs else "false" for e in events) + "},")
