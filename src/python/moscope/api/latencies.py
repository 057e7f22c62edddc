# SPDX-License-Identifier: BSD-3-Clause
"""`moscope.latency`: the measurements of the command of that name, as tables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from moscope.api import html
from moscope.api.machine import AnyMachine, Machine, machine_of
from moscope.api.progress import Watcher, call
from moscope.api.traces import Trace
from moscope.api.values import switch

if TYPE_CHECKING:
    import pyarrow

ROWS = {"name": "string", "reference": "float", "source": "string", "measured": "float", "recomputed": "float", "shortest": "float",
        "longest": "float"}
SEGMENTS = {"name": "string", "segment": "string", "cycles": "float"}
BANDWIDTHS = {"name": "string", "reference": "float", "source": "string", "measured": "float", "limit": "string", "why": "string"}


@dataclass(frozen=True, repr=False)
class Latency:
    """Idle load latencies of a machine.

    `rows`: a row per level (`name`: L1, L2, L3, DRAM 0 hops ..) with `reference`, `source` (published or derived; null: the
    machine has none), `measured`, `recomputed` (from the segments of the trace), `shortest`, `longest`, in core cycles.
    `segments`: `name`, `segment`, `cycles`, the mean latency of each row split by where it was spent; they add up to `measured`.
    `bandwidths`: `name` (node, machine, XFIRE), `reference`, `source`, `measured` in GB/s, `limit` and `why`, the resource that
    limits; no rows without `bandwidth=True`. `traces`: for each row, by its name, a trace of 64 of its loads with every message.
    """

    machine: Machine
    protocol: str
    rows: "pyarrow.Table"
    segments: "pyarrow.Table"
    bandwidths: "pyarrow.Table"
    traces: dict[str, Trace]

    def __repr__(self) -> str:
        cycles = {row["name"]: round(row["measured"], 1) for row in self.rows.to_pylist()}
        return f"Latency({self.machine}, {self.protocol!r}, cycles={cycles})"

    def _repr_html_(self) -> str:
        rows = [[r["name"], r["reference"], r["source"], r["measured"]] for r in self.rows.to_pylist()]
        shown = html.table(f"{self.machine.name}, {self.protocol}: idle load latency in core cycles",
                           ["", "reference", "source", "measured"], rows)
        if self.bandwidths.num_rows:
            rows = [[r["name"], r["reference"], r["measured"], f"{r['limit']}: {r['why']}"] for r in self.bandwidths.to_pylist()]
            shown += html.table("bandwidth in GB/s", ["", "reference", "measured", "limited by"], rows)
        return shown


def latency(machine: AnyMachine = "opteron48", *, bandwidth: bool = False, seed: int = 1, progress: Watcher = None) -> Latency:
    """Measures the idle load latency of each memory level, and with `bandwidth` the bandwidths of a node, of the machine, and of
    all cores reading all nodes. Takes one to three seconds, with bandwidths ten (`opteron48_broadcast`: a minute).

    Raises UserError for a machine that is not accepted, ProtocolError where its coherence protocol breaks.
    """
    from moscope.api.tables import table
    from moscope.experiment import prepare
    from moscope.latencies import bandwidth as loaded
    from moscope.latencies import report, rows

    chosen, loaded_too = machine_of(machine), switch("--bandwidth", bandwidth)
    shared = call(chosen, seed, False if progress is None else progress)  # it takes seconds
    subject = prepare(shared, chosen.description)
    measured, bandwidths = [], []
    for level in rows.levels(subject):
        shared.say(f"measuring {level.name}")
        measured.append(rows.measure(subject, level))
    for load in loaded.loads(subject) if loaded_too else []:
        shared.say(f"measuring {load.name} bandwidth")
        bandwidths.append(loaded.row_json(loaded.measure(subject, load)))
    parts: list[dict[str, Any]] = [{"name": row.name, "segment": s["name"], "cycles": s["cycles"]}
                                   for row in measured for s in row.segments]
    return Latency(chosen, subject.protocol, table(ROWS, [report.row_json(row, "") for row in measured]), table(SEGMENTS, parts),
                   table(BANDWIDTHS, [{**b, "limit": b["limit"]["name"], "why": b["limit"]["why"]} for b in bandwidths]),
                   {row.name: Trace(chosen, row.trace) for row in measured})
