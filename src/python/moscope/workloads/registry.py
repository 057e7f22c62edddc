# SPDX-License-Identifier: BSD-3-Clause
"""The workloads by name, with the properties that `moscope run` needs.

The program of a workload sets up and starts all its threads or processes. It marks the beginning of the region of
interest (m5 workbegin with work item 0). Then it does operations and marks each (workend, item 1) until Ctrl-C on its
terminal stops it, or until it has done as many as `--operations` says. Then it checks its work, prints its result (see
`results`), and exits with 0 if the check holds.

A file `workload.py` calls `register(__file__, Workload(...), ...)`. The results of a run depend on what it registers and
on the program, not on the text of the file: each point records the values.
"""

import importlib.util
import shlex
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from moscope import contributed, paths, readable
from moscope.errors import UserError, unknown_name
from moscope.guest.packages import Say

from . import libraries
from .build import is_built, library, library_is_built, program, silent

# The guest's folder for the programs; moscope.guest.initramfs puts files there under the names in `programs`.
GUEST_FOLDER = "/run/moscope"
INITRAMFS_FOLDER = "workloads"
# The key that stops a workload: Ctrl-C.
STOP = b"\x03"
FILE = "workload.py"

# A third of the time between two timer ticks (250 per second). Three such windows contain one tick of each kernel;
# shorter ones would contain none, or consist mostly of it.
THIRD_OF_TICK = "1334us"


@dataclass(frozen=True)
class Workload:
    name: str  # unique among all
    summary: str  # one line
    operation: str  # plural, as in "increments"
    arguments: Callable[[int], str]  # the program's arguments for a number of cores
    # Simulated times, fixed or for a number of cores: before measurement begins, and of one window.
    warmup: str | Callable[[int], str] = "200us"
    window: str | Callable[[int], str] = "500us"
    short_window: str | Callable[[int], str] | None = None  # for rough results, which need fewer operations than `window` holds
    windows: int | None = None  # default number, if the usual one does not cover the period of the work
    cycle: str | Callable[[int], str] | None = None  # the period of its work, if the windows should cover at least one
    kernels: str = "distro"  # the default of --kernel
    memory_per_node: str = "512MiB"  # at least
    most_cores: int | None = None  # more would idle
    processes: bool = False  # forks; gem5's syscall emulation runs only threads
    packages: tuple[str, ...] = ()  # of the distribution, in a root image on the disk
    image: str = ""  # a shell script in the folder that completes the root image
    steering: str | None = None  # the policy of a network card that chooses receive queues
    first_port: int | None = None  # the port that its steering `fixed-port` gives to the first core's queue
    launcher: str = ""  # the folder of the program that runs a service (see `service`), used in place of the workload's own program
    folder: Path = Path()  # of the program and of the file that registers it; set by `register`

    @property
    def family(self) -> str:
        """The name of the folder and of the program."""
        return self.folder.name

    @property
    def program(self) -> str:
        return f"{GUEST_FOLDER}/{INITRAMFS_FOLDER}/{self.launcher or self.family}"

    @property
    def image_script(self) -> str:
        """The text of the script `image`."""
        if not self.image:
            return ""
        try:
            return (self.folder / self.image).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{self.folder / self.image}: {error}: expected the shell script of workload {self.name}") from error

    def command(self, cores: int, *more: str) -> str:
        """The line to type at the guest's shell; `more` are options of the program (docs/workloads.md)."""
        name = [f"--name {shlex.quote(self.family)}"] if self.launcher else []  # the name under which the launcher prints its results
        return " ".join([shlex.quote(self.program), "--simulated", *name, self.arguments(cores), *more])


_REGISTERED: dict[str, Workload] = {}


def register(file: str, *workloads: Workload) -> None:
    """`file` is the `__file__` of the caller; its folder holds the program."""
    folder = Path(file).resolve().parent
    for w in workloads:
        other = next((o for o in _REGISTERED.values() if o.name == w.name or (o.family == folder.name and o.folder != folder)), None)
        if other:
            raise UserError(f"{file}: workload {w.name}: {other.folder / FILE} has this name: expected another")
        _REGISTERED[w.name] = replace(w, folder=folder)


