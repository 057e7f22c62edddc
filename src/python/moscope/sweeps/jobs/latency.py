# SPDX-License-Identifier: BSD-3-Clause
"""Points that are runs of `moscope latency`."""

from pathlib import Path
from typing import Any

from moscope import experiment
from moscope.errors import UserError
from moscope.sweeps.jobs.base import Job, Planned, Report, Say, edges_of, engine_digest, file_digest, machine_of, shared
from moscope.sweeps.spec import Params, Value, quoted


class Latency(Job):
    name = "latency"
    options = ("bandwidth",)
    figures_first = ("L1_cycles", "L2_cycles", "L3_cycles", "DRAM_*_cycles")

    def plan(self, params: Params, say: Say) -> Planned:
        chosen = shared(self, params)
        machine = machine_of(chosen)
        subject = experiment.prepare(chosen, machine)
        bandwidth = with_bandwidth(params)
        identity = {"job": self.name, "engine": engine_digest(), "machine": subject.elaborated, "protocol": file_digest(subject.library),
                    "references": str(machine.references), "bandwidth": bandwidth, "seed": chosen.seed}
        return Planned(identity, f"latency{' --bandwidth' if bandwidth else ''} on {chosen.machine}", edges_of(machine))

    def run(self, params: Params, folder: Path, report: Report) -> dict[str, Any]:
        from moscope.latencies import bandwidth, rows
        from moscope.latencies.report import row_json

        chosen = shared(self, params)
        subject = experiment.prepare(chosen, machine_of(chosen))
        document: dict[str, Any] = {"schema": "moscope.latency/1", "machine": subject.machine.name, "protocol": subject.protocol,
                                    "seed": subject.seed, "rows": []}
        for level in rows.levels(subject):
            report(level.name)
            document["rows"].append(row_json(rows.measure(subject, level), ""))
        for load in bandwidth.loads(subject) if with_bandwidth(params) else []:
            report(load.name)
            document["rows"].append(bandwidth.row_json(bandwidth.measure(subject, load)))
        return document

    def figures(self, document: dict[str, Any]) -> dict[str, Value | None]:
        """A figure for each row, such as `DRAM_3_hops_cycles`; a machine without such a row has no such figure."""
        units = {"cycles": "cycles", "GB/s": "GB_per_s"}
        return {f"{row['name'].replace(' ', '_')}_{units[row['unit']]}": row["measured"] for row in document["rows"]}

    def words_of(self, name: str, value: Value) -> list[str]:
        return (["--bandwidth"] if value else []) if name == "bandwidth" else super().words_of(name, value)


def with_bandwidth(params: Params) -> bool:
    value = params.get("bandwidth", False)
    if not isinstance(value, bool):
        raise UserError(f"bandwidth: {quoted(value)}: expected true or false")
    return value


JOB = Latency()
