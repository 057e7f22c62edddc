# SPDX-License-Identifier: BSD-3-Clause
"""QEMU as the reference for tests and times of boots. It has the kernel, initial file system, number of cores,
nodes and distances of a machine description, and uses its single-threaded translator.
"""

import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from moscope.errors import UserError

PROGRAM = "qemu-system-x86_64"
PACKAGE = "qemu-system-x86"
# The nearest processor that QEMU knows (family 10h), renamed to what the machine's cores report.
CPU = "phenom,model=8,stepping=0,model-id=Six-Core AMD Opteron(tm) Processor 8431"


@dataclass(frozen=True)
class Guest:
    """What is booted. `distances` is the table of the nodes (10 on the diagonal), `node_cores` the cores of each."""

    kernel: Path
    initrd: Path
    append: str
    node_cores: Sequence[int]
    distances: Sequence[Sequence[int]]
    memory_per_node: int
    disk: Path | None = None


@dataclass(frozen=True)
class Finished:
    """`lines` are pairs of host seconds since the start and a console line; `status` is None after a timeout."""

    console: str
    host_s: float
    status: int | None
    lines: list[tuple[float, str]]


def ensure(say: Callable[[str], None]) -> None:
    """Installs QEMU if it is missing and this user may install packages; otherwise a UserError names the command for an
    administrator."""
    if shutil.which(PROGRAM) is None and shutil.which("apt-get") and os.geteuid() == 0:
        say(f"installing the distribution's package {PACKAGE}")
        env = {**os.environ, "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
        for line in (["update"], ["install", "-y", "--no-install-recommends", PACKAGE]):
            subprocess.run(["apt-get", "-o", "DPkg::Lock::Timeout=600", "-q", *line], env=env, check=False,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    program()


def program() -> str:
    found = shutil.which(PROGRAM)
    if found is None:
        raise UserError(f"{PROGRAM}: is not installed: expected the package {PACKAGE} (apt-get install --no-install-recommends "
                        f"{PACKAGE})")
    return found


def command(guest: Guest) -> list[str]:
    """The command line; node and core numbers are those of the machine."""
    cores, nodes = sum(guest.node_cores), len(guest.node_cores)
    mib = guest.memory_per_node >> 20
    line = [program(), "-accel", "tcg,thread=single", "-machine", "q35", "-cpu", CPU, "-smp", f"{cores},sockets={cores}",
            "-m", f"{mib * nodes}M", "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
            "-kernel", str(guest.kernel), "-initrd", str(guest.initrd), "-append", guest.append,
            "-device", "virtio-rng-pci"]
    first = 0
    for node, count in enumerate(guest.node_cores):
        cpus = f",cpus={first}-{first + count - 1}" if count else ""
        line += ["-object", f"memory-backend-ram,id=m{node},size={mib}M", "-numa", f"node,nodeid={node},memdev=m{node}{cpus}"]
        first += count
    for a, row in enumerate(guest.distances):
        for b, distance in enumerate(row):
            if a != b:
                line += ["-numa", f"dist,src={a},dst={b},val={distance}"]
    if guest.disk:
        line += ["-drive", f"file={guest.disk},format=raw,if=none,id=d0,snapshot=on", "-device", "virtio-blk-pci,drive=d0"]
    return line


def run(guest: Guest, timeout_s: float, heard: Callable[[str], None] = lambda line: None) -> Finished:
    """Boots the guest until it powers off or the time is up; `heard` gets each console line as it comes."""
    started = time.monotonic()
    process = subprocess.Popen(command(guest), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    timer = threading.Timer(timeout_s, process.kill)
    timer.start()
    lines: list[tuple[float, str]] = []
    try:
        for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip("\r\n")
            lines.append((time.monotonic() - started, line))
            heard(line)
        status: int | None = process.wait()
        timed_out = not timer.is_alive()
    finally:
        timer.cancel()
        process.kill()
        process.wait()
    host_s = time.monotonic() - started
    if status and not timed_out and not lines:
        words = process.stderr.read().decode(errors="replace").strip().splitlines() or ["no message"]
        raise UserError(f"{PROGRAM}: ended with {status} ({words[-1]}): expected version 7.2 or later")
    return Finished("\n".join(line for _, line in lines), host_s, None if timed_out else status, lines)
