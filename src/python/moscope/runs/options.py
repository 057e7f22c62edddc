# SPDX-License-Identifier: BSD-3-Clause
"""From the options of `moscope run` to the points to measure. All errors in options are found here.

A `Point` has all options that determine its result, as plain data. It is sent to the process that measures it, and written to
`run.json`, which distinguishes a start with other options from one that resumes.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moscope.boot import plan
from moscope.cli import Shared
from moscope.config import Machine, load_machine
from moscope.config.machine import replace
from moscope.errors import UserError, unknown_name
from moscope.guest import kernel
from moscope.runs import functions, own_program
from moscope.runs.own_program import WORK_BEGINS, OwnProgram
from moscope.runs.point_name import point_name
from moscope.runs.statistics.confidence import FEWEST_BATCHES
from moscope.schema.constants import FS_PER_MS
from moscope.schema.errors import ConfigError
from moscope.schema.units import Size, Time

if TYPE_CHECKING:
    from moscope.workloads import Workload

DEFAULT_OUT = Path("moscope-out/run")
DEFAULT_CORES = "1,12,24,36,48"
DEFAULT_WORKLOAD = "exim"
DEFAULT_WINDOWS = 3
MOST_WINDOWS_UNTIL_ERROR = 50  # the limit with --until-error but without --windows
DETAILS = ("table", "full")
# --window short: the workload's window for rough results.
SHORT, SHORTER = "short", 3
# --begin threads: begin when all cores in use run.
BUSY = "threads"
MOST_THREADS = 64
MEMORY = "memory_per_node"  # the key of --set for memory
# Kernel addresses that are the same at each boot, so that those of two runs can be compared.
APPEND = f"{plan.COMMAND_LINE} nokaslr"
TIMES = ("warmup", "window", "begin", "cycle")  # of a point, in femtoseconds


@dataclass(frozen=True, kw_only=True)
class Point:
    """One workload on one kernel at one core count."""

    workload: str
    family: str  # whose name its results carry
    operation: str
    kernel: str
    cores: int
    command: str
    warmup: int
    window: int
    windows: int
    detail: str
    memory_per_node: str
    begin: str | int | None = None  # start of detailed time: a marker, a time after the workload's start, None: its own marker
    packages: str | None = None  # packages of the distribution in the root image, separated by commas
    steering: str | None = None  # of a network card
    image: str | None = None  # shell script that completes the root image
    until_error: float | None = None  # standard error of throughput, as a fraction, that ends the windows; at most `windows`
    cycle: int | None = None  # the period of the work, if it has one
    count: list[str] | None = None  # functions whose calls are the operations; None: the program marks operations
    first_port: int | None = None  # first port of the service, for a network card that chooses receive queues by port

    @property
    def name(self) -> str:
        """The name of its folder."""
        return point_name(self.workload, self.kernel, self.cores)


@dataclass(frozen=True)
class Plan:
    machine: Machine
    machine_option: str
    sets: list[str]
    seed: int
    out: Path
    points: list[Point]
    programs: dict[str, Path] = field(default_factory=dict)
    threads: int | None = None
    own: own_program.Asked | None = None  # the user's own program
    folders: dict[str, str] = field(default_factory=dict)  # folders of workloads outside the checkout, by name

    def processes(self) -> dict[str, str]:
        """Records that chips are separate logical processes. Some times in the results then differ from a run with one process
        (docs/architecture.md)."""
        return {"processes": "several"} if (self.threads or 1) > 1 else {}

    def identity(self) -> dict[str, Any]:
        """The options that must be equal for a run to resume in its directory."""
        return {"machine": self.machine_option, "set": self.sets, "seed": self.seed, **self.processes(),
                "points": [{k: v for k, v in asdict(p).items() if v is not None} for p in self.points]}


@dataclass(frozen=True, kw_only=True)
class Options:
    """The command's own options; None if the user did not give one."""

    workload: str | None = None
    kernel: str | None = None
    cores: str | None = None
    warmup: str | None = None
    window: str | None = None
    windows: int | None = None
    detail: str = "table"
    memory_per_node: str | None = None
    begin: str | None = None
    program: str | None = None
    threads: int | None = None
    until_error: str | None = None
    packages: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    stdin: str | None = None
    take: str | None = None
    count: tuple[str, ...] = ()


