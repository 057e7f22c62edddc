# SPDX-License-Identifier: BSD-3-Clause
"""Points that are runs of `moscope trace`."""

from pathlib import Path
from typing import Any

from moscope import experiment
from moscope.sweeps.jobs.base import (
    Job,
    Planned,
    Report,
    Say,
    edges_of,
    engine_digest,
    file_digest,
    machine_of,
    shared,
)
from moscope.sweeps.spec import Params, Value, text


class Trace(Job):
    name = "trace"
    options = ("script",)
    required = ("script",)
    elsewhere = ("steps", "svg", "png")
    figures_first = ("total_cycles",)
    figures_beside = ("messages", "transitions")

    def plan(self, params: Params, say: Say) -> Planned:
        from moscope.traces.document import has_delays
        from moscope.traces.script import parse

        chosen, script = shared(self, params), text(params["script"])
        machine = machine_of(chosen)
        subject = experiment.prepare(chosen, machine, delays=has_delays(parse(script, machine)))
        identity = {"job": self.name, "engine": engine_digest(), "machine": subject.elaborated, "protocol": file_digest(subject.library),
                    "script": script, "seed": chosen.seed}
        return Planned(identity, f"trace on {chosen.machine}", edges_of(machine))

    def run(self, params: Params, folder: Path, report: Report) -> dict[str, Any]:
        from moscope.traces.document import has_delays, run_script
        from moscope.traces.script import parse

        chosen, script = shared(self, params), text(params["script"])
        machine = machine_of(chosen)
        steps = parse(script, machine)
        return run_script(experiment.prepare(chosen, machine, delays=has_delays(steps)), steps, script)

    def figures(self, document: dict[str, Any]) -> dict[str, Value | None]:
        accesses = document["accesses"]
        numerator, denominator = document["clock"]["core_period_fs"]
        found: dict[str, Value | None] = {
            "total_cycles": (max(a["done"] for a in accesses) - min(a["issued"] for a in accesses)) * denominator / numerator,
            "messages": len(document["messages"]), "transitions": len(document["transitions"])}
        found.update({f"access{a['id'] + 1}_cycles": a["latency_cycles"] for a in accesses})
        for a in accesses:
            for s in a["segments"]:
                key = f"segment.{s['name']}_cycles"
                found[key] = float(found.get(key) or 0.0) + s["cycles"]
        return found

    def words_of(self, name: str, value: Value) -> list[str]:
        return [text(value)] if name == "script" else super().words_of(name, value)


JOB = Trace()