def every() -> list[Workload]:
    """All workloads, by name: those of the checkout, and those of folders that `find` has loaded."""
    for file in sorted((paths.root() / "workloads").glob(f"*/{FILE}")):
        _load(file)
    return [w for _, w in sorted(_REGISTERED.items())]


def find(name: str) -> Workload:
    """A workload by name, or by folder: `../mine` if it registers one workload, `../mine:NAME` if it registers more."""
    folder, _, rest = name.partition(":")
    if "/" in folder:
        return _of_folder(Path(folder), rest)
    known = {w.name: w for w in every()}
    if name not in known:
        raise unknown_name("--workload", "workload", name, known)
    return known[name]


def programs(families: set[str] | None = None, say: Say = silent) -> dict[str, Path]:
    """The built programs of some families, or of all that `come_along`, as `extra` of moscope.guest.initramfs.build; their symbols name
    the guest's processes. Builds what is missing."""
    folders = {w.family: paths.root() / "workloads" / w.launcher if w.launcher else w.folder for w in every()}
    wanted = families if families is not None else {w.family for w in every() if come_along(w)}
    return {f"{INITRAMFS_FOLDER}/{folders[family].name}": program(folders[family].name, folders[family], say) for family in sorted(wanted)}


def along(w: Workload, say: Say = silent) -> dict[str, Path]:
    """The files that the guest needs for this workload, in addition to those that every run has."""
    return programs({w.family}, say) | (files(w) if w.launcher else {})


def elsewhere(w: Workload) -> bool:
    """Whether its folder is outside the checkout."""
    return w.folder.parent != (paths.root() / "workloads").resolve()


def come_along(w: Workload) -> bool:
    """Whether each initial file system has the program. A service's launcher, and a program that links a package's library, are
    only in those of runs that measure them, so that other runs have an unchanged guest and need no package. The same holds for
    the user's own programs."""
    return not w.launcher and not libraries.named(w.folder) and not elsewhere(w)


def are_built(family: str) -> bool:
    """Whether `programs` and `files` build nothing for a workload of this family (of any, if it is none's)."""
    mine = {w.family: w for w in every() if come_along(w) or w.family == family}
    folders = [paths.root() / "workloads" / w.launcher if w.launcher else w.folder for w in mine.values()]
    sources = [p for w in mine.values() if w.launcher for p in w.folder.glob("*.c")]
    return all(is_built(f.name, f) for f in folders) and all(library_is_built(s) for s in sources)


def files(w: Workload) -> dict[str, Path]:
    """Further files in a service's folder, by their names in the guest: configuration, and each C file as a shared library."""
    here = [p for p in sorted(w.folder.iterdir()) if p.is_file() and p.name not in (FILE, w.image)]
    built = [library(p) if p.suffix == ".c" else p for p in here]
    return {f"{INITRAMFS_FOLDER}/{w.family}/{p.name}": p for p in built}


def _of_folder(folder: Path, name: str) -> Workload:
    if why := readable.fault(folder / FILE):
        raise UserError(f"--workload: {folder}: {FILE}: {why}: expected the folder of a workload (docs/extending/workload.md)")
    file = folder.resolve() / FILE
    every()  # loads the checkout's own workloads, so that their names are taken
    _load(file)
    own = {w.name: w for w in _REGISTERED.values() if w.folder == file.parent}
    if name in own or (not name and len(own) == 1):
        return own[name] if name else next(iter(own.values()))
    right = " or ".join(f"{folder}:{n}" for n in sorted(own)) or f"a {FILE} that registers one"
    raise UserError(f"--workload: {folder}{':' if name else ''}{name}: registers {len(own)} workloads: expected {right}")


def _load(file: Path) -> None:
    """Executes a registration file, once."""
    module_name = f"moscope_workloads.{file.parent}"
    if module_name in sys.modules:
        return
    spec = importlib.util.spec_from_file_location(module_name, file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        del sys.modules[module_name]
        if isinstance(error, UserError) or contributed.elsewhere(file, error):
            raise
        raise contributed.fault(file, error, "calls of moscope.workloads.register") from error
