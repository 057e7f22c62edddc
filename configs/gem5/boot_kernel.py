# SPDX-License-Identifier: BSD-3-Clause
"""A kernel with a workload on a machine: `gem5.opt boot_kernel.py JOB.json` (moscope/gem5/full_system.py says what JOB
has). Boots without caches or timing; where a program marks the region of interest (m5 workbegin) the machine becomes
the protocol's, the warm-up passes, and the statistics of the window are dumped."""

import os
import time

import m5
import machine_platform
import machine_system
from m5.objects import X86AtomicSimpleCPU, X86TimingSimpleCPU

CONSOLE = "system.pc.com_1.device"  # what gem5 calls the file
STEP_FS = 10**13
FS_PER_S = 10**15
LIMIT, MARK, CHECKPOINT = "simulate() limit reached", "work started", "checkpoint"

job = machine_system.job_file()
# Ruby takes accesses without timing only past its caches; these are empty until the region begins.
built = machine_system.build(job, mem_mode="atomic_noncaching")
system = built.system
machine_platform.attach(built, job)
numbers = range(job["cores"])
system.work_begin_exit_count = 1
system.boot_cpu = [machine_platform.processor(X86AtomicSimpleCPU, n) for n in numbers]
system.cpu = [machine_platform.processor(X86TimingSimpleCPU, n, switched_out=True) for n in numbers]
for cpu, sequencer in zip(system.boot_cpu, built.sequencers):
    cpu.createInterruptController()
    sequencer.connectCpuPorts(cpu)


def on_console():
    """The first of the texts to watch for that the guest has shown, or None."""
    with open(os.path.join(m5.options.outdir, CONSOLE), "rb") as file:
        shown = file.read()
    return next((text for text in job["watch"] if text.encode() in shown), None)


def executed(cpus):
    return sum(cpu.totalInsts() for cpu in cpus)


def advance(duration, cpus):
    """So long, unless something ends it before: why it ended, and the host seconds. Told from step to step."""
    began, end = time.monotonic(), m5.curTick() + duration
    while (left := end - m5.curTick()) > 0:
        cause = m5.simulate(min(left, STEP_FS)).getCause()
        took = time.monotonic() - began
        if (text := on_console()) is not None:
            return f"the console shows: {text}", took
        if cause not in (LIMIT, CHECKPOINT):
            return cause, took
        machine_system.say(f"progress: at {m5.curTick() / FS_PER_S:.3f} s, {executed(cpus)} instructions in {took:.1f} s")
    return LIMIT, time.monotonic() - began


m5.objects.Root(full_system=True, system=system)
m5.disableAllListeners()
m5.instantiate()
cause, took = advance(job["longest_fs"], system.boot_cpu)
if cause.startswith(MARK):
    machine_system.say(f"region: begins: {took:.3f} s, {executed(system.boot_cpu)} instructions")
    m5.switchCpus(system, list(zip(system.boot_cpu, system.cpu)))
    cause = LIMIT
    if job["warmup_fs"]:
        cause, took = advance(job["warmup_fs"], system.cpu)
    if cause == LIMIT:
        machine_system.say("region: window begins")
        m5.stats.reset()
        cause, took = advance(job["window_fs"], system.cpu)
m5.stats.dump()
machine_system.say(f"ended: {cause}: {took:.3f} s")
