# SPDX-License-Identifier: BSD-3-Clause
"""A model of a protocol for `moscope protocol verify`: one C++ source with the state of a small machine, all in bytes, and its
rules. src/verify explores it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .. import ast
from ..emit_cpp.types import HEADER, in_order_of_use
from ..emit_cpp.writer import Writer, prototype, quoted
from ..errors import Diagnostics, Stop
from . import outside
from .code import ModelCode
from .machine import FROM_MEMORY, MANDATORY, ModelMachine, Place
from .types import emit_type
from .unread import NOTHING, Unread

MEMORY_FIELDS = ("Sender", "OriginalRequestorMachId", "MessageSize", "Len", "Acks", "Prefetch", "ReadX", "isGLCSet", "isSLCSet")
"""The fields of MemoryMsg that a model may forget."""
FIRST_KIND = 4
"""The number of the first of a protocol's own message types: kFirstKind of src/verify/messages.hh."""


@dataclass(frozen=True)
class Model:
    """The machine to explore: `places` by machine, `lines`, room for `messages` in flight, the kinds of requests that cores make,
    the requests of a device, and the renamings of controllers that leave the machine as it is (each a list: new number by old
    number)."""

    places: Mapping[str, Place]
    lines: int
    messages: int
    memory_queue: int = 2
    pending: int = 2
    requests: tuple[str, ...] = ("LD", "ST")
    device: tuple[str, ...] = ()
    renamings: tuple[tuple[int, ...], ...] = ()
    line_renamings: tuple[tuple[int, ...], ...] = ()
    evict: bool = True
    reduce: bool = True


def read(spec: Mapping[str, Any]) -> Model:
    """The model that a JSON object describes: the fields of `Model`, `places` as {machine: {count, values}}."""
    def rows(key: str) -> tuple[tuple[int, ...], ...]:
        return tuple(tuple(row) for row in spec.get(key, ()))

    return Model(places={name: Place(place["count"], place["values"]) for name, place in spec["places"].items()}, lines=spec["lines"],
                 messages=spec["messages"], memory_queue=spec["memory_queue"], pending=spec["pending"],
                 requests=tuple(spec["requests"]), device=tuple(spec.get("device", ())),
                 renamings=rows("renamings"), line_renamings=rows("line_renamings"), evict=spec["evict"], reduce=spec["reduce"])


def emit(program: ast.Program, model: Model, diagnostics: Diagnostics, messages: Sequence[outside.Outside] = ()) -> str:
    """The C++ of a checked program's model. `messages` come from outside the model. Reports what a model cannot express."""
    out = Writer()
    unread = Unread(program) if model.reduce else NOTHING
    machines = [m for m in program.machines if m.name in model.places and model.places[m.name].count]
    kinds = {t.name: FIRST_KIND + i for i, t in enumerate(t for t in program.message_types() if not t.is_external)}
    out(HEADER + '\n#include "verify/storage.hh"\n#include "verify/rules.hh"\n#include "verify/search.hh"\n')
    for warning in ("sign-compare", "unused-parameter", "unused-value", "unused-function", "return-type", "unused-variable",
                    "unused-but-set-variable"):
        out(f'#pragma GCC diagnostic ignored "-W{warning}"')
    out(f"\nnamespace moscope::verify {{\nnamespace {{\n\ninline constexpr unsigned kLines = {model.lines};\n")
    for type_ in in_order_of_use(program.types, diagnostics):
        if not (type_.in_prelude and (type_.is_enum or type_.is_external or type_.kind == "external")):
            emit_type(out, type_, diagnostics, kinds, unread)
    own = list(kinds)
    sizes = ", ".join(f"sizeof({n})" for n in ("RubyRequest", "MemoryMsg", "SequencerMsg", *own))
    out(f"inline constexpr unsigned kBody = std::max({{{sizes}}});")
    out("using Message = Slot<kBody>;\n")
    for function in program.functions:
        if function.body is not None:
            with out.block("inline " + prototype(function)):
                ModelCode(out, diagnostics, unread).function(function)
    parts = [ModelMachine(program, m, model.places[m.name], kinds, unread, out, diagnostics) for m in machines]
    if not any(part.is_core for part in parts):
        diagnostics.error(program.machines[0].loc, f"machines: none has a parameter {MANDATORY}: expected one that takes the requests of a "
                                                   "core in a model")
        raise Stop
    for part in parts:
        part.declare()
    state(out, program, model, parts, own, [(t.name, t.fields["Type"].type.c_name) for t in program.message_types()
                                   if not t.is_external and "Type" in t.fields and t.fields["Type"].type.is_enum], unread)
    for part in parts:
        part.define()
    dispatch(out, program, model, parts, messages)
    out("\n} // namespace\n} // namespace moscope::verify\n")
    with out.block("int main(int argc, char **argv)"):
        out("return moscope::verify::explore<moscope::verify::Machine>(argc, argv);")
    return out.text()


