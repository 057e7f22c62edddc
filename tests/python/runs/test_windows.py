# SPDX-License-Identifier: BSD-3-Clause
"""Figures from windows, against sums done by hand."""

from dataclasses import asdict, fields

import pytest

from moscope.errors import UserError
from moscope.runs import windows
from moscope.runs.windows import Moment


def moment(tick: int, operations: int, busy: int, memory: int) -> Moment:
    spent = {(kind, who): 0 for kind in windows.KINDS for who in ("kernel", "user")}
    return Moment(tick=tick, operations=operations, instructions=100, spun=0, host_s=2.0,
                  spent={**spent, ("busy", "user"): busy, ("memory", "kernel"): memory})


def test_the_standard_error_is_the_spread_over_the_root_of_the_count() -> None:
    assert windows.standard_error([1.0, 2.0, 3.0]) == pytest.approx(1 / 3**0.5)
    assert windows.standard_error([5.0, 5.0]) == 0
    assert windows.standard_error([5.0]) is None


def test_a_window_in_which_no_operation_ended_has_no_time_per_operation() -> None:
    got = windows.figures(moment(10**12, 0, 5, 5))
    assert got["user_us_per_op"] is None and got["system_us_per_op"] is None and got["throughput_per_s"] == 0


def test_a_point_weighs_windows_by_their_time() -> None:
    got = windows.summary([moment(10**12, 10, 100, 0), moment(10**12, 30, 0, 300)])
    assert got["ops"] == 40 and got["throughput_per_s"] == 20_000
    assert got["cycles"]["memory"] == 0.75 and got["kernel_share"] == 0.75
    assert got["stderr_per_s"] == pytest.approx(10_000)
    assert got["host_s_per_ms"] == 2.0


def test_a_few_windows_that_count_the_same_operations_have_the_error_of_the_whole_count() -> None:
    got = windows.summary([moment(10**12, 1, 100, 0)] * 3)
    assert got["throughput_per_s"] == 1000 and got["stderr_per_s"] == pytest.approx(1000 / 6**0.5 / 3)
    figures = got["confidence"]["figures"]
    assert figures["us_per_op"]["stderr"] == pytest.approx(figures["us_per_op"]["value"] / 6**0.5 / 3)
    assert figures["throughput_per_s"]["stderr"] == got["stderr_per_s"]


def test_windows_without_operations_have_a_throughput_of_zero_and_no_time_per_operation() -> None:
    got = windows.summary([moment(10**12, 0, 100, 0)] * 12)
    assert got["throughput_per_s"] == 0 and got["stderr_per_s"] == pytest.approx(3 / 1.96 / 0.012, rel=0.01)
    assert list(got["confidence"]["figures"]) == ["throughput_per_s"]
    assert not windows.enough([moment(10**12, 0, 100, 0)] * 12, 0.5)


def test_windows_in_which_no_core_counted_time_are_refused() -> None:
    with pytest.raises(UserError, match="^--window: 1e-06ns: no core counted any time in the windows: expected longer ones$"):
        windows.check_counted([moment(1, 0, 0, 0), moment(1, 0, 0, 0)], 1)
    windows.check_counted([moment(1, 0, 0, 0), moment(1, 0, 1, 0)], 1)


def test_sums_and_differences_of_moments_cover_every_count() -> None:
    def counting(start: int) -> Moment:
        return Moment(spent={("busy", "user"): start}, **{f.name: start + i for i, f in enumerate(fields(Moment)) if f.name != "spent"})

    total = counting(100) + counting(1000)
    assert asdict(total) == {**{f.name: 1100 + 2 * i for i, f in enumerate(fields(Moment))}, "spent": {("busy", "user"): 1100}}
    assert total - counting(1000) == counting(100)


def test_a_sum_keeps_the_time_of_a_kind_that_only_one_moment_has() -> None:
    one, other = (Moment(tick=1, operations=1, instructions=1, spun=0, spent={(kind, "user"): 5}) for kind in ("busy", "memory"))
    assert (one + other).spent == {("busy", "user"): 5, ("memory", "user"): 5}


def test_a_difference_of_moments_is_the_window_between_them() -> None:
    first, second = moment(5, 1, 10, 20), moment(9, 4, 30, 25)
    got = second - first
    assert (got.tick, got.operations, got.spent["busy", "user"], got.spent["memory", "kernel"]) == (4, 3, 20, 5)


def test_the_bench_leaves_spin_loops_out_and_compares_processor_time() -> None:
    from moscope import jsonio
    from moscope.bench import run as bench_run

    def point(cpu_s: float) -> dict[str, object]:
        return {"workload": "w", "cores": 4, "instructions": 20_000_000, "ticks": 10**12, "window_ms": 1.0, "host_s_per_ms": 2.0,
                "windows": [{"host_s": 2.0, "host_cpu_s": cpu_s}], "host_bytes": 3 << 30, "touched_bytes": 2 << 30,
                "cycles": {"idle": 0.25}}

    got = bench_run.document("m", 1, [(point(1.1), point(1.0))])
    jsonio.validate(got)
    assert got["mips"] == 10 and got["attribution_overhead"] == pytest.approx(0.1) and got["busy"] == 0.75
    assert got["ok"] is False  # 1 GiB is more than 1 GB
    assert bench_run.document("m", 1, [({**point(1.1), "host_bytes": 2 << 30}, point(1.0))])["ok"] is True
    assert bench_run.document("m", 1, [({**point(1.3), "host_bytes": 2 << 30}, point(1.0))])["ok"] is False
    several = bench_run.document("m", 2, [(point(3.9), point(1.0))])  # threads that wait are busy: time counts
    assert several["attribution_overhead"] == 0 and several["threads"] == 2


def test_the_bench_gives_medians_of_pairs_and_the_most_memory() -> None:
    from moscope import jsonio
    from moscope.bench import run as bench_run

    def point(host_s: float, memory: int) -> dict[str, object]:
        return {"workload": "w", "cores": 4, "instructions": 20_000_000, "ticks": 10**12, "window_ms": 1.0, "host_s_per_ms": host_s,
                "windows": [{"host_s": host_s, "host_cpu_s": host_s}], "host_bytes": memory, "touched_bytes": 1000, "cycles": {"idle": 0.0}}

    got = bench_run.document("m", 2, [(point(2.0, 7000), point(1.0, 1)), (point(1.1, 9000), point(1.0, 1)),
                                      (point(4.0, 8000), point(5.0, 1))])
    jsonio.validate(got)
    assert (got["mips"], got["host_s_per_ms"], got["rss_bytes"]) == (10, 2.0, 9000)
    assert got["attribution_overhead"] == pytest.approx(0.1) and got["mips_of_each"][2] == 5


def test_an_error_below_the_wanted_one_that_is_not_known_well_says_so() -> None:
    counts = [1000, 1001, 1003, 1004, 1004, 1003, 1001, 1000, 998, 997, 997, 998]
    measured = [moment(10**12, n, 100, 0) for n in counts]
    got = windows.until(measured, 0.02, 12)
    assert got["reached"] < 0.02 and not got["met"]
    assert got["why"].startswith("the windows are correlated (0.95) and worth only 1 independent window, so the error may be up to ")
    assert windows.until([moment(10**12, n, 100, 0) for n in [10, 200] * 6], 0.01, 12)["why"] == "expected a higher --windows"
