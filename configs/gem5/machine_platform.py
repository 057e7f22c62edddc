# SPDX-License-Identifier: BSD-3-Clause
"""The PC around a machine that boots a kernel: gem5's south bridge, serial port and I/O bus, and its loader; run by
gem5. What firmware and boot loader would have left in memory comes in files (moscope/gem5/firmware.py makes them)."""

from m5.objects import X86ISA, Bridge, IOXBar, Pc, X86E820Entry, X86FsLinux
from m5.params import NULL

import machine_system

# Where gem5's loader begins the structure of the boot protocol; the files' addresses count on it.
BOOT_PARAMETERS = 0x90200
CPUID_FEATURES, CPUID_POWER = "FamilyModelStepping", "APMInfo"
EBX, EDX, ECX = 1, 2, 3  # in gem5's order of registers
APIC_ID_SHIFT = 24
MONITOR = 1 << 3
INVARIANT_TSC = 1 << 8
FETCH_CYCLES = 40  # for each fetch before the region of interest


def attach(built, job):
    """Devices and buses for the cores in use, and the kernel to load."""
    system = built.system
    system.pc = Pc()
    system.iobus = IOXBar()
    system.pc.attachIO(system.iobus)
    system.pc.south_bridge.io_apic.apic_id = job["io_apic"]
    for sequencer in built.sequencers[: job["cores"]]:
        sequencer.connectIOPorts(system.iobus)
    if job["boot_parameters"] != BOOT_PARAMETERS:
        machine_system.stop(f"boot parameters at {job['boot_parameters']:#x}: {BOOT_PARAMETERS:#x}, where gem5 24 has them")
    system.workload = X86FsLinux(
        object_file=job["kernel"],
        command_line=job["command_line"],
        extras=[loaded["file"] for loaded in job["loads"]],
        extras_addrs=[loaded["address"] for loaded in job["loads"]],
        acpi_description_table_pointer=NULL,
    )
    system.workload.e820_table.entries = [
        X86E820Entry(addr=part["base"], size=f"{part['bytes']}B", range_type=part["kind"]) for part in job["memory"]
    ]


def with_changed(isa, name, register, change):
    """A CPUID function of gem5's own with one register changed."""
    values = [int(value) for value in getattr(isa, name)]
    values[register] = change(values[register])
    setattr(isa, name, values)


def processor(kind, number, **parameters):
    """A core as firmware numbers it. CPUID reports a time-stamp counter of constant rate, as gem5's are; otherwise a
    kernel takes those of several cores for unsynchronised. CPUID reports no MONITOR and MWAIT: Ruby does not wake a core
    for another core's write, so an idle kernel would not be woken."""
    isa = X86ISA()
    with_changed(isa, CPUID_FEATURES, EBX, lambda old: old | number << APIC_ID_SHIFT)
    with_changed(isa, CPUID_FEATURES, ECX, lambda old: old & ~MONITOR)
    with_changed(isa, CPUID_POWER, EDX, lambda old: old | INVARIANT_TSC)
    made = kind(cpu_id=number, isa=[isa], **parameters)
    made.createThreads()
    return made


def slow_down(cpu, period):
    """Delays each fetch of a connected core without timing. A kernel calibrates its timers with loops of some tenths of a second,
    core by core; the delay reduces the number of iterations."""
    cpu.slow_fetch = Bridge(delay=f"{round(FETCH_CYCLES * period)}fs")
    cpu.icache_port.splice(cpu.slow_fetch.cpu_side_port, cpu.slow_fetch.mem_side_port)


def speed_up(cpu):
    """Takes the bridge out again while nothing is under way, so that the core that takes over has a port of the sequencer's."""
    behind = cpu.slow_fetch.mem_side_port.peer
    sequencer_port = behind.simobj.getCCObject().getPort(behind.name, behind.index)
    cpu.getCCObject().getPort(cpu.icache_port.name, cpu.icache_port.index).bind(sequencer_port)
