# SPDX-License-Identifier: BSD-3-Clause
"""From a failed random test to a few accesses that repeat the failure: record, replay, shrink, write."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope.protocol.check import Subject
from moscope.protocol.counterexample import record, write
from moscope.protocol.counterexample.replay import Player
from moscope.protocol.counterexample.shrink import Shrinker, Shrunk
from moscope.protocol.counterexample.write import Origin
from moscope.traces.files import write_whole


@dataclass(frozen=True)
class Counterexample:
    file: Path
    script: str
    what: str
    accesses: int
    recorded: int  # accesses of the run that failed
    replays: int
    seconds: float

    def as_json(self) -> dict[str, Any]:
        return {"file": str(self.file), "script": self.script, "what": self.what, "accesses": self.accesses, "recorded": self.recorded,
                "replays": self.replays, "seconds": round(self.seconds, 3)}


SHORT = 10  # accesses; a counterexample of at most this length needs no further search


def find(subject: Subject, ops: int, seed: int, seconds: float, request: dict[str, Any] | None = None,
         say: Callable[[str], None] = lambda text: None) -> tuple[Shrunk, int] | None:
    """The failure of a random test, shrunk within this time, and the number of accesses of the failing run; None if no failure
    can be repeated. If the result is long, further seeds are tried, because another run may fail in a simpler way."""
    until = time.monotonic() + seconds
    best: tuple[Shrunk, int] | None = None
    while True:
        found = record.find(subject, ops, seed, until, request, say)
        if found is None:
            return best
        latest = until if best else max(until, time.monotonic() + seconds / 2)
        shrunk = Shrinker(Player(subject), found.kind, latest).shrink(found.candidate)
        if best is None or (shrunk.candidate.hashed is None and shrunk.size < best[0].size):
            best = shrunk, found.ops
        if best[0].size <= SHORT or time.monotonic() >= until:
            return best
        seed = found.seed + 1


def make(subject: Subject, origin: Origin, ops: int, seed: int, seconds: float, file: Path, request: dict[str, Any] | None = None,
         say: Callable[[str], None] = lambda text: None) -> Counterexample | None:
    """Like `find`, and writes the result to `file`; without a result that a script can express, says so and returns None."""
    began = time.monotonic()
    found = find(subject, ops, seed, seconds, request, say)
    if found is None or found[0].candidate.hashed is not None:
        say(f"no script was written: none that repeats the failure was found within {seconds:g} s"
            + (f"; {file} is from an earlier run" if file.exists() else ""))
        return None
    shrunk, recorded = found
    c, node = shrunk.candidate, int(subject.machine["address_map"][0]["bytes"])
    write_whole(file, write.toml(origin, subject, c, shrunk.outcome).encode())
    texts = [write.access_text(a, node) for a in c.accesses]
    return Counterexample(file, write.script_text(c, node), write.what(texts, shrunk.outcome.violation, shrunk.outcome.text),
                          len(c.accesses), recorded, shrunk.replays, time.monotonic() - began)
