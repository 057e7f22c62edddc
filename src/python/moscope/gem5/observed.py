# SPDX-License-Identifier: BSD-3-Clause
"""The observations of a run of scripted accesses, in the same form for both engines: transitions step by step, latencies, values,
messages received, and the final states of lines."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from moscope.gem5.job import Answer, ScriptedAccess
from moscope.gem5.trace import Transition, transitions

Place = tuple[str, int, int]  # machine, version, line


@dataclass
class Observed:
    """`steps[n]`: the transitions between the beginning of step n and that of the next step."""

    steps: list[Counter[Transition]]
    latencies_fs: list[int]
    values: list[int]
    states: dict[Place, str]
    received: dict[tuple[str, str], int] = field(default_factory=dict)  # machine, buffer

    def totals(self) -> Counter[tuple[str, str, str, str]]:
        """How often each transition (machine, state, event, next state) was taken."""
        sums: Counter[tuple[str, str, str, str]] = Counter()
        for step in self.steps:
            for t, count in step.items():
                sums[t.machine, t.state, t.event, t.next] += count
        return sums


def initial_states(interface: dict[str, Any]) -> dict[str, str]:
    return {m["type"]: m["initial_state"] for m in interface["machines"]}


def kept_states(last: dict[Place, str], interface: dict[str, Any]) -> dict[Place, str]:
    """The states without initial states, which a line has before any access."""
    initial = initial_states(interface)
    return {place: state for place, state in last.items() if state != initial[place[0]]}


def from_engine(phase: dict[str, Any], interface: dict[str, Any]) -> Observed:
    """The answer to a script phase with "trace": "transitions" (experiment/transition_recorder.hh)."""
    controllers, names, flat = phase["controllers"], phase["names"], phase["transitions"]
    steps: list[Counter[Transition]] = []
    last: dict[Place, str] = {}
    known: dict[tuple[int, ...], Transition] = {}
    begin = 0
    for end in phase["step_ends"]:
        step: Counter[Transition] = Counter()
        for i in range(5 * begin, 5 * end, 5):
            words = tuple(flat[i:i + 5])
            t = known.get(words)
            if t is None:
                c = controllers[words[0]]
                own = names[c["machine"]]
                t = known[words] = Transition(c["machine"], c["version"], own["events"][words[2]], own["states"][words[1]],
                                              own["states"][words[3]], words[4])
            step[t] += 1
            last[t.machine, t.version, t.line] = t.next
        steps.append(step)
        begin = end
    buffers = {(m["type"], b["vnet"]): b["name"] for m in interface["machines"] for b in m["buffers"] if b["network"] == "From"}
    received: Counter[tuple[str, str]] = Counter()
    for d in phase["deliveries"]:
        machine = controllers[d["controller"]]["machine"]
        received[machine, buffers[machine, d["vnet"]]] += d["count"]
    accesses = phase["accesses"]
    return Observed(steps, [a["latency_fs"] for a in accesses], [a["value"] or 0 for a in accesses],
                    kept_states(last, interface), dict(received))


def from_gem5(accesses: list[ScriptedAccess], answers: list[Answer], trace: Path, received: dict[tuple[str, str], int],
              interface: dict[str, Any]) -> Observed:
    """gem5's trace, divided at the beginnings of the steps. Transitions before the first step count for the first step."""
    begins = [min(answers[i].issued for i in those) for those in _indices(accesses)]
    steps: list[Counter[Transition]] = [Counter() for _ in begins]
    last: dict[Place, str] = {}
    at = 0
    with trace.open(encoding="utf-8", errors="replace") as lines:
        for when, t in transitions(lines):
            while at + 1 < len(begins) and when >= begins[at + 1]:
                at += 1
            steps[at][t] += 1
            last[t.machine, t.version, t.line] = t.next
    networked = {(m["type"], b["name"]) for m in interface["machines"] for b in m["buffers"] if b["network"] == "From"}
    return Observed(steps, [a.latency_fs for a in answers], [a.value for a in answers], kept_states(last, interface),
                    {key: n for key, n in received.items() if key in networked and n})


def _indices(accesses: list[ScriptedAccess]) -> Iterator[list[int]]:
    for _, those in groupby(range(len(accesses)), lambda i: accesses[i].step):
        yield list(those)
