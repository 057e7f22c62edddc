# SPDX-License-Identifier: BSD-3-Clause
"""The compiler's command line. Exit codes: 0 done, 2 errors in the protocol or in the options, 130 interrupted."""
from __future__ import annotations

import argparse
import importlib.util
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import ast, emit_model, interface_json, roles
from .check import STRICT
from .compile import compile_protocol
from .errors import Diagnostics, Stop
from .tables import FORMATS

OK, USER_ERROR, INTERRUPTED = 0, 2, 130


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="slicc", description="Compiles a SLICC protocol for moscope's engine.")
    parser.add_argument("--protocol", required=True, metavar="FILE.slicc", help="the protocol's main file")
    parser.add_argument("--out", metavar="DIR", help="folder for NAME.json and the C++")
    parser.add_argument("--list-outputs", action="store_true", help="print the names of the output files, and stop")
    parser.add_argument("--table", choices=sorted(FORMATS), help="print the transition tables")
    parser.add_argument("--interface-only", action="store_true", help="write NAME.json alone to --out")
    parser.add_argument("--model", metavar="FILE.json",
                        help="write NAME.model.cc alone to --out: the model that FILE describes (emit_model)")
    parser.add_argument("--check-only", action="store_true", help="report errors and warnings, write nothing")
    parser.add_argument("--strict", action="store_true", help=f"make these warnings errors: {', '.join(sorted(STRICT))}")
    parser.add_argument("--no-warnings", action="store_true", help="print errors only")
    return parser


def _emitter() -> Any:
    """The C++ emitter: a package with emit(program, directory, diagnostics) and outputs(program); None where it is missing."""
    if importlib.util.find_spec("slicc.emit_cpp") is None:
        return None
    module = importlib.import_module("slicc.emit_cpp")
    return module if hasattr(module, "emit") else None


def _write(path: str, text: str) -> None:
    """Writes a file completely or not at all. A file with the same content keeps its time, so that nothing is rebuilt."""
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except (OSError, UnicodeDecodeError):
        pass
    handle, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".slicc-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _outputs(program: ast.Program) -> list[str]:
    emitter = _emitter()
    names = list(emitter.outputs(program)) if emitter is not None and hasattr(emitter, "outputs") else []
    return [f"{program.name}.json"] + names


def run(argv: Sequence[str] | None = None) -> int:
    """Runs the compiler; returns the exit code."""
    options = _arguments().parse_args(argv)
    try:
        program, diagnostics = compile_protocol(options.protocol, STRICT if options.strict else ())
    except roles.RolesError as problem:
        print(problem, file=sys.stderr)
        return USER_ERROR
    code = OK if program is not None else USER_ERROR
    if program is not None and not (options.list_outputs or options.table or options.check_only):
        if options.out is None:
            print("slicc: no output: expected --out, --table, --list-outputs or --check-only", file=sys.stderr)
            return USER_ERROR
        code = _write_files(program, options, diagnostics)
    report = diagnostics.report(warnings=not options.no_warnings)
    if report:
        print(report, file=sys.stderr)
    if program is not None and options.list_outputs:
        print("\n".join(_outputs(program)))
    elif program is not None and options.table:
        sys.stdout.write(FORMATS[options.table](program))
    return code


def _write_files(program: ast.Program, options: argparse.Namespace, diagnostics: Diagnostics) -> int:
    directory: str = options.out
    try:
        given = roles.read(options.protocol, program)
        os.makedirs(directory, exist_ok=True)
        if options.model:
            model = emit_model.read(json.loads(Path(options.model).read_text(encoding="utf-8")))
            text = emit_model.emit(program, model, diagnostics, emit_model.outside.read(options.protocol, program))
            diagnostics.stop_on_error()
            _write(os.path.join(directory, f"{program.name}.model.cc"), text)
            return OK
        emitter = _emitter()
        program.foreign = not options.strict  # errors at run time then name the protocol's lines
        if emitter is not None and not options.interface_only:
            emitter.emit(program, Path(directory), diagnostics)
            diagnostics.stop_on_error()
        _write(os.path.join(directory, f"{program.name}.json"), interface_json.text(program, given))
    except Stop:
        return USER_ERROR
    except roles.RolesError as problem:
        print(problem, file=sys.stderr)
        return USER_ERROR
    except OSError as problem:
        print(f"{problem.filename or directory}: {problem.strerror}: expected a writable folder", file=sys.stderr)
        return USER_ERROR
    return OK


def main() -> int:
    try:
        return run()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
