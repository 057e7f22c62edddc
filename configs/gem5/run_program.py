# SPDX-License-Identifier: BSD-3-Clause
"""A static program in gem5's syscall emulation: `gem5.opt run_program.py JOB.json`. JOB has "program" (file and
arguments), "cores", "warmup_fs" and "window_fs". From the region of interest on (m5 workbegin) the warm-up passes, then
the statistics of the window are dumped. A program without the mark is measured from its start to its end."""

import time

import m5
import machine_system
from m5.objects import Process, SEWorkload, X86TimingSimpleCPU

job = machine_system.job_file()
built = machine_system.build(job)
system = built.system
system.work_begin_exit_count = 1
system.workload = SEWorkload.init_compatible(job["program"][0])
process = Process(pid=100, executable=job["program"][0], cmd=job["program"], cwd=job["cwd"], output="program.txt")
system.cpu = [X86TimingSimpleCPU(cpu_id=n) for n in range(job["machine"]["cores"])]
for cpu, sequencer in zip(system.cpu, built.sequencers):
    cpu.workload = process
    cpu.createInterruptController()
    cpu.createThreads()
    sequencer.connectCpuPorts(cpu)

m5.objects.Root(full_system=False, system=system)
m5.instantiate()
began = time.monotonic()
end = m5.simulate()
if end.getCause().startswith("work started"):
    machine_system.say(f"region: begins: {time.monotonic() - began:.3f} s")
    if job["warmup_fs"]:
        m5.simulate(job["warmup_fs"])
    m5.stats.reset()
    began = time.monotonic()
    end = m5.simulate(job["window_fs"])
took = time.monotonic() - began
m5.stats.dump()
machine_system.say(f"ended: {end.getCause()}: {took:.3f} s")
