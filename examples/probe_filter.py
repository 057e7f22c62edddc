#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Shows what the probe filter saves: one load of a line that no cache holds, with the filter on and off.

With the filter, the home node knows that no cache holds the line and reads DRAM. Without it, the home node
probes every chip, and all answer. Prints the latency, the link crossings and the messages of both.
"""

from moscope_json import moscope

for filter_on in ("true", "false"):
    trace = moscope("trace", "c0 ld A@n0", "--set", f"probe_filter.enabled={filter_on}")
    load = trace["accesses"][0]
    print(f"probe filter {'on ' if filter_on == 'true' else 'off'}  {load['latency_cycles']:6.1f} cycles, "
          f"{load['probes']} probes, {len(trace['messages'])} messages, "
          f"{sum(len(m['hops']) for m in trace['messages'])} link crossings")
