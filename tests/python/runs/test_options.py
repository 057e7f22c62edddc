# SPDX-License-Identifier: BSD-3-Clause
"""Options of `moscope run`: the points and times that follow from them, and the errors for wrong ones."""

from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import get_type_hints

import pytest

from moscope import _engine
from moscope.boot import plan
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.runs import options
from moscope.runs.windows import Moment
from moscope.sweeps import of_run, points

MS = 10**12


def made(shared: Shared, **given: object) -> options.Plan:
    return options.make(shared, options.Options(**{"workload": "counter", **given}))  # type: ignore[arg-type]


@pytest.mark.parametrize("one", [options.Options, options.Point, plan.Options, Moment], ids=lambda c: f"{c.__module__}.{c.__name__}")
def test_a_value_of_options_points_and_counts_is_given_by_its_name(one: type) -> None:
    assert all(field.kw_only for field in fields(one))


def test_without_core_counts_those_of_the_papers_figures_are_measured(shared: Shared) -> None:
    assert [p.cores for p in made(shared).points] == [1, 12, 24, 36, 48]


@pytest.mark.parametrize(("machine", "counts"), [("small", [1, 8]), ("magnycours_2p", [1, 12, 24])])
def test_default_core_counts_are_those_that_the_machine_has(shared: Shared, machine: str, counts: list[int]) -> None:
    shared = replace(shared, machine=machine)
    assert [p.cores for p in made(shared).points] == counts
    with pytest.raises(UserError, match=f"--cores: 99: expected numbers from 1 to {counts[-1]}, as in {','.join(map(str, counts))} for"):
        made(shared, cores="99")


def test_on_more_cores_than_the_papers_machine_the_default_core_counts_are_the_papers(shared: Shared) -> None:
    shared = replace(shared, sets=["chips=8", "cores_per_chip=8"])
    assert [p.cores for p in made(shared).points] == [1, 12, 24, 36, 48]


