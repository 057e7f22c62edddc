# SPDX-License-Identifier: BSD-3-Clause
"""The same accesses on both engines, and what differs (moscope.crosscheck/1).

One at a time, each access must take the same transitions and leave the same states on both. When accesses overlap,
messages meet in different orders, so only the invariants must hold on both; the document shows how much the counts
differ.
"""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope import buildproto, config
from moscope.config.bindings import of_role
from moscope.errors import SimulatorBug, UserError
from moscope.experiment import run_phases
from moscope.gem5 import binary, invariants, job, observed, sequences, trace
from moscope.gem5.job import ScriptedAccess
from moscope.gem5.observed import Observed
from moscope.protocol.check import abilities_of

SCHEMA = "moscope.crosscheck/1"
FAULTS_SHOWN = 10


@dataclass(frozen=True)
class Subject:
    """A machine on both engines. It uses the checking library, so that values come from the protocol's own messages."""

    machine: dict[str, Any]
    interface: dict[str, Any]
    library: Path
    seed: int


def prepare(machine: config.Machine, caches: str, seed: int, report: Callable[[str], None]) -> Subject:
    built = buildproto.ensure_protocol(str(machine.protocol), report=report)
    interface = json.loads(built.interface.read_text(encoding="utf-8"))
    return Subject(job.two_sets_at_least(config.elaborate(machine, interface, caches=caches)), interface, built.checking(), seed)


def on_engine(subject: Subject, accesses: list[ScriptedAccess]) -> Observed:
    steps: list[list[dict[str, Any]]] = []
    previous = None
    for a in accesses:
        if a.step != previous:
            steps.append([])
            previous = a.step
        steps[-1].append({"core": a.core, "op": a.op, "address": a.address})
    phase = {"kind": "script", "trace": "transitions", "steps": steps}
    answer = run_phases(json.dumps(subject.machine), subject.library, [phase], subject.seed)[0]
    return observed.from_engine(answer, subject.interface)


def on_gem5(gem5: binary.Gem5, subject: Subject, accesses: list[ScriptedAccess], folder: Path) -> Observed:
    """Runs the accesses on gem5. The trace is large and needed only once, so it is not kept."""
    if gem5.path.suffix == ".fast":
        raise UserError(f"{gem5.path}: gem5.fast writes no trace of transitions: expected gem5.opt or gem5.debug")
    answers = job.play(gem5, subject.machine, subject.interface, accesses, folder,
                       ["--debug-flags=ProtocolTrace", "--debug-file=trace.txt"])
    stats = trace.statistics((folder / "stats.txt").read_text(encoding="utf-8"))
    seen = observed.from_gem5(accesses, answers, folder / "trace.txt", trace.received(stats), subject.interface)
    (folder / "trace.txt").unlink()
    if accesses and not any(seen.steps):
        raise SimulatorBug(f"crosscheck: no transition in {folder / 'trace.txt'}: gem5 writes another format")
    return seen


def compare(subject: Subject, accesses: list[ScriptedAccess], ours: Observed, theirs: Observed, together: bool) -> dict[str, Any]:
    """The document. `first_difference` is the first access whose transitions differ, with those of both engines."""
    difference = None if together else first_difference(accesses, ours, theirs)
    transitions_equal = ours.totals() == theirs.totals() and difference is None
    states_equal = ours.states == theirs.states
    faults = {
        "moscope": invariants.value_faults(accesses, ours.values, True) + invariants.state_faults(ours, subject.interface),
        "gem5": invariants.value_faults(accesses, theirs.values, False) + invariants.state_faults(theirs, subject.interface),
    }
    held = not any(faults.values())
    # gem5 does not report the end of a flush.
    errors = [abs(g - m) / m for a, m, g in zip(accesses, ours.latencies_fs, theirs.latencies_fs, strict=True) if a.op != "flush"]
    return {
        "schema": SCHEMA,
        "ok": held and (together or (transitions_equal and states_equal)),
        "mode": "together" if together else "one at a time",
        "machine": subject.machine["name"],
        "protocol": subject.machine["protocol"],
        "cores": subject.machine["cores"],
        "seed": subject.seed,
        "accesses": len(accesses),
        "latency_max_error": round(max(errors, default=0.0), 5),
        "latency_mean_error": round(sum(errors) / max(1, len(errors)), 5),
        "transitions_equal": transitions_equal,
        "transitions": {"moscope": sum(ours.totals().values()), "gem5": sum(theirs.totals().values())},
        "states_equal": states_equal,
        "messages_equal": ours.received == theirs.received,
        "messages": counts_by_name(ours.received, theirs.received),
        "filter": filter_outcomes(ours, theirs, of_role(subject.interface, "home")),
        "invariants": {engine: those[:FAULTS_SHOWN] for engine, those in faults.items()},
        "first_difference": difference,
    }


def first_difference(accesses: list[ScriptedAccess], ours: Observed, theirs: Observed) -> dict[str, Any] | None:
    for number, (mine, other) in enumerate(zip(ours.steps, theirs.steps, strict=True)):
        if mine != other:
            a = accesses[number]
            return {"access": number, "text": f"c{a.core} {a.op} {a.address:#x}",
                    "only_moscope": described(mine - other), "only_gem5": described(other - mine)}
    return None


def described(steps: Counter[trace.Transition]) -> list[str]:
    return sorted(f"{t.machine}-{t.version} {t.state} {t.event} -> {t.next} {t.line:#x}" + (f" x{n}" if n > 1 else "")
                  for t, n in steps.items())


def counts_by_name(ours: dict[tuple[str, str], int], theirs: dict[tuple[str, str], int]) -> dict[str, list[int]]:
    """[moscope, gem5]: the messages received from each buffer."""
    return {f"{machine}.{buffer}": [ours.get((machine, buffer), 0), theirs.get((machine, buffer), 0)]
            for machine, buffer in sorted(ours.keys() | theirs.keys())}


def filter_outcomes(ours: Observed, theirs: Observed, homes: Collection[str]) -> dict[str, list[int]]:
    """[moscope, gem5]: how often each STATE.EVENT occurred at the homes, for requests that looked up the filter."""
    both = []
    for seen in (ours, theirs):
        sums: Counter[str] = Counter()
        for (machine, state, event, _), count in seen.totals().items():
            if machine in homes:
                sums[f"{state}.{event}"] += count
        both.append(sums)
    return {name: [both[0][name], both[1][name]] for name in sorted(both[0].keys() | both[1].keys())}


def run(gem5: binary.Gem5, subject: Subject, accesses: list[ScriptedAccess], folder: Path, together: bool,
        report: Callable[[str], None]) -> dict[str, Any]:
    report("the embedded engine")
    ours = on_engine(subject, accesses)
    report("gem5")
    theirs = on_gem5(gem5, subject, accesses, folder / "gem5")
    document = compare(subject, accesses, ours, theirs, together)
    shutil.rmtree(folder / "gem5" / "fs", ignore_errors=True)
    return document


def random_accesses(subject: Subject, count: int, caches: str, together: bool) -> list[ScriptedAccess]:
    make = sequences.together if together else sequences.one_at_a_time
    flush = abilities_of(subject.interface, subject.machine, own=True).flush
    return make(subject.machine, count, subject.seed, caches, flush)
