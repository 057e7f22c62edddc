# SPDX-License-Identifier: BSD-3-Clause
"""Repeats a failing random test while recording it, so that its accesses and message delays can be replayed."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moscope.config import Time
from moscope.protocol.check import JITTER, Subject
from moscope.protocol.counterexample.replay import Candidate, Played, Player, kind_of_error
from moscope.traces.document import CHECKED_WATCHDOG_FS
from moscope.traces.script import OPS

KINDS = list(OPS)  # by the engine's number of the kind of access
KEPT = 100_000  # accesses


@dataclass(frozen=True)
class Record:
    """A run that fails when it is replayed."""

    candidate: Candidate
    kind: str
    ops: int  # accesses that began
    seed: int


def find(subject: Subject, ops: int, seed: int, until: float, request: dict[str, Any] | None = None,
         say: Callable[[str], None] = lambda text: None) -> Record | None:
    """Runs random tests with this seed and the following ones until one fails and its replay fails too; None when the time is
    over. Here, accesses that hit are made like all others, so the runs differ from those of `random_test`."""
    from moscope import _engine

    library, player = str(subject.protocol.checking()), Player(subject)
    longest = Time(JITTER).fs
    while time.monotonic() < until:
        wanted = {**subject.request(ops, seed), **(request or {}), "inline_hits": False, "max_violations": 1, "record": True,
                  "delays_max_fs": longest, "record_last": KEPT}
        answer = json.loads(_engine.run_random_test(subject.text, library, json.dumps(wanted), seed=seed,
                                                    watchdog=subject.watchdog_fs(CHECKED_WATCHDOG_FS)))
        if "record" in answer:
            record = answer["record"]
            accesses = tuple(Played(record["first"] + i, who, KINDS[kind], address, size, at)
                             for i, (who, kind, address, size, at) in enumerate(record["accesses"]))
            candidate = Candidate(accesses, hashed=(seed, longest))
            kind = kind_of_error(answer["protocol_error"]) if "protocol_error" in answer else ""
            seen = player.play(candidate)
            if seen.kind:
                return Record(candidate, seen.kind, record["first"] + len(accesses), seed)
            say(f"seed {seed}: {kind or 'a wrong value'} after {answer['ops']:,} accesses did not repeat in a replay")
        seed += 1
    return None