def make(shared: Shared, options: Options, *, build: bool = True, guest: bool = True) -> Plan:
    """Checks the options; builds the workloads' programs, unless `build` is false. `guest`: the points run an operating system, on
    which the machine's firmware tables set limits."""
    from moscope import workloads

    if options.detail not in DETAILS:
        raise unknown_name("--detail", "detail", options.detail, DETAILS)
    machine = load_machine(shared.machine, shared.sets)
    if guest:
        plan.check_guests(machine, shared)
    counts = core_list(default_cores(machine) if options.cores is None else options.cores, machine)
    until_error = given_error(options.until_error)
    windows = options.windows if options.windows is not None else MOST_WINDOWS_UNTIL_ERROR if until_error else None
    if windows is not None and not 1 <= windows <= 1000:
        raise UserError(f"--windows: {windows}: expected 1 to 1000")
    if until_error and windows is not None and windows < FEWEST_BATCHES:
        raise UserError(f"--windows: {windows}: expected {FEWEST_BATCHES} or more with --until-error, because fewer give no standard error")
    if options.threads is not None and not 1 <= options.threads <= MOST_THREADS:
        raise UserError(f"--threads: {options.threads}: expected 1 to {MOST_THREADS}")
    short = options.window == SHORT
    warmup, window = given_time("--warmup", options.warmup, 0), None if short else given_time("--window", options.window, 1)
    given_memory = memory_of(machine, options, shared.sets)
    begin = beginning(options.begin)
    points, programs, folders = [], dict[str, Path](), dict[str, str]()
    own = asked(options)
    for work in chosen_workloads(options, shared.say):
        if isinstance(work, OwnProgram):
            programs |= work.along
            functions.Probes(options.count, begin, work.along, work.name)
        elif build:
            programs |= workloads.along(work, shared.say)
        if not isinstance(work, OwnProgram) and workloads.elsewhere(work):
            folders[work.name] = str(work.folder)
        memory = given_memory or work.memory_per_node
        if isinstance(work, OwnProgram):
            own_program.check_memory(work, sized(machine, memory))
        for system in kernels(work.kernels if options.kernel is None else options.kernel):
            for n in _sensible(counts, work, options):
                length = window_of(work, n, short) if window is None else window
                points.append(Point(
                    workload=work.name, family=work.family, operation=operation(work, options), kernel=system, cores=n,
                    command=work.command(n), warmup=default_time(work.warmup, n) if warmup is None else warmup, window=length,
                    windows=windows or windows_of(work, n, length), detail=options.detail, memory_per_node=memory, begin=begin,
                    packages=",".join(work.packages) or None, steering=work.steering, image=work.image_script or None,
                    until_error=until_error, cycle=cycle_of(work, n, length, windows if until_error else None),
                    count=list(options.count) or None, first_port=work.first_port))
    if alike := [p for p in points if sum(p.name == other.name for other in points) > 1]:
        raise UserError(f"--kernel: {' and '.join(dict.fromkeys(p.kernel for p in alike))} would write their results into the same folder, "
                        f"{alike[0].name}: expected files whose paths differ in more than / and _")
    if isinstance(begin, str) and begin != BUSY and not begin.startswith(functions.CALL) and any(begin in p.command for p in points):
        raise UserError(f'--begin: "{begin}": is also in the command, which the console echoes first: expected text that appears only in '
                        "the output")
    return Plan(machine, shared.machine, list(shared.sets), shared.seed, shared.out or DEFAULT_OUT, points,
                {**(workloads.programs(say=shared.say) if build else {}), **programs}, options.threads, own, folders)


