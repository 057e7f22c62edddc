# SPDX-License-Identifier: BSD-3-Clause
"""gem5's random tester on a machine: `gem5.opt random_test.py JOB.json`, JOB with "loads" checks to make."""

import _m5.core
from m5.objects import RubyTester

import machine_system

job = machine_system.job_file()
_m5.core.seedRandom(job["seed"])
# The tester's lines, but for a few neighbours, are so far from each other, from 1000 on: they change homes at each.
STRIDE_BITS = 8
# The tester and gem5's random delays of messages count in ticks, and are meant for ticks of a nanosecond.
built = machine_system.build(job, tick_fs=10**6, max_outstanding=16, spread_from_bit=STRIDE_BITS)
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
