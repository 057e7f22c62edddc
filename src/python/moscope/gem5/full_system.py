# SPDX-License-Identifier: BSD-3-Clause
"""Workloads of `moscope run` on gem5 with a kernel: the kernel, the initial file system and the programs that the
embedded engine boots, on gem5's PC with the machine's nodes (configs/gem5/boot_kernel.py).

The gem5 machine has all caches and homes, but only the cores in use. gem5 cannot unpack a bzImage and does not
support initial file systems. It therefore gets the ELF kernel from inside the bzImage, and the data that a boot
loader would have written."""

import json
import tempfile
from pathlib import Path
from typing import Any

from moscope import buildproto, config
from moscope.boot import plan as booting
from moscope.boot.session import tail
from moscope.config import Machine
from moscope.errors import GuestDied, UserError, WorkloadFailed
from moscope.gem5 import binary, figures, firmware, job
from moscope.guest import initramfs, kernel
from moscope.naming import elf, image
from moscope.runs.guest import LONGEST_S
from moscope.runs.options import APPEND, Plan, Point, sized
from moscope.schema.constants import FS_PER_S

CONSOLE, GEM5_CONSOLE = "console.txt", "system.pc.com_1.device"
# The number of characters that gem5's loader has room for.
LONGEST_COMMAND_LINE = 511
KERNEL_HZ = 250  # ticks per second of Debian's kernels and of ours


def command_line(machine: Machine, append: str) -> str:
    """The embedded engine's command line, plus results of measurements and waits that would take a kernel tens of millions of
    instructions on gem5: the speed of the time-stamp counter and of delay loops, that all cores have the same time, that the
    timer ticks, and that processors start without a delay."""
    hertz = machine.core_clock.hertz
    known = f"tsc_early_khz={round(hertz / 1000)} lpj={round(hertz / KERNEL_HZ)} tsc=reliable no_timer_check cpu_init_udelay=0"
    text = " ".join(part for part in (APPEND, known, append) if part)
    if len(text) > LONGEST_COMMAND_LINE:
        raise UserError(f"kernel parameters: {text}: are {len(text)} characters: expected at most {LONGEST_COMMAND_LINE} on gem5")
    return text


def vmlinux(chosen: kernel.Kernel, folder: Path) -> tuple[Path, int]:
    """The ELF kernel as a file, and the end of the kernel in memory."""
    if not chosen.is_linux:
        raise UserError(f"--kernel: {chosen.image} is not a Linux kernel: expected one on gem5")
    content = image.payload(chosen.image.read_bytes(), str(chosen.image))
    try:
        end = max(s.physical + s.size for s in elf.Elf(content).segments)
    except (elf.NotElf, ValueError) as error:
        raise UserError(f"{chosen.image}: {error}: expected a Linux kernel for x86-64") from error
    path = folder / "vmlinux"
    path.write_bytes(content)
    return path, end


def loads(point: Point, machine: Machine, nodes: list[dict[str, Any]], root: Path, kernel_end: int, folder: Path) -> list[dict[str, Any]]:
    """Files with their addresses in memory: tables, the loader's fields, the initial file system."""
    size = root.stat().st_size
    initrd = firmware.initrd_address(size, nodes, kernel_end)
    processors = firmware.Processors(point.cores, int(machine.cores_per_chip))
    parts = (("tables", firmware.tables(processors, nodes, machine.hops()), firmware.TABLES),
             ("loader", firmware.loader_fields(initrd, size), firmware.BOOT_PARAMETERS + firmware.LOADER_TYPE))
    for name, content, _ in parts:
        (folder / name).write_bytes(content)
    return [*({"file": str(folder / name), "address": at} for name, _, at in parts), {"file": str(root), "address": initrd}]


def measure(gem5: binary.Gem5, plan: Plan, point: Point, folder: Path) -> dict[str, Any]:
    """Measures one point. `folder` gets gem5's own output and statistics, the console, and the point."""
    machine = sized(plan.machine, point.memory_per_node)
    built = buildproto.ensure_protocol(str(machine.protocol))
    interface = json.loads(built.interface.read_text(encoding="utf-8"))
    description = config.elaborate(machine, interface)
    description["address_map"] = nodes = firmware.around_hole(description["address_map"])
    chosen = kernel.find(point.kernel, lambda _: None)
    with tempfile.TemporaryDirectory(prefix="moscope-gem5-") as name:
        place = Path(name)
        (place / "script").write_text(f"{point.command}\n", encoding="utf-8")
        root = initramfs.build(chosen, lambda _: None, place / "script", plan.programs)
        binary_kernel, end = vmlinux(chosen, place)
        path = job.write_job(
            folder, description, interface, kernel=str(binary_kernel), command_line=command_line(machine, chosen.append),
            loads=loads(point, machine, nodes, root.path, end, place), memory=firmware.memory_map(nodes),
            boot_parameters=firmware.BOOT_PARAMETERS, io_apic=firmware.Processors(point.cores, 1).io_apic, cores=point.cores,
            warmup_fs=point.warmup, window_fs=point.window, watch=[booting.PANIC, initramfs.SCRIPT_ENDED],
            longest_fs=LONGEST_S * FS_PER_S)
        try:
            ran = binary.run(gem5, "boot_kernel.py", [str(path)], folder)
        finally:
            console = keep_console(folder)
    check(point, ran, ran.ending()[0], console)
    document = figures.document(point, figures.window(folder, point.cores, ran), float(machine.core_clock.period), point.kernel,
                                point.command)
    return document | {"kernel_image": chosen.document()}


def keep_console(folder: Path) -> bytes:
    """Stores the guest's console output under its name in a run directory, and returns it."""
    left = folder / GEM5_CONSOLE
    if left.exists():
        left.rename(folder / CONSOLE)
    return (folder / CONSOLE).read_bytes() if (folder / CONSOLE).exists() else b""


def check(point: Point, ran: binary.Ran, ending: str, console: bytes) -> None:
    """Raises an error if the guest ended too early. A workload that ends within its window only shortens the window."""
    words = f"{point.workload}: {ending}\n--- the console's last lines\n{tail(console)}"
    if booting.PANIC in ending:
        raise GuestDied(f"kernel panic on gem5: {words}")
    if ran.says(figures.WINDOW_BEGINS):
        return
    begun = ran.says(figures.REGION_BEGINS)
    if initramfs.SCRIPT_ENDED in ending or begun:
        raise WorkloadFailed(f"ended before its {'window' if begun else 'region of interest'} on gem5: {words}")
    raise GuestDied(f"no sign of the workload in {LONGEST_S} s of simulated time on gem5: {words}")
