# SPDX-License-Identifier: BSD-3-Clause
"""Indented C++ text, and the names under which SLICC's types are known to it."""
from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from .. import ast
from ..conversions import NUMBERS
from ..runtime_names import own, own_function

#: SLICC's plain types in C++. Cycles and ticks are both 64-bit counts; everything else keeps its name.
PLAIN = {
    "int": "int",
    "bool": "bool",
    "void": "void",
    "std::string": "std::string",
    "Cycles": "std::int64_t",
    "Tick": "Tick",
    "Addr": "Addr",
    "uint32_t": "std::uint32_t",
    "uint64_t": "std::uint64_t",
    "Scalar": "std::uint64_t",
    "HTMSequencer": "Sequencer",
    "WireBuffer": "MessageBuffer",
}

_POINTER = re.compile(r"\(\s*\*\s*m_(\w+?)_ptr\s*\)|\*\s*m_(\w+?)_ptr\b|\bm_(\w+?)(?:_ptr)?\b")


#: Members of the runtime's Message, which a message's own field would hide.
_OF_MESSAGES = frozenset("bytes dest_offset type line uid source vnet carries_data size_type hops entered to txn txn_core txn_hops entry "
                         "stamp path account destination note_destination".split())


#: Likewise, members of the runtime's cache entries.
_OF_ENTRIES = frozenset("m_Address slot m_Permission m_locked m_in_read_set m_in_write_set".split())


def c_field(field: ast.Field) -> str:
    """The C++ name of a structure's field. In C++, a field must not have the name of a type."""
    hidden = _OF_MESSAGES if field.owner.is_message else _OF_ENTRIES if field.owner.is_entry else frozenset()
    return field.name + "_" * (field.name in hidden or field.names_type)


def c_text(text: str) -> str:
    """C++ text from a `default` or `constructor` pair of a protocol, with gem5's names of members replaced: `m_x` and `*m_x_ptr`
    become x."""
    text = text.replace("m_ruby_system->", "RubySystem::")  # gem5 24.1
    return _POINTER.sub(lambda match: match[1] or match[2] or match[3], text)


def constant(e: ast.Expr) -> str:
    """A constant in C++: a literal, a value of an enumeration or OOD, perhaps after an operator."""
    match e:
        case ast.Unary(op=op, operand=operand):
            return f"({op}{constant(operand)})"
        case ast.EnumRef():
            return e.value.c_name
        case ast.Literal(value=bool() as value):
            return "true" if value else "false"
        case ast.Literal(value=str() as value):
            return f'std::string("{string_text(value)}")'
        case ast.Literal(value=int() | float() as value):
            return f"{value}{'u' * (value >= 1 << 63)}"
    return "nullptr"


def initial(variable: ast.Variable) -> str:
    """The C++ text of the value that a variable begins with; an empty text stands for C++'s own initial value. Without a value in
    the protocol, an enumeration begins with none of its values, as in gem5. States begin with the first one, the state of a line
    never accessed."""
    type_ = variable.type
    if variable.init is not None:
        return constant(variable.init)
    if variable.default_text is not None:
        return c_text(variable.default_text)
    if type_.kind != "enum" or variable.pointer:
        return ""
    added = sum("added" in value.pairs for value in type_.value_list)  # these follow the engine's own
    return f"static_cast<{type_.c_name}>({type_.c_name}_NUM + {added})" if added else f"{type_.c_name}_NUM"


class Writer:
    """C++ text, line by line; `block` indents what is written within it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def __call__(self, text: str = "") -> None:
        for line in text.split("\n"):
            self.lines.append("    " * self.depth + line if line else "")

    @contextmanager
    def block(self, head: str, tail: str = "}") -> Iterator[None]:
        self((head + " {").strip())
        self.depth += 1
        yield
        self.depth -= 1
        self(tail)

    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def c_type(type_: ast.Type) -> str:
    """The C++ name of a type as a value."""
    return PLAIN.get(type_.name, type_.c_name)


def is_small(type_: ast.Type) -> bool:
    """Whether values are passed by value."""
    return type_.is_enum or type_.is_primitive or type_.name in PLAIN or type_.name in ("MachineID", "NodeID")


def formal(f: ast.Formal, index: int) -> str:
    """A parameter in C++; `index` names one without a name."""
    name = own(f.name or f"unnamed{index}")
    base = c_type(f.type)
    if f.is_pointer:
        return f"{base} *{name}"
    if f.qualifier == "REF":
        return f"{base} &{name}"
    if f.qualifier == "CONST_REF" or (not is_small(f.type) and f.type.name != "std::string"):
        return f"const {base} &{name}"
    if f.type.name == "std::string":
        return f"const std::string &{name}"
    return f"{base} {name}"


def returns(f: ast.Function) -> str:
    """The result type in C++, up to the name of the function."""
    base = c_type(f.return_type)
    if f.returns_pointer:
        return base + " *"
    if f.returns_reference:
        return base + " &"
    return base + " "


def prototype(f: ast.Function) -> str:
    """The head of a function in C++."""
    return f"{returns(f)}{own_function(f)}({', '.join(formal(x, i) for i, x in enumerate(f.formals))})"


def passed(f: ast.Function, arg: ast.Expr, to: ast.Formal, text: str) -> str:
    """An argument in C++. C++ chooses among overloads by rules of its own, so a number gets the type of the overload that the SLICC
    compiler chose."""
    converts = f.body is not None and to.qualifier != "REF" and {arg.type.name, to.type.name} <= NUMBERS
    return f"static_cast<{c_type(to.type)}>({text})" if converts and c_type(arg.type) != c_type(to.type) else text


def string_text(text: str) -> str:
    """The inside of a C++ string literal for a string of a protocol, whose escapes are C++'s."""
    return re.sub(r'\\.|"|\\$', lambda match: match[0] if len(match[0]) == 2 else "\\" + match[0], text)


def quoted(text: str) -> str:
    """A C++ string literal."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
