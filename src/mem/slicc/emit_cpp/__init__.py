# SPDX-License-Identifier: BSD-3-Clause
"""C++ for moscope's engine: one source per machine, one header of shared types, one source with the library's entry point."""
from __future__ import annotations

from pathlib import Path

from .. import ast
from ..errors import Diagnostics
from .machine import MachineEmitter
from .types import own_header, prelude_header, protocol_source, types_header


def outputs(program: ast.Program) -> list[str]:
    """The names of the files that `emit` writes."""
    own = [own_header(program)] if program.header_text else []
    return own + [f"{program.name}_types.hh", f"{program.name}.cc"] + [f"{m.name}_Controller.cc" for m in program.machines]


def emit(program: ast.Program, directory: Path, diagnostics: Diagnostics) -> None:
    """Writes the C++ of a checked program; nothing is written when something cannot be expressed."""
    texts = {f"{program.name}_types.hh": types_header(program, diagnostics), f"{program.name}.cc": protocol_source(program)}
    if program.header_text:
        name = own_header(program)  # no warnings of g++ in it, and lines counted as in the protocol's file
        texts[name] = f'#pragma GCC system_header\n#line 1 "{name}"\n{program.header_text}'
    for machine in program.machines:
        texts[f"{machine.name}_Controller.cc"] = MachineEmitter(program, machine, diagnostics).source()
    diagnostics.stop_on_error()
    directory.mkdir(parents=True, exist_ok=True)
    for name, text in texts.items():
        path = directory / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


__all__ = ["emit", "outputs", "prelude_header"]
