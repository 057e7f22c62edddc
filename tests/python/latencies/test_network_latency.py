# SPDX-License-Identifier: BSD-3-Clause
"""The latencies that the network counts in a window, of messages that are under way when it begins or ends, too."""

from moscope.cli import Shared
from moscope.experiment import prepare

NS = 1_000_000


def test_messages_that_are_under_way_at_the_end_of_a_window_count_as_far_as_they_have_come() -> None:
    """At two of these ends, copies of a message to several cores wait at ports of a crossbar."""
    subject = prepare(Shared(machine="small", quiet=True))
    streams = [{"core": core, "op": "rmw" if core % 2 else "ld", "in_flight": 1, "order": "random", "step": 64, "seed": core,
                "ranges": [[0x10000, 256]]} for core in range(8)]
    for number in range(20):
        phase = {"kind": "loads", "streams": streams, "warm_fs": 2000 * NS + 7 * NS * number, "window_fs": 300 * NS, "statistics": True}
        for name, channel in subject.run([phase])[-1]["statistics"]["network"]["channels"].items():
            assert 0 <= channel["latency_fs"] <= 100 * NS * (channel["delivered"] + len(streams)), (number, name)
