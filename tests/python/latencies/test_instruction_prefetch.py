# SPDX-License-Identifier: BSD-3-Clause
"""The prefetcher of the L1 instruction cache: a fetch that misses brings the next line too, within its page, and nothing else does."""

import re

import pytest

from moscope import Machine, trace


def latencies(script: str, policy: str = "next_line", **sets: str) -> list[float]:
    """Of each access, in core cycles; `L3` stands for the fourth line of a page of node 0. Each step waits until all before has
    ended, prefetches too."""
    script = re.sub(r"L(\d+)", lambda line: f"{0x410000 + 64 * int(line[1]):#x}", script)
    machine = Machine("opteron48", l1i_prefetch_policy=policy, **sets)
    return [access["latency_cycles"] for access in trace(script, machine).document["accesses"]]


def test_the_line_after_one_that_was_fetched_is_in_the_l1() -> None:
    missed, next_line, after_it = latencies("c0 if L0; c0 if L1; c0 if L2")
    alone, _ = latencies("c0 if L0; c0 if L1", "off")
    assert missed == pytest.approx(alone, rel=0.01)
    assert next_line == pytest.approx(3)
    assert after_it > 100  # a line that is there brings none


def test_without_a_policy_each_line_misses() -> None:
    assert all(cycles > 100 for cycles in latencies("c0 if L0; c0 if L1; c0 if L2", "off"))


def test_a_fetch_of_a_line_that_is_under_way_waits_for_the_rest_and_brings_the_next_one() -> None:
    first, late, then = latencies("c0 if L0 | c0 if L1 at 100cy; c0 if L2")
    assert late == pytest.approx(first - 100, abs=30)
    assert then == pytest.approx(3)


def test_a_line_that_went_to_the_l2_before_its_first_use_brings_the_next_one() -> None:
    conflicting = "; ".join(f"c0 if L{1 + ways * 512}" for ways in (1, 2))  # the L1 has two ways of 512 lines
    *_, first_use, next_line = latencies(f"c0 if L0; {conflicting}; c0 if L1; c0 if L2")
    assert 3 < first_use < 20
    assert next_line == pytest.approx(3)


def test_nothing_beyond_the_page_is_fetched() -> None:
    assert all(cycles > 100 for cycles in latencies("c0 if L63; c0 if L64"))


@pytest.mark.parametrize("access", ["ld", "st"])
def test_loads_and_stores_bring_no_instructions(access: str) -> None:
    assert all(cycles > 100 for cycles in latencies(f"c0 {access} L0; c0 if L1"))


@pytest.mark.parametrize("access", ["ld", "st"])
def test_a_line_in_the_data_cache_stays_there(access: str) -> None:
    *_, again = latencies(f"c0 {access} L1; c0 if L0; c0 {access} L1")
    assert again == pytest.approx(3)


def test_l1i_prefetch_ahead_is_the_number_of_lines_fetched_ahead() -> None:
    got = latencies("; ".join(f"c0 if L{n}" for n in range(6)), l1i_prefetch_ahead="4")
    assert [cycles > 100 for cycles in got] == [True, False, False, False, False, True]
