# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions as C++: enumerations with their names, records with their layout checked by the compiler, and structs whose
fields can be visited by name (readers and writers of JSON are templates over that, src/schema/config_reader.hh)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import groupby
from typing import Any

from moscope.schema.describe import Counters, Enumeration, Field, Record
from moscope.schema.parameters import Group, engine_fields, engine_value
from moscope.schema.units import Count, Cycles, Flag, Frequency, Name, Size, Time, Width

CXX = {"u8": "std::uint8_t", "u16": "std::uint16_t", "u32": "std::uint32_t", "u64": "std::uint64_t", "i64": "std::int64_t"}
INCLUDES = ("array", "cstddef", "cstdint", "limits", "string")


def header(topic: str, sentence: str, descriptions: Sequence[Any], others: Sequence[str] = ()) -> str:
    """One header of src/schema/`topic`.py; `others` are headers that it includes."""
    lines = [f"// From src/schema/{topic}.py: {sentence}", "#pragma once", "", *(f"#include <{name}>" for name in INCLUDES), ""]
    lines += [*(f'#include "{name}"' for name in others), ""] if others else []
    for namespace, group in groupby(descriptions, key=lambda d: str(d.namespace)):
        lines += [f"namespace {namespace} {{", ""]
        for description in group:
            lines += [*EMITTERS[type(description)](description), ""]
        lines += [f"}} // namespace {namespace}", ""]
    return "\n".join(lines)


def constant(name: str) -> str:
    """k and the name in capitals: buffer_wait, kBufferWait."""
    return "k" + "".join(part.capitalize() for part in name.split("_"))


def enumeration(e: Enumeration) -> list[str]:
    names = f"k{e.name}Names"
    lines = [f"/// {e.sentence}", f"enum class {e.name} : std::uint8_t {{"]
    lines += [f"    {name}, ///< {sentence}" for name, sentence in e.sentences.items()]
    lines += ["    count"] if e.counted else []
    return [*lines, "};", f"inline constexpr unsigned k{e.plural} = {len(e)};", "/// As they stand in files.",
            f"inline constexpr std::array<const char *, k{e.plural}> {names} = {{" + ", ".join(f'"{name}"' for name in e.names) + "};",
            f"constexpr const char *name_of({e.name} value) {{ return {names}[static_cast<unsigned>(value)]; }}"]


def record(r: Record) -> list[str]:
    lines, at = [f"/// {r.sentence}", f"struct {r.name} {{"], 0
    for f in r.fields:
        lines += _padding(at, r.offsets[f.name]) + [_member(f)]
        at = r.offsets[f.name] + f.width * f.count
    lines += _padding(at, r.size)
    for f in r.fields:
        lines += [f"    static constexpr {CXX[f.type]} {constant(flag)} = {f.bit(flag)}; ///< {f.name}: {sentence}"
                  for flag, sentence in f.flags.items()]
        if f.none is not None:
            lines.append(f"    static constexpr {CXX[f.type]} kNo{constant(f.name)[1:]} = {f.none};")
    lines += ["    /// Of the layout: readers of rows compare it with the description's.",
              f"    static constexpr std::uint64_t kLayout = {r.layout:#x};", "};", f"static_assert(sizeof({r.name}) == {r.size});"]
    return lines + [f"static_assert(offsetof({r.name}, {name}) == {at});" for name, at in r.offsets.items()]


def _member(f: Field) -> str:
    unit = f" ({f.unit})" if f.unit else ""
    if f.each:
        return f"    std::array<{CXX[f.type]}, k{f.each.plural}> {f.name}{{}}; ///< {f.sentence}{unit}"
    return f"    {CXX[f.type]} {f.name} = {f.default}; ///< {f.sentence}{unit}"


def _padding(at: int, to: int) -> list[str]:
    return [f"    std::array<std::uint8_t, {to - at}> padding_{at}{{}};"] if to > at else []


