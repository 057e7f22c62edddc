#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs the same accesses under two protocols: core 0 writes a line, cores 6 and 12 read it, core 0 writes again.

Under MSI the first read writes the line back to memory, so memory supplies the second read. Under MOESI_HTAssist the
writer keeps the line in state O and supplies both. Prints who supplied the line, and the latency of each access.
"""

from moscope_json import moscope

SCRIPT = "c0 st A@n3; c6 ld A@n3; c12 ld A@n3; c0 st A@n3"

for protocol in ("MSI", "MOESI_HTAssist"):
    trace = moscope("trace", SCRIPT, "--set", f"protocol={protocol}")
    print(f"{protocol}: {len(trace['messages'])} messages")
    for access in trace["accesses"]:
        number = access["supplier_number"]
        supplier = "its own cache" if number is None else f"{access['supplier']}-{number}"
        print(f"  {access['text']:<12} {access['latency_cycles']:6.1f} cycles, line from {supplier}")
