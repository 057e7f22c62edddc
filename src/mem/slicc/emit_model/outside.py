# SPDX-License-Identifier: BSD-3-Clause
"""NAME.verify.toml in the folder of NAME.slicc: messages from lines outside the model, which need room in the caches. Optional.

    [[outside]]
    machine = "L3Cache"        # its controllers may get the message at any time
    buffer = "fromCores"
    Type = "VicS"              # the message's Type; its other fields have their defaults
    line = "elsewhere"         # it is about a line outside the model (default), or "own": about each line of the model

If the controller makes room, the message is dropped, and the lines of the model that were replaced are gone. If it would do
anything else, the step is undone.
"""
from __future__ import annotations

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .. import ast
from ..emit_cpp.writer import Writer, c_type
from ..roles import RolesError
from .types import LINE_FIELDS

SUFFIX = ".verify.toml"
KEYS = ("machine", "buffer", "Type", "line")


@dataclass(frozen=True)
class Outside:
    """One such message: to which controllers and into which buffer, its C++ type, its fields with addresses, and its type."""

    machine: str
    buffer: str
    message: str
    addresses: tuple[str, ...]
    type: str
    own: bool


def read(slicc: str, program: ast.Program) -> list[Outside]:
    """What the file beside a protocol says, checked against it; empty without a file. Raises RolesError."""
    path = Path(slicc).with_suffix(SUFFIX)
    if not path.is_file():
        return []
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as problem:
        raise RolesError(f"{path}: not TOML: {problem}: expected tables outside") from problem
    rows = found.get("outside", [])
    if list(found) not in ([], ["outside"]) or not (isinstance(rows, list) and all(isinstance(row, dict) for row in rows)):
        raise RolesError(f"{path}: {', '.join(found)}: expected tables [[outside]] and nothing else")
    return [_message(f"{path}: outside {i}: ", row, program) for i, row in enumerate(rows, 1)]


def _message(where: str, row: dict[str, Any], program: ast.Program) -> Outside:
    for key in row:
        if key not in KEYS:
            raise RolesError(f"{where}{key}: unknown: expected {', '.join(KEYS)}")
    machine: ast.Machine = _named(where, "machine", row, {m.name: m for m in program.machines})
    ports = {_buffer(p): p for p in machine.in_ports}
    port: ast.InPort = _named(where, "buffer", row, ports)
    message = port.message_ref.type
    kind = message.fields.get("Type")
    if kind is None or not kind.type.is_enum:
        raise RolesError(f"{where}buffer: {row['buffer']!r}: its messages have no Type: expected a buffer of messages with one")
    addresses = tuple(f for f in LINE_FIELDS if f in message.fields and message.fields[f].type.name == "Addr")
    _named(where, "Type", row, {v: v for v in kind.type.values})
    if row.get("line", "elsewhere") not in ("own", "elsewhere"):
        raise RolesError(f"{where}line: {row['line']!r}: expected own or elsewhere")
    return Outside(machine.name, row["buffer"], c_type(message), addresses, f"{kind.type.c_name}_{row['Type']}", row.get("line") == "own")


def _buffer(port: ast.InPort) -> str:
    return port.buffer.name if isinstance(port.buffer, ast.Name) else ""


def _named(where: str, key: str, row: dict[str, Any], known: dict[str, Any]) -> Any:
    value = row.get(key)
    if not isinstance(value, str) or value not in known:
        raise RolesError(f"{where}{key}: {value!r}: expected one of {', '.join(known)}")
    return known[value]


def emit(out: Writer, messages: Sequence[Outside], inputs: dict[str, dict[str, int]]) -> None:
    """Writes `outside`, which makes the n-th message for a controller and a line; it returns false where the message does not
    fit. `inputs`: numbers of buffers by machine."""
    out(f"static constexpr unsigned kOutside = {len(messages)};")
    with out.block("static bool outside([[maybe_unused]] unsigned n, [[maybe_unused]] MachineType to, [[maybe_unused]] Addr line, "
                   "[[maybe_unused]] Message &m)"):
        for n, o in enumerate(messages):
            with out.block(f"if (n == {n} && to == MachineType_{o.machine} && line {'!=' if o.own else '=='} kElsewhere)"):
                out(f"{o.message} body{{}};")
                for field in o.addresses:
                    out(f"body.{field} = line;")
                out(f"body.Type = {o.type};\nm.kind = {o.message}::kKind;\nm.buffer = {inputs[o.machine][o.buffer]};")
                out("std::memcpy(m.body, static_cast<const void *>(&body), sizeof body);\nreturn true;")
        out("return false;")
