# SPDX-License-Identifier: BSD-3-Clause
"""The interface of a kind of job: the parameters that it takes, what determines a point's result, how a point is run, and its
figures."""

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from moscope import errors, paths
from moscope.cli import DEFAULT_MACHINE, MOST_SEED, Shared
from moscope.config import Machine, load_machine
from moscope.config.load import with_sets
from moscope.errors import UserError
from moscope.sweeps.spec import Params, Value, quoted, text

Say = Callable[[str], None]
Report = Callable[[str], None]
SHARED = ("machine", "seed")
# Options of commands that say where results go or which engine makes them.
COMMON_ELSEWHERE = ("engine", "gem5", "json", "out", "quiet", "set")
MB = 1 << 20


@dataclass(frozen=True)
class Planned:
    """`identity`: everything that determines the result. `kind`: points of one kind take about the same time, which grows with
    `work`. `memory_mb`: of the host, `boot_memory_mb` for the boot alone; `threads`: of the host. `boot`: the key of the booted
    guest that the point starts from; `edges`: the links of its machine."""

    identity: dict[str, Any]
    kind: str
    edges: list[list[int]] = field(default_factory=list)
    work: float = 1.0
    memory_mb: int = 500
    boot_memory_mb: int = 500
    threads: int = 1
    boot: str | None = None

    @cached_property  # a sweep asks for it at each look at its results
    def digest(self) -> str:
        text = json.dumps(self.identity, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:20]


@dataclass(frozen=True)
class Finding:
    """The description of a fault, and the exit code of the command that finds it."""

    text: str
    exit_code: int = errors.FOUND


class Job(ABC):
    """`options`: parameters besides machine, seed and machine keys. `light`: a point takes less time than the start of a process."""

    name: str
    options: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()  # options of the command that cannot be parameters, besides COMMON_ELSEWHERE
    light = True
    figures_first: tuple[str, ...] = ()  # the main figures; * stands for any text
    figures_beside: tuple[str, ...] = ()  # others that a table of points has beside them

    @abstractmethod
    def plan(self, params: Params, say: Say) -> Planned:
        """Checks the parameters of a point and returns what determines its result; UserError for what is wrong."""

    @abstractmethod
    def run(self, params: Params, folder: Path, report: Report) -> dict[str, Any]:
        """Runs the point in this process and returns the JSON object of the command; files go into `folder`. It calls `report`
        from time to time with the state of the point; `report` raises KeyboardInterrupt if the point has to end."""

    @abstractmethod
    def figures(self, document: dict[str, Any]) -> dict[str, Value | None]:
        """The figures of a point's document, for a row of the table."""

    def finding(self, document: dict[str, Any]) -> Finding | None:
        """The fault that a check has found; None if it has found none."""
        return None

    def make_boot(self, params: Params, key: str, folder: Path, report: Report) -> None:
        """Puts the booted guest that points share into `folder`, as KEY.ckpt and KEY.console."""
        raise NotImplementedError

    def take_boot(self, key: str, folder: Path) -> None:
        """Copies the booted guest from there to the place where a point looks for it."""
        raise NotImplementedError

    def lines(self, folder: Path) -> Any:
        """The point's table of names of lines (pyarrow.Table), or None."""
        return None

    def lacking(self, params: Params) -> list[str]:
        """What `plan` would build first, in words with the time that it takes; needed because a dry run builds nothing."""
        return []

    def rough(self, params: Params) -> tuple[str, float] | None:
        """Kind and work of a point as in its plan, without building anything; None if they are unknown."""
        return None

    def label(self, params: Params) -> str:
        """A short description of the point for progress displays."""
        return self.name

    def command(self, params: Params) -> list[str]:
        """The words of the command line that runs the point alone."""
        words = self.name.split()
        for name, value in params.items():
            if name in self.options or name in SHARED:
                words += self.words_of(name, value)
            else:
                words += ["--set", f"{name}={anywhere(text(value)) if name == 'protocol' else text(value)}"]
        return words

    def forget(self) -> None:  # noqa: B027  most kinds of job read nothing besides what this module reads
        """Discards what was read once in this process, so that it is read again."""

    def words_of(self, name: str, value: Value) -> list[str]:
        return [f"--{name.replace('_', '-')}", anywhere(text(value)) if name == "machine" else text(value)]


def anywhere(name_or_file: str) -> str:
    """A machine or protocol as a command names it in every folder: the path of a file from the root."""
    return str(Path(name_or_file).absolute()) if name_or_file.endswith((".py", ".slicc")) else name_or_file


@lru_cache
def _described(name: str) -> Machine:
    return load_machine(name)


def shared(job: Job, params: Params) -> Shared:
    seed = params.get("seed", 1)
    if isinstance(seed, bool) or not isinstance(seed, int):
        raise UserError(f"seed: {quoted(seed)}: expected a whole number")
    if not 0 <= seed <= MOST_SEED:
        raise UserError(f"seed: {seed}: expected 0 to {MOST_SEED}")
    sets = [f"{name}={text(value)}" for name, value in params.items() if name not in job.options and name not in SHARED]
    return Shared(machine=text(params.get("machine", DEFAULT_MACHINE)), sets=sets, seed=seed, quiet=True)


def machine_of(chosen: Shared) -> Machine:
    """The machine description with its changes; the file is read once per process."""
    return with_sets(_described(chosen.machine), Path(chosen.machine), chosen.sets)


def forget() -> None:
    """Discards what was read once in this process, so that it is read again."""
    for kept in (_described, file_digest, engine_digest, code_digest):
        kept.cache_clear()


def edges_of(machine: Machine) -> list[list[int]]:
    return [[e.a, e.b] for e in machine.edges()]


@lru_cache
def file_digest(path: Path) -> str:
    from moscope.guest.packages import digest_of

    return digest_of(path)[:16]


@lru_cache
def code_digest() -> str:
    """The digest of moscope's own Python code, which names lines and computes errors. It is not part of the digests of points,
    because most changes of this code change no result."""
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths.PACKAGE.rglob("*.py")))).hexdigest()[:16]


@lru_cache
def engine_digest() -> str:
    from moscope.runs.directory import engine_digest as digest

    return digest()