def test_kernels_whose_results_would_share_a_folder_are_refused(shared: Shared, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    files = [tmp_path / "a" / "bz", tmp_path / "a_bz"]
    for file in files:
        file.touch()
    with pytest.raises(UserError, match="bz would write their results into the same folder, .*: expected files whose paths differ"):
        made(shared, kernel=",".join(map(str, files)), cores="1")


def test_without_any_option_mail_is_measured_on_the_stock_and_the_patched_kernel(shared: Shared) -> None:
    points = options.make(shared, options.Options()).points
    assert {p.workload for p in points} == {"exim"} and [*dict.fromkeys(p.kernel for p in points)] == ["stock", "pk"]
    assert len(points) == 10


def test_a_workload_that_says_nothing_of_kernels_is_measured_on_the_distributions(shared: Shared) -> None:
    assert {p.kernel for p in made(shared).points} == {"distro"}
    assert {p.kernel for p in made(shared, kernel="pk,stock+2,7").points} == {"pk", "stock+2,7"}
    assert {p.kernel for p in made(shared, workload="vfsfix-7").points} == {"pk-7", "pk"}


def test_a_workload_for_one_core_is_measured_on_one_core_unless_told_otherwise(shared: Shared) -> None:
    assert [p.cores for p in made(shared, workload="chase").points] == [1]
    assert [p.cores for p in made(shared, workload="chase", cores="4").points] == [4]


def test_times_are_the_workloads_own_unless_given(shared: Shared) -> None:
    point = made(shared, cores="2").points[0]
    assert point.warmup > 0 and point.window > 0
    point = made(shared, cores="2", warmup="1ms", window="250us").points[0]
    assert (point.warmup, point.window) == (MS, MS // 4)


def test_detailed_time_begins_at_the_workloads_own_mark_unless_told_otherwise(shared: Shared) -> None:
    assert {p.begin for given in ({}, {"begin": "workbegin"}) for p in made(shared, **given).points} == {None}
    assert {p.begin for p in made(shared, begin="250ms").points} == {250 * MS}
    assert {p.begin for p in made(shared, begin="all set").points} == {"all set"}
    assert made(shared, begin="0.25s").identity() == made(shared, begin="250ms").identity() != made(shared).identity()
    assert "begin" not in made(shared).identity()["points"][0], "so that runs from before the option was there go on"


def test_memory_per_node_is_used_from_either_option(shared: Shared) -> None:
    assert {p.memory_per_node for p in made(shared).points} == {"512MiB"}
    assert {p.memory_per_node for p in made(shared, memory_per_node="128MiB").points} == {"128MiB"}
    shared = replace(shared, sets=["memory_per_node=64MiB", "memory_per_node=128MiB"])
    assert {p.memory_per_node for p in made(shared).points} == {"128MiB"}
    with pytest.raises(UserError, match="--memory-per-node: --set memory_per_node=128MiB is given too: expected one of the two"):
        made(shared, memory_per_node="128MiB")


@pytest.mark.parametrize("size", ["32MiB", "65MiB"])
def test_memory_that_no_guest_can_use_is_refused(shared: Shared, size: str) -> None:
    said = f"{size}: expected 64MiB or more, a multiple of 2MiB"
    with pytest.raises(UserError, match=f"--memory-per-node: {said}"):
        made(shared, memory_per_node=size)
    for values in (size, f"{size},128MiB", f"128MiB,{size}"):
        one = replace(shared, sets=[f"memory_per_node={values}"])
        with pytest.raises(UserError, match=said):
            points.unbuilt(swept) if (swept := of_run.spec(one, options.Options(workload="counter"))) else made(one)


@pytest.mark.parametrize("sets", [["chips=16", "topology=ring"], ["cores_per_chip=9"]])
def test_more_chips_or_cores_than_guests_run_on_are_refused_by_the_option_that_gives_them(shared: Shared, sets: list[str]) -> None:
    key, value = sets[0].split("=")
    with pytest.raises(UserError, match=f"^--set {sets[0]}: {key}: {value}: expected 1 to 8 on a machine that runs guests$"):
        made(replace(shared, machine="small", sets=sets))


def test_the_limits_of_machines_that_run_guests_are_the_engines(shared: Shared, monkeypatch: pytest.MonkeyPatch) -> None:
    limits = {"chips": 4, "cores_per_chip": 3, "memory_per_node": 256 << 20, "memory_step": 4 << 20}
    assert limits.keys() == _engine.GUEST_LIMITS.keys()
    monkeypatch.setattr(_engine, "GUEST_LIMITS", limits)
    with pytest.raises(UserError, match="chips: 8: expected 1 to 4 on a machine that runs guests$"):
        made(shared)
    with pytest.raises(UserError, match="--memory-per-node: 128MiB: expected 256MiB or more, a multiple of 4MiB$"):
        made(replace(shared, machine="small"), memory_per_node="128MiB")


def help_of(command: Callable[..., int], option: str) -> str:
    return str(get_type_hints(command, include_extras=True)[option].__metadata__[0].help)


def test_the_help_states_the_default_times() -> None:
    from moscope import workloads
    from moscope.commands.run import run

    for option, field in (("warmup", "warmup"), ("window", "window")):
        own, others = getattr(workloads.find("exim"), field), getattr(workloads.find("falseshare"), field)
        times = [options.default_time(own, n) for n in range(1, 49)]
        assert f"({others}; {min(times) // MS}ms to {max(times) // MS}ms for `exim`" in help_of(run, option)
        assert all(t % MS == 0 for t in (min(times), max(times)))
    usual, more = (workloads.find(name).memory_per_node for name in ("exim", "metis-reduce"))
    assert f"({usual}; `metis-reduce`: {more})" in help_of(run, "memory_per_node")


def test_the_help_names_kernels_that_are_there() -> None:
    from moscope.commands.boot import boot
    from moscope.commands.run import run
    from moscope.guest import kernel

    for command in (boot, run):
        text = help_of(command, "kernel")
        assert "file" in text and all(name in text for name in ("distro", "stock", "pk", "upstream", "pk-7"))
        assert [kernel.check_name(name) for name in ("distro", "stock", "pk", "upstream", "pk-7")]


def test_a_time_of_a_workload_may_depend_on_the_cores() -> None:
    assert options.default_time("2ms", 48) == 2 * MS
    assert options.default_time(lambda n: f"{96 // n}ms", 48) == 2 * MS


def test_every_combination_of_workload_kernel_and_core_count_is_a_point(shared: Shared) -> None:
    points = made(shared, workload="counter,ticketlock", cores="1,2").points
    assert [(p.workload, p.cores) for p in points] == [("counter", 1), ("counter", 2), ("ticketlock", 1), ("ticketlock", 2)]
    assert len({p.name for p in points}) == 4


@pytest.mark.parametrize(("given", "says"), [
    ({"workload": "conter"}, 'no workload called "conter": expected a known name'),
    ({"workload": "counter,"}, "has an empty name in it"),
    ({"workload": ""}, "has an empty name in it"),  # of a script's variable that is not set
    ({"kernel": ""}, "has an empty name in it"),
    ({"cores": ""}, '--cores: "" is not a number of cores'),
    ({"workload": "counter,counter"}, "counter appears twice"),
    ({"kernel": "distro0"}, 'no kernel called "distro0": expected a known name, such as distro'),
    ({"cores": "0"}, "--cores: 0: expected numbers from 1 to 48"),
    ({"cores": "49"}, "--cores: 49"),
    ({"cores": "1,,2"}, 'is not a number of cores'),
    ({"cores": "1;2"}, '"1;2" is not a number of cores'),
    ({"cores": "2,2"}, "2 appears twice"),
    ({"cores": "\u0663"}, "is not a number of cores"),
    ({"warmup": "5"}, "--warmup: .*has no unit"),
    ({"window": "0ms"}, "--window: 0ms: expected more than 0"),
    ({"window": "3GHz"}, "--window: .*is a frequency"),
    ({"windows": 0}, "--windows: 0: expected 1 to 1000"),
    ({"until_error": "3"}, "--until-error: 3: expected more than 0% and at most 50%, such as 3%"),
    ({"until_error": "0%"}, "--until-error: 0%: expected more than 0%"),
    ({"until_error": "3%", "windows": 5}, "--windows: 5: expected 10 or more with --until-error"),
    ({"detail": "ful"}, 'no detail called "ful": expected a known name, such as full'),
    ({"memory_per_node": "lots"}, "--memory-per-node: "),
    ({"begin": "250"}, "--begin: .*has no unit"),
    ({"begin": "3GHz"}, "--begin: .*is a frequency"),
    ({"begin": "2000s"}, "--begin: 2000s: .*at most 1000s"),
    ({"begin": "-5ms"}, "--begin: '-5ms' is out of range"),
    ({"begin": ".5ms"}, "--begin: '.5ms' is not a number with a unit"),
    ({"begin": " "}, "--begin: ' ': expected a time such as 250ms, workbegin, or text"),
    ({"begin": "a\tb"}, "--begin: 'a.*b': expected a time"),
    ({"begin": "counter"}, '--begin: "counter": is also in the command'),
    ({"program": "/bin/true"}, "--program: --workload is given too"),
])
def test_wrong_options_are_answered_with_what_is_expected(shared: Shared, given: dict[str, object], says: str) -> None:
    with pytest.raises(UserError, match=says):
        made(shared, **given)
