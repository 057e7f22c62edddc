# SPDX-License-Identifier: BSD-3-Clause
"""Replays accesses on a fresh machine and checks the values; each step of shrinking does this many times.

src/experiment/script.hh has the engine's side. When accesses are removed, the others keep their times, and
their messages keep their delays: a delay depends on the access, the message and its receiver alone
(src/experiment/message_delays.hh). Times are femtoseconds.
"""

from dataclasses import dataclass, field, replace
from typing import Any

from moscope.experiment import run_phases
from moscope.protocol.check import Subject
from moscope.traces.document import CHECKED_WATCHDOG_FS

FIRST_DEVICE = 0x8000


@dataclass(frozen=True)
class Played:
    """One access; `agent` is a core, or FIRST_DEVICE plus the number of a device."""

    number: int  # in the record
    agent: int
    op: str
    address: int
    size: int
    at: int

    @property
    def line(self) -> int:
        return self.address // 64 * 64

    def as_json(self) -> dict[str, Any]:
        who = {"device": self.agent - FIRST_DEVICE} if self.agent >= FIRST_DEVICE else {"core": self.agent}
        return {**who, "op": self.op, "address": self.address, "size": self.size, "at": self.at, "number": self.number}


@dataclass(frozen=True)
class Delay:
    """The delay of a message: the n-th of its name that the access (by its position) sends to this receiver."""

    access: int
    message: str
    to: str
    n: int
    fs: int

    def as_json(self) -> dict[str, Any]:
        return {"access": self.access, "message": self.message, "to": self.to, "n": self.n, "fs": self.fs}


@dataclass(frozen=True)
class Candidate:
    """Accesses to play. `one_by_one`: each begins when the machine is quiet again, without delays. `hashed`: (seed, longest) from
    which the delays of a record follow; without it, only `delays` apply."""

    accesses: tuple[Played, ...]
    one_by_one: bool = False
    hashed: tuple[int, int] | None = None
    delays: tuple[Delay, ...] = ()

    def with_accesses(self, accesses: tuple[Played, ...]) -> "Candidate":
        """The candidate with only these accesses; the delays of the others are removed, too."""
        if not self.delays:
            return replace(self, accesses=accesses)
        position = {a.number: i for i, a in enumerate(accesses)}
        kept = tuple(replace(d, access=position[self.accesses[d.access].number]) for d in self.delays
                     if self.accesses[d.access].number in position)
        return replace(self, accesses=accesses, delays=kept)

    def request(self, **more: Any) -> dict[str, Any]:
        accesses = [a.as_json() for a in self.accesses]
        if self.one_by_one:
            steps = [[{**a, "at": 0}] for a in accesses]
        else:
            steps = [accesses]
        if self.hashed is None:
            for i, a in enumerate(accesses):
                a["number"] = i
            delays: dict[str, Any] = {"list": [d.as_json() for d in self.delays]}
        else:
            delays = {"seed": self.hashed[0], "max_fs": self.hashed[1]}
        return {"kind": "script", "trace": False, "steps": steps, "message_delays": delays, "check": True,
                "absolute": self.hashed is not None, **more}


@dataclass(frozen=True)
class Outcome:
    """How a replay ended. `kind`: "" if nothing is wrong; otherwise "value", "end" (a wrong value at the end), "stuck" or
    "error"."""

    kind: str
    text: str = ""
    access: int | None = None  # the position of the access that shows the failure
    violation: dict[str, Any] = field(default_factory=dict)
    answer: dict[str, Any] = field(default_factory=dict)


def kind_of_error(text: str) -> str:
    return "stuck" if text.startswith("no progress") else "error"


class Player:
    """Plays candidates on one subject."""

    def __init__(self, subject: Subject) -> None:
        self.machine = subject.text
        self.node_bytes = int(subject.machine["address_map"][0]["bytes"])
        clock = subject.machine["clocks"]["core"]
        self.first_edge = clock["period_num"] // clock["period_den"]  # where a script begins
        self.library = str(subject.protocol.checking())
        self.watchdog = subject.watchdog_fs(CHECKED_WATCHDOG_FS)
        self.played = 0

    def play(self, candidate: Candidate, **more: Any) -> Outcome:
        self.played += 1
        return outcome(run_phases(self.machine, self.library, [candidate.request(**more)], watchdog=self.watchdog)[0])


def outcome(answer: dict[str, Any]) -> Outcome:
    """The outcome in a script's answer. A wrong value takes precedence over an error, which may be its consequence."""
    for violation in answer.get("violations", []):
        kind = "end" if violation["access"] is None else "value"
        return Outcome(kind, violation["text"], violation["access"], violation, answer)
    if "protocol_error" in answer:
        text = answer["protocol_error"]
        return Outcome(kind_of_error(text), text, _oldest_unfinished(answer), {}, answer)
    return Outcome("", answer=answer)


def _oldest_unfinished(answer: dict[str, Any]) -> int | None:
    open_ones = [a for a in answer["accesses"] if a["done"] is None and a["issued"] is not None]
    return min(open_ones, key=lambda a: (a["issued"], a["id"]))["id"] if open_ones else None
