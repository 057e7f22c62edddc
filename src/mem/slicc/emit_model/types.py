# SPDX-License-Identifier: BSD-3-Clause
"""The types of a protocol in a model: enumerations as in the engine; structures whose fields take one byte each."""
from __future__ import annotations

from .. import ast
from ..emit_cpp.types import enumeration
from ..emit_cpp.writer import Writer, c_field, c_type, initial, prototype
from ..errors import Diagnostics
from .code import COUNTS, ModelCode
from .unread import Unread

#: Numbers in a state, in one byte. Times are always 0 in a model.
BYTES = {"int": "std::int8_t", "Cycles": "std::int8_t", "Tick": "std::int8_t", "uint32_t": "std::uint8_t",
         "uint64_t": "std::uint8_t", "Scalar": "std::uint8_t", "NodeID": "std::int8_t", "RequestorID": "std::int8_t"}
#: How a visitor of a structure's fields is called for a field.
VISITS = {"Addr": "line", "DataBlock": "data", "MachineID": "machine", "NetDest": "machines"}
#: The usual names of the field with a message's address, in order of preference.
LINE_FIELDS = ("addr", "LineAddress", "Addr", "Address", "PhysicalAddress")


def field_type(type_: ast.Type) -> str:
    """The C++ type of a field in a state."""
    return BYTES.get(type_.name, c_type(type_))


def begins_with(variable: ast.Variable, read: bool, diagnostics: Diagnostics) -> str:
    """The C++ text of the value that a variable of a state begins with. Reports a number that a byte cannot hold, if a rule reads it."""
    text, type_ = initial(variable), field_type(variable.type)
    if variable.type.name not in BYTES:
        return text
    value = variable.init if variable.init is not None else variable.default_value
    sign, literal = (-1, value.operand) if isinstance(value, ast.Unary) else (1, value)
    if read and variable.type.name in COUNTS and isinstance(literal, ast.Literal) and not isinstance(literal.value, str):
        low = -128 if type_ == "std::int8_t" else 0
        if not low <= sign * literal.value <= low + 255:
            diagnostics.error(variable.loc, f"'{variable.name}': {sign * literal.value}: expected a number of one byte in a model")
    return f"static_cast<{type_}>({text or '0'})"


def structure(out: Writer, type_: ast.Type, diagnostics: Diagnostics, kind: int | None, unread: Unread) -> None:
    """A structure, a visitor of its fields, and the line that a message is about."""
    base = " : AbstractCacheEntry" if type_.is_entry else ""
    fields = list(type_.fields.values())
    for f in fields:
        if f.pointer or f.type.is_handle or f.type.name in ("std::string", "BoolVec"):
            diagnostics.error(f.loc, f"field {f.name} of type {f.type.name}: not supported in a model: expected a number, an enumeration, "
                                     "Addr, MachineID, NetDest, Set or DataBlock")
    with out.block(f"struct {type_.c_name}{base}", "};"):
        for f in fields:
            out(f"{field_type(f.type)} {c_field(f)}{{{begins_with(f, unread.keeps(f), diagnostics)}}};")
        for member in type_.members:
            if isinstance(member, ast.Function) and member.body is not None and not member.name.startswith("functional"):
                with out.block(prototype(member)):
                    ModelCode(out, diagnostics, unread).function(member)
        with out.block("template <class M, class V> static void visit([[maybe_unused]] M &m, [[maybe_unused]] V &&v)"):
            for f in fields:
                if f.type.kind == "struct" and not f.type.is_external:
                    out(f"{c_type(f.type)}::visit(m.{c_field(f)}, v);")
                else:
                    out(f'v.{VISITS.get(f.type.name, "plain")}("{f.name}", m.{c_field(f)});')
        with out.block("void forget()"):
            for name in unread.of(type_, kind is not None):
                out(f"{name} = {{}};")
        if kind is not None:
            out(f"static constexpr std::uint8_t kKind = {kind};")
            line = next((f for f in LINE_FIELDS if f in type_.fields and type_.fields[f].type.name == "Addr"), None)
            out(f"Addr line() const {{ return {c_field(type_.fields[line]) if line else 0}; }}")
    out(f"static_assert(alignof({type_.c_name}) == 1);\n")


def emit_type(out: Writer, type_: ast.Type, diagnostics: Diagnostics, kinds: dict[str, int], unread: Unread) -> None:
    if type_.is_enum:
        enumeration(out, type_)
    elif type_.kind == "struct" and not type_.is_external:
        structure(out, type_, diagnostics, kinds.get(type_.name), unread)
