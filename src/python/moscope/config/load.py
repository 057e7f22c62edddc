# SPDX-License-Identifier: BSD-3-Clause
"""Loads a machine: a name from configs/ or a file, then the `--set` options, then all checks.

A machine file is Python and can contain any code, so it runs in a child process with limits on time and memory. The child
returns the description, or an error that names file and line. Its output goes to stderr, so that stdout holds only the result
of `--json`.
"""

from __future__ import annotations

import ast
import faulthandler
import os
import pickle
import re
import resource
import select
import signal
import stat
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from moscope.errors import UserError
from moscope.paths import root
from moscope.schema.errors import UNPLACED, ConfigError, suggest

from . import topology
from .cpu import load_processor
from .dram import check_dram
from .keys import apply_sets
from .machine import Machine, replace

MAX_FILE_BYTES = 1 << 20
MAX_ANSWER_BYTES = 16 << 20
EXTRA_MEMORY = 1 << 30  # bytes that a machine file may take
TIME_LIMIT = 10.0  # seconds


def configs_dir() -> Path:
    return root() / "configs"


def machine_names() -> list[str]:
    """The names of the project's machines."""
    return sorted(p.stem for p in configs_dir().glob("*.py") if not p.stem.startswith("_"))


def load_machine(name_or_path: str, sets: Sequence[str] = ()) -> Machine:
    """The checked machine description. Raises UserError `file: problem: expected ...`."""
    path = _find(name_or_path)
    return with_sets(_run(path, TIME_LIMIT), path, sets)


def with_sets(machine: Machine, path: Path, sets: Sequence[str]) -> Machine:
    """The checked machine of the file at `path`, with each `KEY=VALUE` applied; for callers that read a file once and vary it
    many times."""
    try:
        changed = _checked(apply_sets(machine, sets))
        _check_links_take(changed, sets)
        return changed
    except ConfigError as error:
        if error.where.startswith("--set"):
            raise
        raise error.at(_blame(path, machine, error, sets)) from None


def _checked(machine: Machine) -> Machine:
    """The machine after all checks: its own, and those of its DRAM and processor."""
    machine = machine.validate()
    check_dram(machine.dram)
    load_processor(str(machine.cpu))
    return machine


def _check_links_take(machine: Machine, sets: Sequence[str]) -> None:
    """Rejects a width or clock for all links that has no effect, because each edge has its own."""
    keys = {text.partition("=")[0].strip() for text in sets}
    for own in ("width", "clock"):
        if f"links.{own}" in keys and machine.edges() and all(getattr(edge, own) is not None for edge in machine.edges()):
            raise ConfigError(f"links.{own}: each edge of the topology has a {own} of its own",
                              f"a topology whose edges have no {own}, or a machine file that sets the {own} of each Edge")


def _blame(path: Path, machine: Machine, error: ConfigError, sets: Sequence[str]) -> str:
    """The option or file to name in the error of a failed check: the option that set the value, or else the file if it fails in
    the same way without options. Otherwise each option without which the machine passes this check (`chips=9` does not fit a
    topology); all options if there is none."""
    if (option := _option_of(error, sets)) is not None:
        return option
    if sets:
        if (own := _failure(machine, ())) is not None and own.what == error.what:
            return _shown(path)
        blamed = [text for n, text in enumerate(sets)
                  if (left := _failure(machine, [*sets[:n], *sets[n + 1:]])) is None or left.what != error.what]
        return " ".join(f"--set {text:.80}" for text in blamed or sets)
    return _shown(path)


def _failure(machine: Machine, sets: Sequence[str]) -> ConfigError | None:
    try:
        _checked(apply_sets(machine, sets))
    except ConfigError as error:
        return error
    return None


def _option_of(error: ConfigError, sets: Sequence[str]) -> str | None:
    key = error.what.split(":", 1)[0]
    return next((f"--set {text:.80}" for text in reversed(sets) if text.partition("=")[0].strip() == key), None)


def blamed(error: ConfigError, name_or_path: str, sets: Sequence[str]) -> ConfigError:
    """An error found when the machine was combined with its protocol, preceded by the option or file that caused it."""
    return error if error.where != UNPLACED else error.at(_option_of(error, sets) or _shown(_find(name_or_path)))


