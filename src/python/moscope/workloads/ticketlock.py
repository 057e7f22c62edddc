# SPDX-License-Identifier: BSD-3-Clause
"""A spin lock around a short section, taken by all cores all the time."""

from .registry import Workload, register

register(*(
    Workload(name, "ticketlock", summary, "acquisitions", lambda cores, v=variant: f"{v} --cores {cores}")
    for name, variant, summary in (
        ("ticketlock", "ticket", "a ticket lock: every waiter spins on the lock's line"),
        ("ticketlock-mcs", "mcs", "an MCS lock: each waiter spins on a line of its own"),
    )))
