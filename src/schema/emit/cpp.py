# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions as C++: enumerations with their names, records with their layout checked by the compiler, and structs whose
fields can be visited by name (readers and writers of JSON are templates over that, src/schema/config_reader.hh)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import Any

from moscope.schema.describe import Counters, Enumeration, Field, Record

CXX = {"u8": "std::uint8_t", "u16": "std::uint16_t", "u32": "std::uint32_t", "u64": "std::uint64_t", "i64": "std::int64_t"}
INCLUDES = ("array", "cstddef", "cstdint", "string_view")


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
    lines += [f"    {name}, ///< {sentence}" for name, sentence in e.members.items()]
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
        declared = f"std::array<{kind}, k{counter.each.plural}> {counter.name}{{}};" if counter.each else f"{kind} {counter.name} = 0;"
        lines.append(f"    {declared} ///< {counter.sentence} ({counter.unit})")
    lines += ["", "    /// Calls f(name, value of each of `all`) for each counter, f(name, names, arrays) for those by an enumeration.",
              "    template <class F, class... All> static void visit(F &&f, All &&...all) {"]
    for counter in c.counters:
        names = f", k{counter.each.name}Names" if counter.each else ""
        lines.append(f'        f("{counter.name}"{names}, all.{counter.name}...);')
    lines += ["    }", "    /// What was counted since `begin`.", f"    {c.name} operator-(const {c.name} &begin) const {{",
              f"        {c.name} out;"]
    for counter in c.counters:
        if counter.each:
            lines += [f"        for (std::size_t i = 0; i < {counter.name}.size(); ++i)",
                      f"            out.{counter.name}[i] = {counter.name}[i] - begin.{counter.name}[i];"]
        else:
            lines.append(f"        out.{counter.name} = {counter.name} - begin.{counter.name};")
    return [*lines, "        return out;", "    }", "};"]


EMITTERS: dict[type, Any] = {Enumeration: enumeration, Record: record, Counters: counters}
