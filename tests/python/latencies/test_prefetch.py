# SPDX-License-Identifier: BSD-3-Clause
"""What prefetchers do to streams, against closed forms: a read takes the latency, divided by the lines under way, until the DRAM
is busy all the time."""

import json
from functools import cache
from typing import Any

import pytest

from moscope import buildproto
from moscope.config import elaborate, load_machine
from moscope.experiment import Subject

LINE, PAGE, MIB = 64, 4096, 1 << 20
LINES = 8192


@cache
def subject(*sets: str) -> Subject:
    machine = load_machine("opteron48", list(sets))
    made = buildproto.ensure_protocol(str(machine.protocol))
    interface = json.loads(made.interface.read_text(encoding="utf-8"))
    return Subject(machine, interface, elaborate(machine, interface), made.timing, 1)


def reads(*sets: str, order: str = "ascending", step: int = LINE, in_flight: int = 1, lines: int = LINES) -> dict[str, Any]:
    """Reads of a core from its node's memory, none of them twice: time per access in ns, and what was counted."""
    stream = {"core": 0, "in_flight": in_flight, "order": order, "step": step, "ranges": [[64 * MIB, lines * step]]}
    answer = subject(*sets).run([{"kind": "loads", "streams": [stream], "accesses": lines, "statistics": True}])[0]
    counts = answer["statistics"]["cores"][0].get("prefetch", {})
    of_node = [node["prefetch"] for node in answer["statistics"]["dram"] if "prefetch" in node]
    return {"ns": answer["simulated_fs"] / lines / 1e6, **counts, "dram": of_node[0] if of_node else None}


@pytest.fixture(scope="module")
def latency() -> float:
    return float(reads()["ns"])


@pytest.mark.parametrize("ahead", [1, 2, 3])
def test_a_sequential_stream_has_one_line_more_under_way_than_the_prefetcher_is_ahead(latency: float, ahead: int) -> None:
    got = reads("l1d_prefetch.policy=stride", f"l1d_prefetch.ahead={ahead}")
    assert got["ns"] == pytest.approx(latency / (ahead + 1), rel=0.08)
    assert got["ns"] == pytest.approx(reads(in_flight=ahead + 1)["ns"], rel=0.05)
    # All lines but the first of each page, and those that teach it the stride.
    assert got["late"] + got["useful"] == pytest.approx(LINES * 63 / 64, abs=3) and got["useless"] == 0


def test_with_enough_lines_ahead_a_stream_takes_what_the_dram_gives(latency: float) -> None:
    bound = reads(in_flight=16)["ns"]
    got = reads("l1d_prefetch.policy=stride", "l1d_prefetch.ahead=16", "l1d_prefetch.buffers=24")["ns"]
    assert bound < latency / 6
    assert got == pytest.approx(bound + latency / 64, rel=0.1)  # the first line of each page is not prefetched


def test_reads_in_a_random_order_take_as_long_as_without_prefetchers() -> None:
    without = reads(order="shuffled")["ns"]
    got = reads("l1d_prefetch.policy=stride", "dram_prefetch.policy=stride", order="shuffled")
    assert got["ns"] == pytest.approx(without, rel=0.01)
    assert got["useful"] + got["late"] < 0.01 * LINES


@pytest.mark.parametrize("lines", [64, 96])
def test_a_stride_beyond_the_page_gains_nothing(lines: int) -> None:
    step = lines * LINE
    assert reads("l1d_prefetch.policy=stride", step=step, lines=2048)["ns"] == pytest.approx(reads(step=step, lines=2048)["ns"], rel=1e-9)


@pytest.mark.parametrize(("lines", "gains"), [(1, True), (4, True), (5, False), (8, False)])
def test_the_memory_controller_follows_strides_of_up_to_four_lines(lines: int, gains: bool) -> None:
    without = reads(step=lines * LINE, lines=4096)["ns"]
    got = reads("dram_prefetch.policy=stride", step=lines * LINE, lines=4096)
    assert (got["dram"]["useful"] + got["dram"]["late"] > 2000) == gains
    assert got["ns"] < 0.95 * without if gains else got["ns"] == pytest.approx(without, rel=1e-9)


def test_useful_late_and_useless_prefetches_add_up_to_those_fetched() -> None:
    got = reads("l1d_prefetch.policy=next_line", "dram_prefetch.policy=stride", order="shuffled")
    for counts in (got, got["dram"]):
        known = counts["useful"] + counts["late"] + counts["useless"]
        assert 0 <= counts["fetched"] - known <= 512  # those not decided yet
    assert got["useless"] > got["useful"] + got["late"]