def _shown(path: Path) -> str:
    try:
        return str(path.resolve().relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)


def _find(name_or_path: str) -> Path:
    if "\0" in name_or_path or not name_or_path:
        raise ConfigError("no machine is given", f"a file, or one of {', '.join(machine_names())}", "--machine")
    if not name_or_path.endswith(".py") and os.sep not in name_or_path:
        if name_or_path not in machine_names():
            raise ConfigError(
                f"no machine called {name_or_path!r:.60}",
                f"{suggest(name_or_path, machine_names())}, or a file that ends in .py",
                "--machine",
            )
        return configs_dir() / f"{name_or_path}.py"
    path = Path(name_or_path)
    try:
        mode = path.stat()
    except OSError as error:
        raise ConfigError(error.strerror or "cannot be read", "a machine file", name_or_path) from None
    if not stat.S_ISREG(mode.st_mode):
        raise ConfigError("is not a regular file", "a machine file", name_or_path)
    if mode.st_size > MAX_FILE_BYTES:
        raise ConfigError(f"{mode.st_size} bytes are too many for a machine file", "at most 1MiB", name_or_path)
    return path


# --- the child process ----------------------------------------------------------------------------


def _run(path: Path, time_limit: float) -> Machine:
    """Executes the file in a child process and returns its `machine`."""
    reader, writer = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reader)
        _child(path, writer, time_limit)
    os.close(writer)
    try:
        answer = _receive(reader, time_limit)
    finally:
        os.close(reader)
        _kill(child)
        _, status = os.waitpid(child, 0)
    where = _shown(path)
    if answer is None:
        raise ConfigError(f"did not finish within {time_limit:g} s", "a file that only describes a machine", where)
    try:
        kind, value = pickle.loads(answer)
    except Exception:  # noqa: BLE001  anything: the answer is incomplete or was tampered with
        how = f"was ended by signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) and answer else "ended without an answer"
        raise ConfigError(f"the file {how}", "a file that only describes a machine", where) from None
    if kind == "machine" and isinstance(value, Machine):
        return value
    if kind == "error" and isinstance(value, UserError):
        raise value
    raise ConfigError("the file gave no machine description", "machine = Machine(...) at its top level", where)


def _kill(child: int) -> None:
    """Ends the child and the processes that it started, its process group."""
    for kill in (os.killpg, os.kill):
        with suppress(OSError):  # it has ended, or has no process group yet
            kill(child, signal.SIGKILL)


def _receive(reader: int, time_limit: float) -> bytes | None:
    """The data that the child sends until it closes its end; None after the time limit."""
    deadline = time.monotonic() + time_limit
    parts: list[bytes] = []
    size = 0
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return None
        part = os.read(reader, 1 << 16)
        size += len(part)
        if not part or size > MAX_ANSWER_BYTES:
            return b"".join(parts)
        parts.append(part)


def _child(path: Path, writer: int, time_limit: float) -> None:
    try:
        try:
            _limit(time_limit)
            answer: tuple[str, Any] = ("machine", _execute(path))
        except ConfigError as error:
            answer = ("error", error)
        try:
            text = pickle.dumps(answer)
        except Exception:  # noqa: BLE001  the description holds an object of the file's own class
            where = ConfigError("the machine holds values that are not descriptions", "quantities, strings and numbers", _shown(path))
            text = pickle.dumps(("error", where))
        with os.fdopen(writer, "wb") as out:
            out.write(text)
    finally:
        # Nothing of the parent may run here: no handlers, no flushing of its buffers.
        os._exit(0)


def _limit(time_limit: float) -> None:
    os.setpgid(0, 0)
    faulthandler.disable()  # the parent reports how the child ended
    os.dup2(2, 1)
    sys.stdout = sys.stderr  # also where the parent has replaced sys.stdout
    sys.stdin = open(os.devnull)  # noqa: SIM115  for as long as the process lives
    os.dup2(sys.stdin.fileno(), 0)
    for caught in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(caught, signal.SIG_DFL)
    with open("/proc/self/statm") as statm:
        now = int(statm.read().split()[0]) * resource.getpagesize()
    for what, limit in (
        (resource.RLIMIT_AS, now + EXTRA_MEMORY),
        (resource.RLIMIT_CPU, int(time_limit) + 1),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (limit if hard < 0 else min(limit, hard), hard))


