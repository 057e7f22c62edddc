# SPDX-License-Identifier: BSD-3-Clause
"""`moscope run --engine gem5`: measures the chosen points one after the other, with a kernel if one is named, otherwise as
programs alone. The run directory is that of any run, without the data that gem5 does not record."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from moscope import jsonio, workloads
from moscope.aside import write_whole
from moscope.cli import Shared
from moscope.errors import MoscopeError, UserError, failures
from moscope.gem5 import binary, full_system, programs
from moscope.runs import directory, main, options
from moscope.runs.main import Outcome
from moscope.runs.options import Options, Plan, Point
from moscope.runs.point_name import NO_KERNEL, point_name
from moscope.wording import number, percent

DEFAULT_OUT = Path("moscope-out/run-gem5")  # not the folder of runs on moscope's engine, to which several starts add


def plan_of(shared: Shared, chosen: Options) -> Plan:
    """The chosen points; a UserError for what gem5 cannot do."""
    shared = replace(shared, out=shared.out or DEFAULT_OUT)
    if chosen.windows not in (None, 1) or chosen.detail != "table" or chosen.until_error is not None:
        raise UserError("--engine gem5: measures one window and records no transactions: expected --windows 1 and --detail table")
    if chosen.program is not None or chosen.begin is not None:
        raise UserError("--engine gem5: runs only moscope's workloads, each from its own marker: expected neither --program nor --begin")
    if chosen.kernel is not None:
        return options.make(shared, replace(chosen, windows=1))
    # A single kernel is named here, so that a workload with several kernels has only one point.
    plan = options.make(shared, replace(chosen, kernel="distro", windows=1), guest=False)
    of_processes = {w.name for w in workloads.every() if w.processes}
    processes = sorted({p.workload for p in plan.points if p.workload in of_processes})
    if processes:
        raise UserError(f"--workload: {', '.join(processes)}: gem5's syscall emulation has threads and no processes: expected one of "
                        f"{', '.join(sorted(programs.threaded()))}, or a kernel (--kernel stock)")
    return plan


def run(shared: Shared, chosen: Options, path: Path | None) -> Outcome:
    """Measures the plan's points. Writes `run.json`, a folder for each point (for a failed one, with gem5's output), and the
    report."""
    plan = plan_of(shared, chosen)
    gem5 = binary.require(binary.find(path), str(plan.machine.protocol), x86=True)
    jsonio.check_replaceable(plan.out)
    points: list[dict[str, Any]] = []
    failed: list[MoscopeError] = []
    with_kernel = chosen.kernel is not None
    measure = full_system.measure if with_kernel else programs.measure
    with jsonio.atomic_dir(plan.out) as folder:
        for point in plan.points:
            shared.say(f"{point.workload} on {number(point.cores, 'core')}{', ' + point.kernel if with_kernel else ''}, on gem5")
            name = name_of(point, with_kernel)
            try:
                points.append(measure(gem5, plan, point, (folder / "points" / name).resolve()))
            except UserError:
                raise
            except MoscopeError as error:
                error.point = name
                failed.append(error)
                continue
            directory.write_document(folder / "points" / name / "point.json", directory.POINT_SCHEMA, points[-1])
        document = {"schema": directory.SCHEMA, "ok": not failed, "machine": plan.machine.name, "engine": f"gem5 {gem5.version}",
                    "points": points, **failures(failed)}
        (folder / "run.json").write_text(jsonio.dumps(document) + "\n", encoding="utf-8")
    if points and main.report(plan, shared):
        document["report"] = str(plan.out / directory.REPORT)
        write_whole(plan.out / "run.json", jsonio.dumps(document) + "\n")
    return Outcome(document, failed)


def name_of(point: Point, with_kernel: bool) -> str:
    """The name of a point's folder."""
    return point_name(point.workload, point.kernel if with_kernel else NO_KERNEL, point.cores, gem5=True)


def show(document: dict[str, Any]) -> None:
    """Prints the results for people."""
    print(f"{document['machine']} on {document['engine']}")
    for p in document["points"]:
        speed = p["instructions"] / p["host_s"] / 10**6 if p["host_s"] else 0.0
        cycles = ", ".join(f"{name} {percent(share)}" for name, share in p["cycles"].items())
        print(f"{p['workload']} on {number(p['cores'], 'core')}, kernel {p['kernel']}: {p['throughput_per_s']:,.0f} {p['operation']} per "
              f"second in {p['window_ms']:g} ms; {cycles}; {p['instructions']:,} instructions in {p['host_s']:.1f} s of the host, "
              f"{speed:.3f} million per second")