def counters(c: Counters) -> list[str]:
    lines = [f"/// {c.sentence}", f"struct {c.name} {{"]
    for counter in c.counters:
        kind = "std::int64_t" if counter.signed else "std::uint64_t"
        each = f"std::array<{kind}, k{counter.each.plural}> {counter.name}{{}};" if counter.each else ""
        declared = each or f"{kind} {counter.name} = 0;"
        lines.append(f"    {declared} ///< {counter.sentence} ({counter.unit})")
    lines += ["", "    /// Calls f(name, value of each of `all`) for each counter of files, f(name, names, arrays) for those by an "
              "enumeration.",
              "    template <class F, class... All> static void visit(F &&f, All &&...all) {"]
    for counter in c.in_files:
        names = f", k{counter.each.name}Names" if counter.each else ""
        lines.append(f'        f("{counter.name}"{names}, all.{counter.name}...);')
    lines.append("    }")
    for op in "+-":
        lines.append(f"    {c.name} &operator{op}=(const {c.name} &other) {{")
        for counter in c.counters:
            if counter.maximum:  # a difference has the later value
                if op == "+":
                    lines += [f"        if ({counter.name} < other.{counter.name})", f"            {counter.name} = other.{counter.name};"]
            elif counter.each:
                lines += [f"        for (std::size_t i = 0; i < {counter.name}.size(); ++i)",
                          f"            {counter.name}[i] {op}= other.{counter.name}[i];"]
            else:
                lines.append(f"        {counter.name} {op}= other.{counter.name};")
        lines += ["        return *this;", "    }"]
    return [*lines, f"    friend {c.name} operator-({c.name} end, const {c.name} &begin) {{ return end -= begin; }}", "};"]


def group(g: Group) -> list[str]:
    lines, visits, mosts = [f"/// {(g.parameters.__doc__ or '').split(chr(10))[0]}", f"struct {g.name} {{"], [], []
    defaults = {f.name: f.default for f in dataclasses.fields(g.parameters)}
    for name, theirs, kind, about in engine_fields(g.parameters):
        cxx = PLAIN[kind]
        default = "" if defaults[name] is dataclasses.MISSING else literal(defaults[name])
        lines.append(f"    {cxx} {theirs}{{{default}}}; ///< {about.sentence}")
        bounds = ""
        if cxx not in ("bool", "std::string"):
            least = "0" if about.least is None else literal(kind(about.least))
            most = f"std::numeric_limits<{cxx}>::max()" if about.most is None else literal(kind(about.most))
            bounds = f", {cxx}{{{least}}}, {cxx}{{{most}}}"
            mosts += [f"        static constexpr {cxx} {theirs} = {most};"] if about.most is not None else []
        visits.append(f'        f("{theirs}", all.{theirs}...{bounds});')
    required = [f'"{theirs}"' for name, theirs, _, _ in engine_fields(g.parameters) if defaults[name] is dataclasses.MISSING]
    lines += ["    /// Fields without a default.",
              f"    static constexpr std::array<const char *, {len(required)}> kRequired{{{', '.join(required)}}};"]
    return [*lines, "    /// The largest values that are allowed.", "    struct Most {", *mosts, "    };",
            "    /// Calls f(name, value of each of `all`, least, most) for each number, f(name, values) for other values.",
            "    template <class F, class... All> static void visit(F &&f, All &&...all) {", *visits, "    }", "};"]


def literal(value: Any) -> str:
    """A value as the engine counts it, as a C++ literal."""
    plain = engine_value(value)
    return str(plain).lower() if isinstance(plain, bool) else f'"{plain}"' if isinstance(plain, str) else str(plain)


# Plain values of descriptions; the engine's name tells the unit.
PLAIN: dict[type, str] = {Count: "unsigned", Cycles: "unsigned", Width: "unsigned", Time: "Tick", Size: "std::uint64_t",
                          Frequency: "std::int64_t", Flag: "bool", Name: "std::string"}
EMITTERS: dict[type, Any] = {Enumeration: enumeration, Record: record, Counters: counters, Group: group}