def asked(options: Options) -> own_program.Asked | None:
    """What the user's own program is, and what goes along with it."""
    if options.program is None:
        if options.begin and options.begin.startswith(functions.CALL):
            raise UserError(f"--begin: {options.begin}: applies only to a program of your own: expected --program, too")
        given = {"--count": options.count, "--with": options.packages, "--env": options.variables, "--stdin": options.stdin,
                 "--take": options.take}
        for name, value in given.items():
            if value:
                raise UserError(f"{name}: applies only to a program of your own: expected --program, too")
        return None
    return own_program.Asked(options.program, options.packages, options.variables, options.stdin, options.take)


def chosen_workloads(options: Options, say: Callable[[str], None] = print) -> list["Workload"]:
    from moscope import workloads

    own = asked(options)
    if own is None:
        wanted = DEFAULT_WORKLOAD if options.workload is None else options.workload
        return [workloads.find(name) for name in names("--workload", wanted)]
    if options.workload is not None:
        raise UserError("--program: --workload is given too: expected one of the two")
    return [own_program.parse(own, options.begin in (None, WORK_BEGINS), say)]


def operation(work: "Workload", options: Options) -> str:
    return f"calls of {' and '.join(options.count)}" if options.count else work.operation


def beginning(text: str | None) -> str | int | None:
    """A time such as `250ms` becomes femtoseconds; a text that does not begin like a number is a marker. (`-5ms` as a marker
    would never appear.)"""
    if text is None or text == WORK_BEGINS:
        return None
    if re.match(r"[+-]?[.]?[0-9]", text):
        return given_time("--begin", text, 0)
    if not (text.isascii() and text.isprintable() and text.strip()):
        raise UserError(f"--begin: {text!r}: expected a time such as 250ms, {WORK_BEGINS}, or text that the console shows")
    if text == functions.CALL:
        raise UserError(f"--begin: {text}: expected call: and the name of a function")
    return text


def _sensible(counts: list[int], work: "Workload", options: Options) -> list[int]:
    """The default core counts that the workload can use; core counts given by the user are all kept."""
    if options.cores or work.most_cores is None:
        return counts
    return [n for n in counts if n <= work.most_cores] or counts[:1]


def windows_of(work: "Workload", cores: int, window: int) -> int:
    """The default number of windows of this length."""
    usual = work.windows or DEFAULT_WINDOWS
    return max(usual, math.ceil(default_time(work.cycle, cores) / window)) if work.cycle else usual


def cycle_of(work: "Workload", cores: int, window: int, windows: int | None) -> int | None:
    """The period of the work, None without one. UserError if this many windows do not cover one period."""
    if not work.cycle:
        return None
    cycle = default_time(work.cycle, cores)
    if windows is not None and windows * window < cycle:
        raise UserError(f"--windows: {windows}: expected {math.ceil(2 * cycle / window)} or more with --until-error, because the work of "
                        f"{work.name} repeats every {cycle / FS_PER_MS:g} ms on {cores} core{'s' * (cores > 1)}")
    return cycle


def window_of(work: "Workload", cores: int, short: bool) -> int:
    """The workload's window. If the workload does not give a short one, it is a third of the ordinary window."""
    if short and work.short_window:
        return default_time(work.short_window, cores)
    return default_time(work.window, cores) // (SHORTER if short else 1)


def default_time(text: str | Callable[[int], str], cores: int) -> int:
    """The workload's default, which may depend on the number of cores."""
    return Time(text if isinstance(text, str) else text(cores)).fs


def one_point(command: str, options: Options) -> None:
    """Raises UserError if a command that measures one point is given several."""
    for option, text in (("--workload", options.workload), ("--cores", options.cores)):
        if text is not None and len(parts := names(option, text)) > 1:
            raise UserError(f"{option}: {command} takes one, not {len(parts)}: expected one, such as {parts[0]}")


