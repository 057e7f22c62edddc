# SPDX-License-Identifier: BSD-3-Clause
"""Words that nobody shares, on lines that everybody shares or not."""

from .registry import Workload, register

register(*(
    Workload(name, "falseshare", summary, "increments", lambda cores, v=variant: f"{v} --cores {cores}")
    for name, variant, summary in (
        ("falseshare", "packed", "a word for each core, eight words to a line"),
        ("falseshare-padded", "padded", "a word for each core on a line of its own"),
    )))
