# SPDX-License-Identifier: BSD-3-Clause
"""What all nodes of the tree share."""
from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Loc:
    """A place in a source file; line and column count from one."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(eq=False, kw_only=True)
class Node:
    """What every node has. `depth` is the height of an expression tree, kept to bound recursion."""

    loc: Loc


Pairs = dict[str, str]
"""`key=value` and `key="value"` pairs of a declaration; a lone string is the key "short"."""
