# SPDX-License-Identifier: BSD-3-Clause
"""Converts a path through the states of a model (src/verify/path.hh) into a script with message delays that takes the same path on
the engine.

Each step of the path has a time: a request begins at the time of its step, and a message is delayed until the time of the step that
takes it. The distance between two times is far longer than any latency. What a machine does by itself (DRAM's answers, messages
within a controller) cannot be delayed, and a script has no evictions and no devices, so some paths have no script. A replay shows
whether the script fails.
"""

import itertools
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope.experiment import run_phases
from moscope.protocol.check import Subject
from moscope.protocol.counterexample import write
from moscope.protocol.counterexample.replay import Candidate, Delay, Outcome, Played, Player, outcome
from moscope.protocol.counterexample.shrink import Shrinker
from moscope.protocol.counterexample.write import Origin
from moscope.schema.constants import LINE
from moscope.traces.files import write_whole
from moscope.traces.script import place_name

MOMENT_FS = 5_000_000_000  # 5 us
PATIENT_FS = 10**15
WORD = 8
# A store past the caches is COMMIT if it writes the whole line, and IO if it writes a part.
OPS = {"LD": "ld", "ST": "st", "IFETCH": "if", "FLUSH": "flush", "COMMIT": "nt", "IO": "nt"}

Steps = Sequence[dict[str, Any]]


def candidate(steps: Steps, subject: Subject) -> Candidate | None:
    """The path as accesses and delays; None if it has an eviction or a device's request."""
    if any("evicts" in step or "device" in step for step in steps):
        return None
    bases = [int(r["base"]) for r in subject.machine["address_map"]]
    accesses, delays = [], []
    moments = list(itertools.accumulate(int(not step["at_once"]) for step in steps))
    taken: dict[int, int] = {}
    for moment, step in zip(moments, steps, strict=True):
        if step.get("takes", -1) >= 0:
            taken.setdefault(step["takes"], moment)
    alike: Counter[tuple[int, str, str]] = Counter()
    for moment, step in zip(moments, steps, strict=True):
        if "access" in step:
            line = step["line"] - 1
            address = bases[line % len(bases)] + line // len(bases) * LINE
            size = LINE if step["request"] == "COMMIT" else WORD
            accesses.append(Played(step["access"], step["core"], OPS[step["request"]], address, size, moment * MOMENT_FS))
        for sent in step.get("sends", []):
            key = (sent["access"], sent["message"], sent["to"])
            n, alike[key] = alike[key], alike[key] + 1
            # A message that is not taken on the path arrives after its end.
            until = taken.get(sent["number"], moments[-1] + 1)
            if sent["through_network"] and sent["access"] >= 0:
                delays.append(Delay(*key, n, (until - moment) * MOMENT_FS))
    return Candidate(tuple(accesses), delays=tuple(delays))


def transitions(subject: Subject, played: Candidate) -> tuple[Outcome, list[str]]:
    """Replays a candidate and lists the transitions taken, in order of time, such as `L1Cache-0: Load in I`."""
    answer = run_phases(subject.text, str(subject.protocol.checking()), [played.request(trace=True)], watchdog=PATIENT_FS)[0]
    return outcome(answer), [f"{t['controller']}: {t['event']} in {t['state']}" for t in answer["transitions"]]


@dataclass(frozen=True)
class Script:
    """A script file, and what it calls the lines and cores of the path: `line 1 is A@n0 (0x10000)`."""

    file: Path
    names: list[str]


def names(steps: Steps, played: Candidate, node_bytes: int) -> list[str]:
    """What a script that was shrunk from the path calls the path's lines, and those cores that have other numbers there."""
    asked = {step["access"]: step for step in steps if "access" in step}
    lines = [f"line {asked[a.number]['line']} is {place_name(a.line, node_bytes)} ({a.line:#x})" for a in played.accesses]
    cores = [f"core {core} is c{a.agent}" for a in played.accesses if (core := asked[a.number]["core"]) != a.agent]
    return list(dict.fromkeys(lines + cores))


def counterexample(steps: Steps, subject: Subject, origin: Origin, file: Path, seconds: float) -> Script | None:
    """Writes the script file for a path if the script also fails on the engine, shrunk within this time; None if there is no such
    script."""
    made = candidate(steps, subject)
    if made is None or not made.accesses:
        return None
    player = Player(subject)
    got = player.play(made)
    if not got.kind:
        return None
    shrunk = Shrinker(player, got.kind, time.monotonic() + seconds).shrink(made)
    write_whole(file, write.toml(origin, subject, shrunk.candidate, shrunk.outcome).encode())
    return Script(file, names(steps, shrunk.candidate, int(subject.machine["address_map"][0]["bytes"])))
