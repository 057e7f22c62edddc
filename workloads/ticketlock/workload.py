# SPDX-License-Identifier: BSD-3-Clause
"""All cores contend for a spin lock around a short section."""

from moscope.workloads import Workload, register

register(__file__, *(
    Workload(name, summary, "acquisitions", lambda cores, v=variant: f"{v} --cores {cores}")
    for name, variant, summary in (
        ("ticketlock", "ticket", "a ticket lock: all waiters spin on the line of the lock"),
        ("ticketlock-mcs", "mcs", "an MCS lock: each waiter spins on a line of its own"),
    )))