def state(out: Writer, program: ast.Program, model: Model, parts: list[ModelMachine], kinds: list[str], typed: list[tuple[str, str]],
          unread: Unread) -> None:
    """Writes the state of the whole machine, and how its parts are visited."""
    cores = sum(p.place.count for p in parts if p.is_core)
    devices = sum(p.place.count for p in parts if p.is_device)
    with out.block("struct State", "};"):
        out("using Message = verify::Message;")
        out(f"static constexpr unsigned kCores = {cores}, kSlots = {model.messages}, kLines = verify::kLines;")
        for p in parts:
            out(f"{p.machine.name}_Data {p.machine.name}[{p.place.count}];")
        out(f"static constexpr bool kEager = {str(model.reduce and sum(p.has_memory for p in parts) == 1).lower()};")
        out(f"Core cores[kCores + {devices}]; ///< the devices last\nDataBlock memory[kLines];")
        out("std::uint8_t messages;\nMessage slots[kSlots];\n")
        memory = next(t for t in program.types if t.name == "MemoryMsg")
        with out.block("static void forget([[maybe_unused]] MemoryMsg &m)"):
            for name in unread.of(memory, True):
                if name in MEMORY_FIELDS:
                    out(f"m.{name} = {{}};")
        with out.block("template <class M> static void forget(M &m)"):
            # A core's request, which a protocol may put into a queue of its own, has no fields to forget.
            out("if constexpr (requires { m.forget(); })\n    m.forget();")
        with out.block("template <class V> void visit_tables(V &&v)"):
            for p in parts:
                out(f"for (auto &d : {p.machine.name}) {p.machine.name}_Data::visit_tables(d, v);")
        with out.block("template <class V> static void visit_body(Message &m, V &&v)"), out.block("switch (m.kind)"):
            for name in ["RubyRequest", "MemoryMsg", "SequencerMsg", *kinds]:
                out(f"case {name}::kKind: return {name}::visit(m.as<{name}>(), v);")
            out("default: return;")
        with out.block("static const char *kind_name(unsigned kind)"):
            names = ", ".join(quoted(n) for n in ["", "RubyRequest", "MemoryMsg", "SequencerMsg", *kinds])
            out(f"static constexpr const char *names[] = {{{names}}};\nreturn names[kind];")
        with out.block("static const char *message_name(const Message &m)"), out.block("switch (m.kind)"):
            for name, enum in typed:
                out(f"case {name}::kKind: return {enum}_to_string(m.as<{name}>().Type);")
            out("default: return kind_name(m.kind);")
        with out.block("static int receiver([[maybe_unused]] unsigned vnet, MachineType t)"), out.block("switch (t)"):
            for p in parts:
                with out.block(f"case MachineType_{p.machine.name}: switch (vnet)"):
                    for b in p.machine.params:
                        if b.is_buffer and b.network == "From" and b.virtual_network is not None:
                            out(f"case {b.virtual_network}: return {p.inputs[b.name]};")
                    out("default: return -1;")
            out("default: return -1;")
        with out.block("static bool ordered(MachineType t, unsigned buffer)"), out.block("switch (t)"):
            for p in parts:
                bits = sum(1 << n for name, n in p.inputs.items() if p.in_order(name))
                out(f"case MachineType_{p.machine.name}: return {bits}u >> buffer & 1;")
            out("default: return true;")
        with out.block("static const char *buffer_name(MachineType t, unsigned buffer)"), out.block("switch (t)"):
            for p in parts:
                with out.block(f"case MachineType_{p.machine.name}:"):
                    out(f"static constexpr const char *names[] = {{{', '.join(quoted(n) for n in p.inputs)}}};\nreturn names[buffer];")
            out('default: return "memory";')
        with out.block("static unsigned from_memory(MachineType t)"), out.block("switch (t)"):
            for p in parts:
                if FROM_MEMORY in p.inputs:
                    out(f"case MachineType_{p.machine.name}: return {p.inputs[FROM_MEMORY]};")
            out("default: return 0;")
    out("static_assert(alignof(State) == 1);\nusing Rules = RulesOf<State>;\n")


