# SPDX-License-Identifier: BSD-3-Clause
"""Measures one point: a boot (or its checkpoint), the start of the workload in functional mode, a warm-up and windows in
detailed mode, then functional mode for the workload's own check of its results.
"""

import gc
import json
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from moscope.config import load_machine
from moscope.config.bindings import Roles
from moscope.errors import GuestDied, SimulatorBug, UserError, WorkloadFailed
from moscope.guest import initramfs, kernel
from moscope.naming import columns, image
from moscope.naming.rings import Rings
from moscope.naming.rows import PackedRows
from moscope.runs import checkpoints, engine, episodes, functions, lines, loads, no_operations, stacks, transactions, windows
from moscope.runs.card_load import CardLoad
from moscope.runs.guest import Guest, Progress
from moscope.runs.inputs import Gatherer, Inputs, differences
from moscope.runs.job import Job
from moscope.runs.link_load import LinkLoad
from moscope.runs.options import APPEND, BUSY, Point
from moscope.runs.over_time import OverTime
from moscope.runs.own_program import WORK_BEGINS, may_have_crashed, status_of
from moscope.runs.whatif import pages
from moscope.schema.card import MAXIMA
from moscope.schema.constants import FS_PER_MS
from moscope.workloads import Results, registry

Windows = tuple[list[windows.Moment], dict[str, Any], PackedRows, "Recorded"]
EPOCHS = "epochs.raw"  # in a point's folder, with Job.record_epochs
RAN = """SELECT waiter_function FROM pairs WHERE NOT kernel GROUP BY waiter_function
         ORDER BY sum(stall + spin) DESC, waiter_function"""
STATUS_WITHIN = 200 * FS_PER_MS  # simulated time in which the shell prints the status of a program that has ended
# With a time for --begin, the shell first prints this marker, and the time counts from there: the serial console takes tens of
# milliseconds to accept a command. The typed command does not contain the marker itself.
STARTS, SAY_STARTS = "moscope: starts", "echo moscope: 'starts'"


@dataclass(frozen=True)
class Recorded:
    """Data that the engine has recorded in addition to its counts, packed."""

    episodes: bytes
    loads: bytes
    stacks: bytes

    @classmethod
    def by(cls, system: engine.System) -> "Recorded":
        return cls(system.episodes(), system.loads(), system.stacks())


@dataclass
class Result:
    """The contents of a point's folder."""

    point: dict[str, Any]
    stats: dict[str, Any]
    tables: columns.Tables
    console: bytes
    kernel: dict[str, str] = field(default_factory=dict)


