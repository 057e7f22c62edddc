# SPDX-License-Identifier: BSD-3-Clause
"""`moscope mosbench`: a sweep over applications, kernels and core counts, then the paper's figures from its points."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope import errors, jsonio
from moscope.aside import write_whole
from moscope.cli import Shared
from moscope.config import Machine, load_machine
from moscope.errors import UserError
from moscope.mosbench import applications
from moscope.mosbench.applications import Application
from moscope.reports import made_by
from moscope.runs import options
from moscope.sweeps import main as sweeps
from moscope.sweeps import overrides, results
from moscope.sweeps.jobs.run import Run
from moscope.sweeps.spec import Spec, Value

SCHEMA = "moscope.mosbench/1"
DEFAULT_OUT = Path("moscope-out/mosbench")
# Core counts around multiples of six, where curves bend because a chip has six cores.
CORES = "1,4,6,12,18,24,30,36,42,48"
QUICK_CORES, QUICK_ERROR, QUICK_WINDOWS = "1,12,48", "10%", 24
# The packet limits of the paper's card, which are off by default. They hold for up to 16 queues; with more, the card is slower
# (src/schema/nic.py).
CARD: dict[str, Value] = {"nic.in_per_second": 5_000_000, "nic.out_per_second": 5_000_000}
# The fixed values of a sweep that are not parameters of the machine.
OPTIONS = {"machine", "seed", *Run.options}
DESCRIPTION = "mosbench.json"
Say = Callable[[str], None]


@dataclass(frozen=True)
class Wanted:
    """The command's own options; None where the user gave none."""

    workload: str | None = None
    cores: str | None = None
    windows: int | None = None
    until_error: str | None = None
    threads: int | None = None
    quick: bool = False

    def measured(self) -> dict[str, Any]:
        """Core counts, windows and error, as options of `moscope run`."""
        given = {"windows": self.windows, "until_error": self.until_error, "threads": self.threads}
        quick = {"until_error": QUICK_ERROR, "windows": QUICK_WINDOWS, "window": options.SHORT} if self.quick else {}
        return {**quick, **{name: value for name, value in given.items() if value is not None}}

    def counts(self, machine: Machine) -> list[Value]:
        usual = options.default_cores(machine, QUICK_CORES if self.quick else CORES)
        return list(options.core_list(usual if self.cores is None else self.cores, machine))


def spec(shared: Shared, wanted: Wanted, chosen: list[Application], workloads: set[str]) -> Spec:
    """The sweep: all combinations of workload and kernel that are curves, at all core counts."""
    if several := next(iter(overrides.split(shared.machine, shared.sets)[1]), None):
        raise UserError(f"--set: several values of {several}: expected one, or moscope sweep for an axis")
    pairs = [(c.workload, c.kernel) for a in chosen for c in applications.curves(a, workloads)]
    names, kernels = list(dict.fromkeys(w for w, _ in pairs)), list(dict.fromkeys(k for _, k in pairs))
    counts = wanted.counts(load_machine(shared.machine, shared.sets))
    exclude: list[dict[str, list[Value]]] = [{"workload": [w], "kernel": [k]} for w in names for k in kernels if (w, k) not in pairs]
    fixed: dict[str, Any] = {"machine": shared.machine, "seed": shared.seed, **CARD, **wanted.measured()}
    described = Spec("run", fixed, {"workload": [*names], "kernel": [*kernels], "cores": counts}, [], exclude, "mosbench",
                     "moscope mosbench")
    return overrides.apply(described, shared)


def run(shared: Shared, wanted: Wanted, *, say: Say, progress: sweeps.Progress = sweeps.nothing,
        **started: Any) -> tuple[dict[str, Any], sweeps.Outcome]:
    """Runs the points that are missing and makes the figures. Returns moscope.mosbench/1 and the outcome of the sweep."""
    from moscope import workloads

    known = {w.name for w in workloads.every()}
    chosen = applications.chosen(wanted.workload, known)
    if wanted.workload is None:
        for one in applications.APPLICATIONS:
            if one not in chosen:
                say(f"{one.title} is left out: moscope has no workload {' or '.join(applications.missing(one, known))} yet")
    described = spec(shared, wanted, chosen, known)
    out = (shared.out or DEFAULT_OUT).absolute()
    made: dict[str, Any] = {}
    outcome = sweeps.run(described, out, say=say, progress=progress,
                         then=lambda outcome: made.update(_draw(shared, described, chosen, known, out, outcome, say)), **started)
    if "estimated_s" in outcome.document:
        files = ("table", "report")  # which a dry run does not make
        kept = {key: value for key, value in outcome.document.items() if key not in files}
        return {**kept, "schema": SCHEMA, "applications": [a.name for a in chosen]}, outcome
    return made, outcome


def _draw(shared: Shared, described: Spec, chosen: list[Application], known: set[str], out: Path, outcome: sweeps.Outcome,
          say: Say) -> dict[str, Any]:
    """Makes the figures; returns moscope.mosbench/1."""
    write_whole(out / DESCRIPTION, jsonio.dumps({"schema": SCHEMA, "machine": shared.machine, "set": sets(described), "applications": [
        {"name": a.name, "title": a.title, "figure": a.figure, "limit": a.limit,
         "curves": [{"label": c.label, "workload": c.workload, "kernel": c.kernel} for c in applications.curves(a, known)]}
        for a in chosen]}) + "\n")
    say("drawing the paper's figures")
    drawn = json.loads(made_by("analysis.mosbench.main", [str(out)], out))
    document = {"schema": SCHEMA, "ok": outcome.exit_code == errors.OK, "machine": shared.machine, "points": points(out),
                "failed": outcome.failed, "table": str(out / results.TABLE), **drawn}
    write_whole(out / "result.json", jsonio.dumps(document) + "\n")
    return document


def sets(described: Spec) -> list[str]:
    """What changes the machine at all points, as values of `--set`."""
    return [f"{key}={value}" for key, value in described.fixed.items() if key not in OPTIONS]


def points(out: Path) -> list[dict[str, Any]]:
    """POINT of the contracts for each finished point of the table."""
    from pyarrow import parquet

    rows = parquet.read_table(out / results.TABLE, columns=["point", "status"], partitioning=None).to_pylist()
    return [json.loads((out / "points" / r["point"] / "point.json").read_text(encoding="utf-8"))
            for r in rows if r["status"] == results.DONE]
