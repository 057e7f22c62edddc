# SPDX-License-Identifier: BSD-3-Clause
"""gem5's random tester on a machine: `gem5.opt random_test.py JOB.json`, JOB with "loads" checks to make."""

import machine_system
import m5
from m5.objects import RubyTester

job = machine_system.job_file()
m5.core.seedRandom(job["seed"])
# The tester and gem5's random delays of messages count in ticks, and are meant for ticks of a nanosecond.
built = machine_system.build(job, tick_fs=10**6, max_outstanding=16)
tester = RubyTester(
    checks_to_complete=job["loads"],
    wakeup_frequency=10,
    num_cpus=len(built.sequencers),
    # gem5's own limit takes contention of more than 18 cores for a deadlock.
    deadlock_threshold=50_000_000,
    check_flush=job["flush"],
)
built.system.cpu = tester
built.system.ruby.randomization = True
for sequencer in built.sequencers:
    tester.cpuInstDataPort = sequencer.in_ports
    sequencer.no_retry_on_stall = True
    sequencer.using_ruby_tester = True
end = machine_system.simulate(built.system)
if end.getCause() != "Ruby Tester completed":
    machine_system.stop(f"the random tester ended early: {end.getCause()}")
