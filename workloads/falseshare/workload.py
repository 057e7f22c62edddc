# SPDX-License-Identifier: BSD-3-Clause
"""A word for each core: several to a line (false sharing), or each on a line of its own."""

from moscope.workloads import Workload, register

register(__file__, *(
    Workload(name, summary, "increments", lambda cores, v=variant: f"{v} --cores {cores}")
    for name, variant, summary in (
        ("falseshare", "packed", "a word for each core, eight words to a line"),
        ("falseshare-padded", "padded", "a word for each core on a line of its own"),
    )))
