# SPDX-License-Identifier: BSD-3-Clause
"""`moscope ablate`: which kernels it measures, and what it makes of their points."""

import os
from pathlib import Path

import pytest

from moscope import jsonio
from moscope.bench import gem5 as bench_gem5
from moscope.bench import run as bench_run
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.guest import kernel, kernel_names
from moscope.runs import ablate, directory, options


def test_each_fix_is_on_alone_over_stock_and_off_alone_from_pk(shared: Shared) -> None:
    plan = ablate.plan(shared, options.Options(workload="counter", cores="4"), "7,2")
    assert [p.kernel for p in plan.points] == ["stock", "stock+2", "stock+7", "pk-2", "pk-7", "pk"]
    assert {p.cores for p in plan.points} == {4}


def test_without_a_list_every_fix_that_can_be_switched_is(shared: Shared) -> None:
    plan = ablate.plan(shared, options.Options(workload="counter", cores="4"), None)
    assert len(plan.points) == 2 + 2 * len(kernel_names.numbers())


@pytest.mark.parametrize("fixes", ["99", "2,", "x", "-7"])
def test_a_fix_that_cannot_be_switched_is_refused_with_those_that_can(shared: Shared, fixes: str) -> None:
    with pytest.raises(UserError, match=r"--fixes: .*expected some of .*2,3,"):
        ablate.chosen(fixes)


@pytest.mark.parametrize("given", [{"workload": "counter,falseshare", "cores": "1"}, {"workload": "counter", "cores": "1,2"}])
def test_what_measures_one_point_refuses_several(shared: Shared, given: dict[str, str]) -> None:
    for ask in (lambda o: ablate.plan(shared, o, "7"), lambda o: bench_run.run(shared, o), lambda o: bench_gem5.run(shared, o, None)):
        with pytest.raises(UserError, match=r"--(workload|cores): (ablate|bench run|bench gem5) takes one, not 2"):
            ask(options.Options(**given))


def test_a_dry_run_estimates_the_points_that_are_not_finished_and_writes_nothing(
        shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "is_kept", lambda _: False)
    asked = options.Options(workload="memcached", cores="4")
    plan = ablate.plan(shared, asked, "7", build=False)
    found, said = ablate.forecast(plan)
    jsonio.validate(found)
    assert (found["points"], found["done"]) == (4, 0) and said.startswith("4 points; ") and "built first: " in said
    assert any("7 minutes" in what for what in found["built_first"]) and not plan.out.exists()
    with directory.opened(plan) as points:
        folder = directory.point_folder(plan.out, plan.points[0])
        folder.mkdir(parents=True)
        (folder / "point.json").write_text("{}")
        points["kept"] = {}
    later, said = ablate.forecast(plan)
    assert later["done"] == 1 and later["estimated_s"] < found["estimated_s"] and "4 points, 1 finished already; " in said
    with pytest.raises(UserError, match="holds a run with other options"):
        ablate.forecast(ablate.plan(shared, asked, "2", build=False))


def test_the_times_of_measured_points_are_those_of_the_next_estimate(
        shared: Shared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    plan = ablate.plan(shared, options.Options(workload="memcached", cores="4"), "7", build=False)
    first, second, *others = plan.points
    assert ablate.forecast(plan)[0]["estimated_elsewhere"] == 4
    run = {"points": [{"kernel": first.kernel, "host_s": 1e6}, *({"kernel": p.kernel, "host_s": 7.0} for p in (second, *others))]}
    ablate.record_times(plan, {first.name: {"host_s": 1e6}, second.name: {"host_s": 1e6}}, run)  # the second one is measured again
    again = ablate.forecast(plan)[0]
    assert again["estimated_s"] == round(4 * 7.0 / min(len(os.sched_getaffinity(0)), 4), 1) and again["estimated_elsewhere"] == 0


def test_the_table_has_a_row_for_each_finished_point(shared: Shared, capsys: pytest.CaptureFixture[str]) -> None:
    plan = ablate.plan(shared, options.Options(workload="memcached", cores="4"), "7")
    line = {"name": "mount_lock", "address": "0x40", "stall_share": 0.6, "wait_share": 0.4, "spin_share": 0.1, "transfers": 3,
            "class": "true_sharing", "writers": [], "waiters": []}
    points = [{"kernel": k, "throughput_per_s": t, "stderr_per_s": None, "top_lines": lines,
               "confidence": {"figures": {"throughput_per_s": {"value": t, "half_width": 5.0}}}}
              for k, t, lines in (("stock", 100.0, [line]), ("stock+7", 104.0, []), ("pk", 400.0, []))]
    document = ablate.document(plan, {"ok": False, "points": points})
    jsonio.validate(document)
    assert [(row["kernel"], row["throughput_per_s"]) for row in document["rows"]] == [("stock", 100.0), ("stock+7", 104.0), ("pk", 400.0)]
    assert [row["within_error"] for row in document["rows"]] == [None, True, None]
    ablate.show(document)
    stock, fixed, pk, legend = capsys.readouterr().out.splitlines()[1:]
    assert "(within the error of stock)" in fixed and "error" not in stock + pk
    assert "not steady" not in stock + fixed + pk
    points[2]["trend"] = {"windows": 4, "before": 500.0, "after": 300.0}
    jsonio.validate(unsteady := ablate.document(plan, {"ok": True, "points": points}))
    ablate.show(unsteady)
    assert [line.endswith("(not steady)") for line in capsys.readouterr().out.splitlines()[1:4]] == [False, False, True]
    assert stock.count("#") * 4 == pk.count("#") and "40 % mount_lock" in stock
    assert legend == "within the error: the 95 % interval of the difference contains zero"


def test_the_rows_have_their_standard_errors(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"kernel": k, "throughput_per_s": t, "stderr_per_s": e, "top_lines": [], "within_error": None}
            for k, t, e in (("stock", 1000.0, 12.3), ("pk", 4000.0, 1234.5))]
    ablate.show({"workload": "exim", "cores": 2, "rows": rows})
    head, stock, pk = capsys.readouterr().out.splitlines()
    assert head == "exim on 2 cores, per second, +- the standard error:"
    assert " 1,000 +- 12     ##" in stock and " 4,000 +- 1,234  ##" in pk, "the bars begin in the same column"
