# SPDX-License-Identifier: BSD-3-Clause
"""The counts of prefetchers in a point, from the statistics of a machine."""

from typing import Any

from moscope.runs.point import prefetched


def test_a_point_sums_the_counts_of_all_cores_and_all_memory_controllers() -> None:
    def part(n: int, name: str = "prefetch") -> dict[str, Any]:
        return {name: {"fetched": n, "useful": n - 1, "late": 1, "useless": 0}}

    stats = {"machine": {"cores": [part(5), part(7), {}], "dram": [{}, {}]}}
    assert prefetched(stats) == {"prefetch": {"l1d": {"fetched": 12, "useful": 10, "late": 2, "useless": 0}}}
    stats = {"machine": {"cores": [part(5, "instruction_prefetch")] * 2, "dram": [part(3)]}}
    assert prefetched(stats) == {"prefetch": {"l1i": {"fetched": 10, "useful": 8, "late": 2, "useless": 0},
                                              "dram": {"fetched": 3, "useful": 2, "late": 1, "useless": 0}}}
    assert prefetched({"machine": {"cores": [{}], "dram": [{}]}}) == {}