def _execute(path: Path) -> Machine:
    sys.dont_write_bytecode = True
    # A variant imports the machine that it changes, from beside it or from the project's machines.
    sys.path[:0] = [str(path.resolve().parent), str(configs_dir())]
    shown = _shown(path)
    try:
        text = path.read_bytes()
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            code = compile(text, str(path), "exec", dont_inherit=True)
    except SyntaxError as error:
        line = f":{error.lineno}" if error.lineno else ""
        raise ConfigError(f"not Python: {error.msg}", "a machine file, see docs/machines.md", shown + line) from None
    except OSError as error:
        raise ConfigError(error.strerror or "cannot be read", "a machine file", shown) from None
    except Exception as error:  # noqa: BLE001  null bytes, wrong encodings, nesting too deep, no memory
        raise ConfigError(f"not Python: {_brief(error)}", "a machine file, see docs/machines.md", shown) from None
    for warning in warned:
        if "missed a comma" in str(warning.message):
            raise ConfigError("two entries with nothing between them", "a comma after the first", f"{shown}:{warning.lineno}")
    names: dict[str, Any] = {"__name__": path.stem, "__file__": str(path)}
    try:
        exec(code, names)  # noqa: S102  this is what a machine file is
    except ConfigError as error:
        key = "" if re.match(r"\w+: ", error.what) else _key_of(error, path)
        raise ConfigError(key + error.what, error.right, _line_of(error, path)) from None
    except BaseException as error:  # noqa: BLE001  whatever a file may raise, SystemExit included
        raise ConfigError(_brief(error), "a file that runs to its end", _line_of(error, path)) from None
    machine = names.get("machine")
    if machine is None:
        raise ConfigError("defines no machine", "machine = Machine(...) at its top level", shown)
    if not isinstance(machine, Machine):
        raise ConfigError(f"`machine` is of the type {type(machine).__name__}", "machine = Machine(...)", shown)
    return machine if machine.topology.edges is not None else _resolved(machine, shown)


def _resolved(machine: Machine, shown: str) -> Machine:
    """Keeps the edges of a topology that the file itself registered, because it is known only in this process."""
    name = machine.topology.name
    if name not in topology.names() or topology.registered_in(name).startswith("moscope."):
        return machine
    try:
        return replace(machine, topology=machine.topology.resolved(int(machine.chips)))
    except ConfigError as error:
        raise error.at(shown) from None


def _brief(error: BaseException) -> str:
    try:
        text = str(error).splitlines()
    except Exception:  # noqa: BLE001  an exception of the file's own may fail even to print
        text = []
    return f"{type(error).__name__}: {text[0]:.160}" if text else type(error).__name__


def _place_of(error: BaseException, path: Path) -> traceback.FrameSummary | None:
    """The innermost place in a machine file through which the error passed."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__, limit=200)
              if frame.filename == str(path) or Path(frame.filename).parent == configs_dir()]
    return frames[-1] if frames else None


def _line_of(error: BaseException, path: Path) -> str:
    """File and line of that place."""
    place = _place_of(error, path)
    return f"{_shown(Path(place.filename))}:{place.lineno}" if place else _shown(path)


def _key_of(error: BaseException, path: Path) -> str:
    """`KEY: ` of the value that was under construction there; empty if it has no key."""
    place = _place_of(error, path)
    if place is None or place.lineno is None or place.colno is None:
        return ""
    here, keys = (place.lineno, place.colno), []
    try:
        for node in ast.walk(ast.parse(Path(place.filename).read_bytes())):
            if isinstance(node, ast.keyword) and node.arg:
                value = node.value
                begin, end = (value.lineno, value.col_offset), (value.end_lineno or 0, value.end_col_offset or 0)
                if begin <= here < end:
                    keys.append((begin, node.arg))
    except Exception:  # noqa: BLE001  the file ran, but its syntax tree may be too deep to inspect
        return ""
    return f"{max(keys)[1]}: " if keys else ""