def default_cores(machine: Machine, counts: str = DEFAULT_CORES) -> str:
    """Those of the default core counts that the machine has. A machine with fewer cores than the largest of them also gets its own
    number of cores."""
    usual = [int(n) for n in counts.split(",")]
    return ",".join(map(str, [*(n for n in usual[:-1] if n < machine.cores), min(machine.cores, usual[-1])]))


def core_list(text: str, machine: Machine) -> list[int]:
    """Core counts such as `1,12,24,48`: at most the number of cores of the machine, each count once."""
    right = f"expected numbers from 1 to {machine.cores}, as in {default_cores(machine)}"
    counts = []
    for part in text.split(","):
        if not part.strip().isascii() or not part.strip().isdigit() or len(part.strip()) > 6:
            raise UserError(f'--cores: "{part.strip()}" is not a number of cores: {right}')
        count = int(part)
        if not 1 <= count <= machine.cores:
            raise UserError(f"--cores: {count}: {right} for {machine.name}")
        if count in counts:
            raise UserError(f"--cores: {count} appears twice: expected each number once")
        counts.append(count)
    return counts


def names(option: str, text: str) -> list[str]:
    found = [part.strip() for part in text.split(",")]
    for name in found:
        if not name:
            raise UserError(f'{option}: "{text}" has an empty name in it: expected names separated by single commas')
        if found.count(name) > 1:
            raise UserError(f"{option}: {name} appears twice: expected each name once")
    return found


def kernels(text: str) -> list[str]:
    """Splits a list of kernels. `stock,stock+7,14,pk@split` names three: a number belongs to the mix before it."""
    return [kernel.check_name(name.replace(";", ",")) for name in names("--kernel", re.sub(r"(?<=[0-9]),(?=[0-9]+([,@]|$))", ";", text))]


def given_time(option: str, text: str | None, least: int) -> int | None:
    if text is None:
        return None
    try:
        fs = Time(text, option).fs
    except ConfigError as error:
        raise error.at(option) from None
    if fs < least or fs > 10**18:
        raise UserError(f"{option}: {text}: expected {'more than 0 and ' if least else ''}at most 1000s")
    return fs


def time_text(fs: int) -> str:
    """A time as it is written in an option, in the largest unit that gives a whole number: 1ms, 1500us."""
    unit, size = next((unit, int(size)) for unit, size in reversed(Time.units.items()) if fs % int(size) == 0)
    return f"{fs // size}{unit}"


def given_error(text: str | None) -> float | None:
    """`3%` as a fraction."""
    if text is None:
        return None
    match = re.fullmatch(r"\s*(\d{1,3}(?:\.\d{1,6})?)\s*%\s*", text)
    value = float(match[1]) / 100 if match else 0.0
    if not 0 < value <= 0.5:
        raise UserError(f"--until-error: {text}: expected more than 0% and at most 50%, such as 3%")
    return value


def memory_of(machine: Machine, options: Options, sets: Sequence[str]) -> str | None:
    """The memory per node that --memory-per-node or --set gives; None: that of the workload."""
    by_set = next((text for text in reversed(sets) if text.partition("=")[0].strip() == MEMORY), None)
    if by_set and options.memory_per_node is not None:
        raise UserError(f"--memory-per-node: --set {by_set:.80} is given too: expected one of the two")
    given = str(machine.memory_per_node) if by_set else options.memory_per_node
    if given is not None:
        from moscope import _engine

        size = sized(machine, given).memory_per_node.bytes
        least, step = _engine.GUEST_LIMITS["memory_per_node"], _engine.GUEST_LIMITS["memory_step"]
        if size < least or size % step:
            raise UserError(f"{f'--set {by_set:.80}' if by_set else f'--memory-per-node: {given}'}: expected {least >> 20}MiB or more, "
                            f"a multiple of {step >> 20}MiB")
    return given


def sized(machine: Machine, memory_per_node: str) -> Machine:
    """The machine with another memory size."""
    try:
        changed: Machine = replace(machine, memory_per_node=Size(memory_per_node, "--memory-per-node")).validate()
    except ConfigError as error:
        raise error.at("--memory-per-node") from None
    return changed