def measure(job: Job, folder: Path, report: Callable[[Progress], None], say: Callable[[str], None]) -> Result:
    """Measures a point in this process; with `--detail full`, transactions are written into `folder`. Raises GuestDied,
    WorkloadFailed, ProtocolError or SimulatorBug."""
    started = time.monotonic()
    programs = {name: Path(path) for name, path in job.programs.items()}
    inputs = Gatherer(load_machine(job.machine, job.sets), programs, say).of(job.point)
    made_from, chosen = checked(job, inputs), inputs.kernel
    probes = functions.Probes(job.point.count or (), job.point.begin, programs, job.point.workload, heap=not job.point.family,
                              system_calls=image.load(chosen.image).system_calls if job.point.count else None)
    append = " ".join(part for part in (APPEND, chosen.append) if part)
    config = checkpoints.configuration(inputs, append, job.point.cores, job.seed)
    log = folder / "transactions.raw" if job.point.detail == "full" else None
    timed = {**inputs.detailed, "transactions": str(log or ""), "attribution": job.attribution, "stacks": job.attribution,
             **side_by_side(job)}
    watched = [job.point.begin] if shown(job.point.begin) else [STARTS]

    def create(start: checkpoints.Start) -> engine.System:
        made = engine.create({**start.config, "detailed": timed, "markers": [*start.config["markers"], *watched]})
        if probes:
            made.watch_code(probes.text())
        return made

    start, system = checkpoints.restored(partial(checkpoints.at_prompt, config, chosen, report), create)
    guest = Guest(system, report, start.console)
    begin(guest, job.point, probes)
    namer = lines.namer(system, chosen, programs, inputs.disk.path if inputs.disk else None)
    guest.observe = namer.observe
    if described := namer.page_format():
        system.watch_pages(json.dumps(described))
    if job.what_if:
        namer.observe()
        namer.allocated(system.allocations(), probes.names)
        system.what_if(json.dumps(pages.moved(job.what_if, namer.extent)))
    measured, stats, packed, recorded = detailed(guest, job.point, log, job.record_epochs, probes, folder)
    if job.record_epochs:
        (folder / EPOCHS).write_bytes(system.epoch_record())
    guest.phase("names", 1.0)
    with no_garbage_collection():
        namer.refresh()
        namer.rings = Rings(system.rings())
        namer.allocated(system.allocations(), probes.names)
        namer.sampled(recorded.stacks)
        tables = name(namer, stats["attribution"], packed, engine.machine_roles(inputs.machine))
        del packed  # it takes gigabytes if a workload touches much memory
        kinds, states, naming = engine.machine_types(), engine.machine_states(inputs.machine), transactions.Naming(namer, tables.lines)
        if log:
            transactions.convert(log, folder / transactions.NAME, kinds, states, naming)
        hottest = lines.Hottest(tables, system.physical_of)
        notes = [*namer.notes(), *uncalled(job.point, stats, hottest)]
        episodes.write(folder, recorded.episodes, hottest.database, kinds, states, naming)
        hottest.chains = stacks.write(folder, recorded.stacks, namer, tables.lines)
        in_flight = loads.write(folder, recorded.loads, namer)
        del recorded
        namer.keep()
    notes += finish(guest, job.point, namer.running)
    clients = Results.of(guest.log.decode(errors="replace"), job.point.family).clients if job.point.family else {}
    with no_garbage_collection():
        point = document(job.point, measured, hottest, memory_stall(stats), chosen)
    if job.point.family and not point["ops"]:
        notes.append(no_operations.note(job.point.operation, clients, network_counts(system)))
    point |= {"made_from": made_from, "host_s": round(time.monotonic() - started, 3), "touched_bytes": int(system.stats()["touched_bytes"]),
              **({"transactions": transactions.NAME} if log else {}), **({"network": stats["network"]} if "network" in stats else {}),
              **({"notes": notes} if notes else {}), **({"clients": clients} if clients else {}), **prefetched(stats), **in_flight,
              **({"calls": stats["calls"]} if "calls" in stats else {}),
              "host_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10}
    return Result(point, stats, tables, guest.log, chosen.document())


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Names and tables consist of millions of objects, few of them in cycles; Python's collector would search them again and
    again."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def prefetched(stats: dict[str, Any]) -> dict[str, Any]:
    """The counts of the prefetchers, added up over the machine; nothing if there are none."""
    memory = stats.get("machine", {})
    found = {}
    for level, of, name in (("l1d", "cores", "prefetch"), ("l1i", "cores", "instruction_prefetch"), ("dram", "dram", "prefetch")):
        if counts := [part[name] for part in memory.get(of, []) if name in part]:
            found[level] = {key: sum(c[key] for c in counts) for key in counts[0]}
    return {"prefetch": found} if found else {}


def side_by_side(job: Job) -> dict[str, Any]:
    """The number of host threads for the engine's configuration. Without it, the whole machine has one event queue."""
    if job.record_epochs:
        return {"threads": 1}
    threads = job.threads
    return {"threads": threads, "threads_if_possible": True} if threads and threads > 1 else {}


def checked(job: Job, inputs: Inputs) -> dict[str, str]:
    """The digests of the point's inputs; UserError if they have changed since the start of the run, because its points would
    not be comparable."""
    found = inputs.digests()
    if job.inputs is not None and (changed := differences(job.inputs, found)):
        raise UserError(f"the run's inputs have changed since it began ({', '.join(changed)}): expected the same command again")
    return found


def uncalled(point: Point, stats: dict[str, Any], hottest: lines.Hottest) -> list[str]:
    """A sentence for each counted function or system call that was not called in the windows."""
    if not (names := [name for name, calls in stats.get("calls", {}).items() if not calls]):
        return []
    ran = functions.listed(row["waiter_function"] for row in hottest.database.rows(RAN))
    return [f"{name} was not called in the windows. Of the program's code, these functions waited for memory most: {ran}"
            for name in names]


def shown(begin: str | int | None) -> bool:
    """Whether detailed time begins at a text on the console."""
    return isinstance(begin, str) and begin != BUSY and not begin.startswith(functions.CALL)


def begin(guest: Guest, point: Point, probes: functions.Probes | None = None) -> None:
    """Runs from the prompt to the start of detailed simulation; by default, this is the workload's steady state."""
    guest.phase(f"start {point.workload}")
    if isinstance(point.begin, int) or point.begin == BUSY:
        guest.type_in(f"{SAY_STARTS}; {point.command}\n")
        guest.until_marker(STARTS, f"{point.workload} (until the shell has taken the command)")
    if isinstance(point.begin, int):
        if not guest.until_before_windows(point.begin):
            status = status_of(guest.log)
            how = f" with status {status}" if status else ""
            raise WorkloadFailed(f"{point.workload}: ended{how} before --begin {begin_text(point.begin)}: expected "
                                 f"a program that runs that long, or a shorter time\n{guest.last_words()}")
        return
    if point.begin == BUSY:
        guest.until_busy(f"{point.workload} (until all {point.cores} cores run)")
        return
    guest.type_in(point.command + "\n")
    what = f"{point.workload} (until {begin_text(point.begin)})"
    if probes and probes.begin:
        try:
            guest.until_marker(probes.begin, what)
        except (WorkloadFailed, GuestDied) as error:
            ran = probes.ran(guest.system)
            raise type(error)(f"{what}: was never called; functions of the program that ran: {ran}\n{error}") from None
        return
    guest.until_marker(point.begin or WORK_BEGINS, what)


def begin_text(begin: str | int | None) -> str:
    if isinstance(begin, int):
        return f"{begin / FS_PER_MS:g}ms"
    if begin == BUSY:
        return "all cores run"
    if begin and begin.startswith(functions.CALL):
        return f"{begin.removeprefix(functions.CALL)} is called"
    return f'the console shows "{begin}"' if begin else f"{WORK_BEGINS}, the mark of its steady state"


def name(names: columns.Names, attribution: dict[str, Any], packed: PackedRows, roles: Mapping[str, Roles] | None = None) -> columns.Tables:
    """The point's tables. Checks in every run that no stall and no spin time is lost during naming."""
    tables = columns.tables(names, packed, engine.machine_types(), roles or {})
    for column, all_cores in (("stall", "exposed"), ("spin", "spin")):
        if (total := tables.total(column)) != attribution.get(all_cores, 0):
            raise SimulatorBug(f"{column}: all lines have {total} fs, all cores {attribution.get(all_cores, 0)}")
    return tables


def detailed(guest: Guest, point: Point, log: Path | None = None,
             record_epochs: bool = False, probes: functions.Probes | None = None, folder: Path | None = None) -> Windows:
    """Runs warm-up and windows. Returns the windows, the engine's counts in them, its rows of all lines, pairs and transfers, and
    the other recorded data. If the workload ends early, only complete windows count; if it ends within the first window, this
    window counts up to the end. `log` is cut to the windows that count. Data recorded over time goes into `folder`."""
    system = guest.system
    begun = int(system.counts()["ticks"])
    length = point.warmup + point.windows * point.window

    def part(tick: int) -> float:
        return min((tick - begun) / length, 1.0)

    guest.observe()  # of a program that ends soon, this is the only observation
    system.enter_detailed()
    guest.phase("warm-up")
    at = begun + point.warmup
    if point.warmup and not guest.until_time(at, part):
        if not point.family and (status := status_of(guest.log)):
            raise WorkloadFailed(f"{point.workload}: ended with status {status} during the warm-up{guest.reason()}\n{guest.last_words()}")
        raise WorkloadFailed(f"{point.workload}: ended during the warm-up: expected a shorter --warmup\n{guest.last_words()}")
    system.reset_stats()
    if record_epochs:
        system.record_epochs()
    before, sent = windows.beginning(at, system.counts()), network_counts(system)
    called = probes.calls(system) if probes else {}
    measured: list[windows.Moment] = []
    stats: dict[str, Any] = {}
    packed: PackedRows | None = None
    recorded = Recorded(b"", b"", b"")
    logged = 0
    over_time = OverTime(guest, at, [*([LinkLoad(system)] if log else []), *([CardLoad(system)] if sent else [])] if folder else [])
    for n in range(point.windows):
        guest.phase(f"window {n + 1} of {'at most ' if point.until_error else ''}{point.windows}", part(at))
        at += point.window
        whole = over_time.until_time(at, part)
        ended = windows.host_time()
        if not whole and measured:
            break
        counts = system.counts()
        stats = json.loads(system.stats_json())
        if sent:
            stats["network"] = {name: n if name in MAXIMA else n - sent[name] for name, n in network_counts(system).items()}
        if probes and called:
            stats["calls"] = {name: n - called[name] for name, n in probes.calls(system).items()}
        logged = log.stat().st_size if log else 0
        over_time.keep()
        recorded = Recorded.by(system)
        now = windows.moment(at if whole else int(counts["ticks"]), counts, stats, ended)
        measured.append(now - before)
        if not whole or n + 1 == point.windows or windows.enough(measured, point.until_error, point.cycle):
            packed = system.attribution_rows()
            break
        system.keep_attribution()
        before = now.at(windows.host_time())
    windows.check_counted(measured, point.window)
    system.stop_stacks()  # `recorded` has them
    if log:
        os.truncate(log, logged)
    if folder:
        over_time.write(folder)
    return measured, stats, packed or system.kept_attribution_rows(), recorded


def network_counts(system: engine.System) -> dict[str, int]:
    """The network card's counts since the boot; empty without a card."""
    return {name: int(n) for name, n in system.stats().get("network", {}).items()}


def finish(guest: Guest, point: Point, running: Callable[[str], bool] = lambda program: True) -> list[str]:
    """Stops the workload and lets it check its results. Of a user's program, only the exit status is checked, if it has ended in
    the windows; `running` tells whether a process of its name runs. Returns what the user should know about the windows."""
    guest.phase("check of results", 1.0)
    if not point.family:
        if status_of(guest.log) is None and (not running(point.workload) or may_have_crashed(guest.log, point.workload)):
            guest.leave_detailed()
            guest.until_before_windows(STATUS_WITHIN)
        status = status_of(guest.log)
        if status:
            raise WorkloadFailed(f"{point.workload}: ended with status {status}{guest.reason()}\n{guest.last_words()}")
        return [] if status is None else [f"{point.workload} ended during the windows, which therefore include its exit and the shell "
                                          "after it"]
    guest.leave_detailed()
    if not guest.log.endswith(initramfs.PROMPT.encode()):
        guest.type_in(registry.STOP.decode())
        guest.until_marker(initramfs.PROMPT, f"{point.workload} (until it has checked its results)")
    console = guest.log.decode(errors="replace")
    results = Results.of(console, point.family)
    if not results.finished:
        raise WorkloadFailed(f"{point.workload}: {Results.missing(console, point.family)}{guest.reason()}\n{guest.last_words()}")
    if not results.right:
        raise WorkloadFailed(f"{point.workload}: its results are wrong{guest.reason()}\n{guest.last_words()}")
    return []


def memory_stall(stats: dict[str, Any]) -> int:
    return sum(int(core["memory"]["kernel"]) + int(core["memory"]["user"]) for core in stats["cores"])


def document(point: Point, measured: list[windows.Moment], hottest: lines.Hottest, stall: int, chosen: kernel.Kernel) -> dict[str, Any]:
    """POINT of the contracts, and additional data for reports."""
    figures = windows.summary(measured, point.cycle)
    names = hottest.names(stall)
    begin = begin_text(point.begin) if isinstance(point.begin, int) else point.begin or WORK_BEGINS
    until = {"until_error": windows.until(measured, point.until_error, point.windows, point.cycle)} if point.until_error else {}
    return {"workload": point.workload, "operation": point.operation, "kernel": point.kernel, "cores": point.cores, **figures, **until,
            "bottleneck": lines.bottleneck(figures, names), "top_lines": hottest.lines(stall),
            "top_names": names, "verified": bool(point.family), "begin": begin,
            "warmup_ms": point.warmup / FS_PER_MS, "command": point.command, "kernel_image": chosen.document()}
