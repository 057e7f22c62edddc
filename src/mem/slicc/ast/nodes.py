# SPDX-License-Identifier: BSD-3-Clause
"""What all nodes of the tree share."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, dataclass_transform

NAME_KINDS = (
    "param",        # decl: Param of the machine
    "object",       # decl: ObjectDecl of the machine (TBE tables, timers, counters, ...)
    "global",       # decl: ObjectDecl of the program: version, machineID, clusterID, recycle_latency
    "local",        # decl: LocalVar
    "formal",       # decl: Formal
    "field",        # decl: Field, only in methods of structures
    "in_port",      # decl: InPort
    "out_port",     # decl: OutPort
    "in_msg",       # decl: Builtin; within peek
    "out_msg",      # decl: Builtin; within enqueue and defer_enqueueing
    "address",      # decl: Builtin; within actions
    "cache_entry",  # decl: Builtin; within actions of machines with an Entry type
    "tbe",          # decl: Builtin; within actions of machines with a TBE type
)


class SourceFile(str):
    """The path of a source file. `name` is its name in generated code and results, which must not depend on where the protocol lies:
    the path from the protocol's folder or, for a file outside that folder, only the last part of its path."""

    name: str

    def __new__(cls, path: str, folder: str = "") -> SourceFile:
        self = super().__new__(cls, path)
        inside = path.removeprefix(os.path.join(folder, "") if folder else "")
        self.name = os.path.basename(path) if os.path.isabs(inside) else os.path.normpath(inside)
        return self


@dataclass(frozen=True)
class Loc:
    """A place in a source file; line and column count from one."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    @property
    def file_name(self) -> str:
        """What generated code and results call the file."""
        return self.file.name if isinstance(self.file, SourceFile) else os.path.basename(self.file)


RESOLVED: Any = None
"""The default of a field that the parser leaves empty and resolve.py fills in."""


@dataclass_transform(eq_default=False, kw_only_default=True, field_specifiers=(field,))
@dataclass(eq=False, kw_only=True, repr=False)
class Node:
    """The base of every node. A subclass is a dataclass without a decorator: its annotated names are its fields, given by
    keyword. Nodes compare by identity."""

    loc: Loc

    def __init_subclass__(cls) -> None:
        dataclass(eq=False, kw_only=True, repr=False)(cls)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {getattr(self, 'name', '')}>"


Pairs = dict[str, str]
"""`key=value` and `key="value"` pairs of a declaration; a lone string is the key "short"."""
