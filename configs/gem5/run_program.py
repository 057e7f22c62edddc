# SPDX-License-Identifier: BSD-3-Clause
"""A static program in gem5's syscall emulation: `gem5.opt run_program.py JOB.json`. JOB has "program" (file and
arguments), "cwd", "cores" (in use), "warmup_fs" and "window_fs". From the region of interest on (m5 workbegin) the warm-up
passes, then the statistics of the window are dumped. Of a program without the mark nothing is measured. The program also starts on
TimingSimpleCPUs, which takes long on many cores: gem5 does not let others take over threads that a program has made."""

import m5
from m5.objects import Process, SEWorkload, X86TimingSimpleCPU

import machine_drive
import machine_system

job = machine_system.job_file()
built = machine_system.build(job)
system = built.system
machine_drive.prepare(system)
system.workload = SEWorkload.init_compatible(job["program"][0])
process = Process(pid=100, executable=job["program"][0], cmd=job["program"], cwd=job["cwd"], output="program.txt")
system.cpu = [X86TimingSimpleCPU(cpu_id=n) for n in range(job["cores"])]
for cpu, sequencer in zip(system.cpu, built.sequencers, strict=True):
    cpu.workload = process
    cpu.createInterruptController()
    cpu.createThreads()
    sequencer.connectCpuPorts(cpu)

m5.objects.Root(full_system=False, system=system)
m5.instantiate()
drive = machine_drive.Drive()
cause = drive.until(m5.MaxTick)
if cause == machine_drive.BEGINS:
    machine_system.say(f"region: begins: {drive.seconds():.3f} s")
    cause = drive.until(m5.curTick() + job["warmup_fs"])
    if cause == machine_drive.LIMIT:
        machine_system.say("region: window begins")
        m5.stats.reset()
        drive = machine_drive.Drive()
        cause = drive.until(m5.curTick() + job["window_fs"])
drive.ended(cause)
