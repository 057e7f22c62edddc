# SPDX-License-Identifier: BSD-3-Clause
"""A kernel with a workload on a machine: `gem5.opt boot_kernel.py JOB.json` (moscope/gem5/full_system.py says what JOB
has). Boots without caches or timing; where a program marks the region of interest (m5 workbegin) the machine becomes
the protocol's, the warm-up passes, and the statistics of the window are dumped."""

import os

import m5
from m5.objects import X86AtomicSimpleCPU, X86TimingSimpleCPU

import machine_drive
import machine_platform
import machine_system

CONSOLE = "system.pc.com_1.device"  # what gem5 calls the file
STEP_FS = 10**13

job = machine_system.job_file()
# Ruby takes accesses without timing only past its caches; these are empty until the region begins.
built = machine_system.build(job, mem_mode="atomic_noncaching")
system = built.system
machine_drive.prepare(system)
machine_platform.attach(built, job)
numbers = range(job["cores"])
system.boot_cpu = [machine_platform.processor(X86AtomicSimpleCPU, n, simulate_inst_stalls=True) for n in numbers]
system.cpu = [machine_platform.processor(X86TimingSimpleCPU, n, switched_out=True) for n in numbers]
for cpu, sequencer in zip(system.boot_cpu, built.sequencers, strict=True):
    cpu.createInterruptController()
    sequencer.connectCpuPorts(cpu)
    machine_platform.slow_down(cpu, machine_system.period_of(job["machine"]["clocks"]["core"]))


def executed(cpus):
    return sum(cpu.totalInsts() for cpu in cpus)


def watch(cpus):
    """Tells how far it is, and of the texts to watch for the first that the guest has shown."""
    seconds = m5.curTick() / machine_system.FS_PER_S
    machine_system.say(f"progress: at {seconds:.3f} s, {executed(cpus)} instructions in {drive.seconds():.1f} s")
    with open(os.path.join(m5.options.outdir, CONSOLE), "rb") as file:
        shown = file.read()
    return next((f"the console shows: {text}" for text in job["watch"] if text.encode() in shown), None)


def advance(cpus, duration):
    """So long, unless something ends it before."""
    return drive.until(m5.curTick() + duration, STEP_FS, lambda: watch(cpus))


m5.objects.Root(full_system=True, system=system)
m5.disableAllListeners()
m5.instantiate()
drive = machine_drive.Drive()
cause = advance(system.boot_cpu, job["longest_fs"])
if cause == machine_drive.BEGINS:
    machine_system.say(f"region: begins: {drive.seconds():.3f} s, {executed(system.boot_cpu)} instructions")
    for cpu in system.boot_cpu:
        machine_platform.speed_up(cpu)
    m5.switchCpus(system, list(zip(system.boot_cpu, system.cpu, strict=True)))
    cause = advance(system.cpu, job["warmup_fs"])
    if cause == machine_drive.LIMIT:
        machine_system.say("region: window begins")
        m5.stats.reset()
        drive = machine_drive.Drive()
        cause = advance(system.cpu, job["window_fs"])
drive.ended(cause)
