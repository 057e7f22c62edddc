# SPDX-License-Identifier: BSD-3-Clause
"""From the shared options to a machine that can be measured: description, protocol, engine.

The engine takes text and gives text (`moscope._engine.run_experiment`, phases as src/experiment/experiment.hh lists
them); this module is the one place where the commands meet it. Times are femtoseconds.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

from moscope import buildproto, patience
from moscope.cli import Shared
from moscope.config import ConfigError, Machine, Time, blamed, elaborate, load_machine
from moscope.errors import ProtocolError, SimulatorBug, UserError
from moscope.schema.constants import FS_PER_NS

Phase = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """A machine with its protocol, ready to run."""

    machine: Machine
    interface: dict[str, Any]
    elaborated: dict[str, Any]
    library: Path
    seed: int
    sets: tuple[str, ...] = ()  # the options that changed the machine of the file
    own: bool = True  # the protocol is one of the project's

    @property
    def period(self) -> Fraction:
        """One core cycle in femtoseconds."""
        return Fraction(self.machine.core_clock.period)

    def cycles(self, fs: float | Fraction) -> float:
        return float(fs / self.period)

    @property
    def protocol(self) -> str:
        return str(self.interface["protocol"])

    def caches(self, parameter: str) -> list[dict[str, Any]]:
        """The distinct cache arrays whose parameter name contains `parameter` (letter case is ignored)."""
        found: list[dict[str, Any]] = []
        for controller in self.elaborated["controllers"]:
            for name, value in controller["params"].items():
                if isinstance(value, dict) and parameter.lower() in name.lower() and value not in found:
                    found.append(value)
        return found

    def machine_types(self) -> list[str]:
        return [str(m["type"]) for m in self.interface["machines"]]

    def watchdog_fs(self, usual: int = patience.EXPERIMENT_FS) -> int:
        """The age at which a request counts as lost: `usual`, or more if the machine is so slow."""
        return patience.limit(usual, patience.slowness(self.machine, self.elaborated))

    def run(self, phases: list[Phase], threads: int = 1, watchdog: int = patience.EXPERIMENT_FS) -> list[dict[str, Any]]:
        """Runs the phases one after the other on a fresh machine. With several host threads, chips run in parallel, with the same
        results. `watchdog`: the usual limit, which slow machines lengthen."""
        return run_phases(json.dumps(self.elaborated), self.library, phases, self.seed, self.watchdog_fs(watchdog),
                          threads if threads > 1 else 0)


def run_phases(elaborated: str, library: Path | str, phases: list[Phase], seed: int = 1, watchdog: int = patience.EXPERIMENT_FS,
               threads: int = 0) -> list[dict[str, Any]]:
    """The answers of the engine to phases on a fresh machine; `elaborated` is its text."""
    from moscope import _engine  # the native module is needed only when something runs

    answer = json.loads(_engine.run_experiment(elaborated, str(library), json.dumps({"phases": phases}), seed, watchdog, threads))
    results: list[dict[str, Any]] = answer["phases"]
    return results


def prepare(shared: Shared, machine: Machine | None = None, checking: bool = False, *, delays: bool = False,
            caches: str = "machine", homes: int | None = None) -> Subject:
    """The machine that the shared options name (or the one given), elaborated for its protocol. `delays`: scripts may delay
    messages; without delays, times are the same. `caches`, `homes`: as in `elaborate`."""
    machine = machine or load_machine(shared.machine, shared.sets)
    built = buildproto.ensure_protocol(str(machine.protocol), report=shared.say)
    interface = json.loads(built.interface.read_text(encoding="utf-8"))
    try:
        elaborated = elaborate(machine, interface, caches=caches, homes=homes, jitter=Time("1fs") if delays else None)
    except ConfigError as error:
        raise blamed(error, shared.machine, shared.sets) from None
    library = built.checking() if checking else built.timing  # after the checks, as it may need a compilation
    return Subject(machine, interface, elaborated, library, shared.seed, tuple(shared.sets), built.own)


#: How the engine words that a phase has reached the limit of simulated time (src/experiment/paced_machine.hh). Lost requests end a
#: phase earlier, so at this limit the machine is only slow.
TOO_LONG = "an experiment did not end within "


@contextmanager
def slowness_is_a_user_error(what: str) -> Iterator[None]:
    """Turns the engine's limit of simulated time for a phase into a UserError about the machine's times."""
    try:
        yield
    except ProtocolError as error:
        _, reached, limit = str(error).partition(TOO_LONG)
        if not reached:
            raise
        raise UserError(f"{what}: its loads did not finish within {limit}: expected a machine with shorter latencies") from None


def check_done(what: str, done: int, window_fs: int) -> None:
    """UserError if a machine is so slow that no access was done in a window."""
    if not done:
        raise UserError(f"{what}: no access finished within {window_fs / FS_PER_NS:.0f} ns: expected a machine with shorter latencies")


def check_segments(what: str, latency: int, segments: list[dict[str, Any]]) -> None:
    """Checks that the segments of an access add up to its latency exactly: every tick is accounted for once."""
    total = sum(int(s["fs"]) for s in segments)
    if total != latency:
        raise SimulatorBug(f"{what}: its segments add up to {total / FS_PER_NS} ns, its latency is {latency / FS_PER_NS} ns")