def dispatch(out: Writer, program: ast.Program, model: Model, parts: list[ModelMachine], messages: Sequence[outside.Outside]) -> None:
    """The model's interface to the exploration."""
    with out.block("struct Machine", "};"):
        out("using State = verify::State;")
        core = next(p for p in parts if p.is_core)
        out(f"static constexpr unsigned kMandatory = {core.inputs[MANDATORY]}, kFirstCore = {first(parts, core)};")
        out(f"static constexpr unsigned kMemoryQueue = {model.memory_queue}, kPending = {model.pending};")
        out(f"static constexpr bool kEvict = {str(model.evict).lower()};")
        out(f"static constexpr RubyRequestType kRequests[] = {{{', '.join('RubyRequestType_' + r for r in model.requests)}}};")
        device(out, model, parts)
        size = sum(p.place.count for p in parts)
        renamings = model.renamings[:1] if numbers_nodes(program) else model.renamings
        table(out, "kRenamings", renamings or (tuple(range(size)),), size)
        table(out, "kLineRenamings", model.line_renamings or (tuple(range(1, model.lines + 1)),), model.lines)
        here = {p.machine.name: p.inputs for p in parts}
        outside.emit(out, [m for m in messages if m.machine in here] if model.evict else [], here)
        with out.block("static void lay_out()"):
            for p in parts:
                out(f"add_machine(MachineType_{p.machine.name}, {p.place.count});")
        with out.block("static void begin(State &s)"):
            for p in parts:
                out(f"for (auto &d : s.{p.machine.name}) d.begin();")
        with out.block("template <class F> static void with(State &s, unsigned controller, F &&f)"):
            for p in parts:
                n, base = p.machine.name, first(parts, p)
                with out.block(f"if (controller < {base + p.place.count})"):
                    out(f"{n}_Rules r(s, controller, s.{n}[controller - {base}]);\nreturn f(r);")
        with out.block("template <class F> static bool each_controller(F &&f)"):
            for p in parts:
                with out.block(f"for (unsigned i = 0; i < {p.place.count}; ++i)"):
                    out(f"if (!f(&State::{p.machine.name}, {first(parts, p)}u, i)) return false;")
            out("return true;")
        with out.block("static const char *state_name(unsigned controller, unsigned state)"):
            for p in parts:
                out(f"if (controller < {first(parts, p) + p.place.count}) return k{p.machine.name}_States[state];")
            out('return "";')
        with out.block("static inline const MachineNames names[] =", "};"):
            for p in parts:
                n = p.machine.name
                out(f"{{{quoted(n)}, k{n}_Transitions, {len(p.machine.transitions)}}},")


def device(out: Writer, model: Model, parts: list[ModelMachine]) -> None:
    """Writes the machine of the devices, if the model has one, and their requests."""
    part = next((p for p in parts if p.is_device), None)
    out(f"static constexpr unsigned kDevices = {part.place.count if part else 0};")
    if part:
        out(f"static constexpr unsigned kFirstDevice = {first(parts, part)}, kDeviceMandatory = {part.inputs[MANDATORY]};")
        out(f"static constexpr DeviceRequest kDeviceRequests[] = {{{', '.join('DeviceRequest::' + r for r in model.device)}}};")


def numbers_nodes(program: ast.Program) -> bool:
    """Whether a state holds numbers of nodes without their machine type: such nodes cannot be renamed."""
    types = [*program.types, *(t for m in program.machines for t in m.types)]
    fields = [f.type.name for t in types if not (t.is_enum or t.is_external or t.in_prelude) for f in t.fields.values()]
    return any(name in ("Set", "NodeID") for name in (*fields, *(o.type.name for m in program.machines for o in m.objects)))


def first(parts: list[ModelMachine], part: ModelMachine) -> int:
    """The number of a machine's first controller."""
    return sum(p.place.count for p in parts[:parts.index(part)])


def table(out: Writer, name: str, rows: tuple[tuple[int, ...], ...], width: int) -> None:
    with out.block(f"static constexpr std::uint8_t {name}[][{width}] =", "};"):
        for row in rows:
            out("{" + ", ".join(map(str, row)) + "},")


__all__ = ["Model", "Place", "emit", "read"]
