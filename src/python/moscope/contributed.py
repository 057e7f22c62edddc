# SPDX-License-Identifier: BSD-3-Clause
"""Files that extend moscope: commands, figures, topologies, tables (docs/extending). An exception in one is a fault of the file, which
its author reads as `file:line: problem: expected ...`. One in a module of moscope that the file imports is a bug of moscope."""

import importlib
import importlib.util
import runpy
import traceback
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from moscope import paths
from moscope.errors import MoscopeError, UserError


def imported(module: str, expected: str) -> ModuleType:
    """The module, which is one file. UserError: it cannot be executed."""
    try:
        return importlib.import_module(module)
    except MoscopeError:
        raise
    except Exception as error:
        found = importlib.util.find_spec(module)
        file = Path(found.origin if found and found.origin else module)
        if elsewhere(file, error):
            raise
        raise fault(file, error, expected) from error


def declared(module: str, name: str, kind: type, expected: str) -> Any:
    """The object of this kind that the module defines under this name. UserError: it defines none, or cannot be executed."""
    found = imported(module, expected)
    return _of_kind(Path(found.__file__ or module), vars(found), name, kind, expected)


def defined(file: Path, name: str, kind: type, expected: str) -> Any:
    """Likewise, of a file that is no module of a package."""
    return _of_kind(file, executed(file, expected), name, kind, expected)


def _of_kind(file: Path, names: dict[str, Any], name: str, kind: type, expected: str) -> Any:
    if not isinstance(names.get(name), kind):
        raise UserError(f"{shown(file)}: defines no `{name}`: expected {expected}")
    return names[name]


def executed(file: Path, expected: str) -> dict[str, Any]:
    """The names that a file defines. UserError: it cannot be executed."""
    try:
        return runpy.run_path(str(file))
    except MoscopeError:
        raise
    except Exception as error:
        if elsewhere(file, error):
            raise
        raise fault(file, error, expected) from error


def elsewhere(file: Path, error: BaseException) -> bool:
    """Whether the exception stopped the import of a module of moscope that the file imports. Modules beside the file are the author's,
    too."""
    frames = [frame.f_code for frame, _ in traceback.walk_tb(error.__traceback__)]
    begun = [code.co_filename for code in frames if code.co_name == "<module>"]
    if isinstance(error, SyntaxError) and error.filename:
        begun.append(error.filename)
    files, file = [Path(name).resolve() for name in begun], file.resolve()
    after = files[files.index(file) + 1:] if file in files else []
    return any(f.is_relative_to(root) and f.parent != file.parent for f in after for root in (paths.PACKAGE, paths.root()))


def fault(file: Path, error: BaseException, expected: str) -> UserError:
    """The error to report for an exception that passed through this file."""
    if isinstance(error, SyntaxError) and error.filename:
        return UserError(f"{shown(Path(error.filename))}:{error.lineno}: not Python: {error.msg}: expected {expected}")
    text = str(error).splitlines()[0] if str(error) else "no text"
    return UserError(f"{place(file, error)}: {type(error).__name__}: {text:.160}: expected {expected}")


def place(file: Path, error: BaseException, otherwise: int = 0) -> str:
    """The innermost line of the file that the exception passed through; without one, the file with the line `otherwise` if given."""
    lines = [number for frame, number in traceback.walk_tb(error.__traceback__)
             if Path(frame.f_code.co_filename).resolve() == file.resolve()]
    line = lines[-1] if lines else otherwise
    return f"{shown(file)}:{line}" if line else shown(file)


def place_of_call(function: FunctionType, error: BaseException) -> str:
    """The place of an error in what a file registers: in its file, or the function's first line if its result is at fault."""
    return place(Path(function.__code__.co_filename), error, function.__code__.co_firstlineno)


def shown(path: Path) -> str:
    """A path as the user would write it: relative where it lies below the current folder."""
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
