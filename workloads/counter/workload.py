# SPDX-License-Identifier: BSD-3-Clause
"""One reference count for all cores, a count per core, and the sloppy counter between the two."""

from moscope.workloads import THIRD_OF_TICK, Workload, register

register(__file__, *(
    Workload(name, summary, "references taken and given back", lambda cores, v=variant: f"{v} --cores {cores}",
             window=THIRD_OF_TICK)
    for name, variant, summary in (
        ("counter", "shared", "all cores change one reference count"),
        ("counter-percore", "percore", "each core changes a count of its own"),
        ("counter-sloppy", "sloppy", "a sloppy counter: spare references stay with the core"),
    )))
