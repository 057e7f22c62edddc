# SPDX-License-Identifier: BSD-3-Clause
"""The run directory: what is finished is found again, what was measured otherwise is not mixed with it."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moscope import jsonio, open_run
from moscope.cli import Shared
from moscope.errors import UserError, WorkloadFailed
from moscope.runs import directory, main
from moscope.runs.options import Plan

MakePlan = Callable[..., Plan]
NO_PROCESS = 4_194_999  # more than any process has


def measured(plan: Plan, cores: int, **more: Any) -> None:
    point = next(p for p in plan.points if p.cores == cores)
    with jsonio.atomic_dir(directory.point_folder(plan.out, point)) as folder:
        document = {"workload": "fake", "cores": cores, "engine": directory.engine_digest(), **more}
        (folder / "point.json").write_text(json.dumps(document))


def test_a_new_directory_has_no_points(plan: MakePlan) -> None:
    assert directory.open_for(plan(1, 2)) == {}


def test_finished_points_are_found_again(plan: MakePlan) -> None:
    directory.open_for(plan(1, 2))
    measured(plan(1, 2), 2)
    found = directory.open_for(plan(1, 2))
    assert list(found) == ["fake-distro-2"] and found["fake-distro-2"]["cores"] == 2


NOW = {"kernel": "1" * 16, "programs": "2" * 16, "protocol": "3" * 16, "machine": "4" * 16}


@pytest.mark.parametrize(("more", "why"), [
    ({"made_from": NOW}, None),
    ({"made_from": NOW, "engine": "0" * 16}, "there is another build of the engine now"),
    ({"made_from": NOW | {"machine": "0" * 16}}, "there is another description of the machine now"),
    ({"made_from": NOW | {"programs": "0" * 16}}, "there is another set of programs in the guest now"),
    ({"made_from": NOW | {"kernel": "0" * 16, "programs": "0" * 16}},
     "there is another kernel image and another set of programs in the guest now"),
    ({"made_from": NOW | {"protocol": "0" * 16}}, "there is another protocol now"),
    ({}, "its record does not name its inputs"),
])
def test_points_made_from_other_inputs_count_as_outdated(plan: MakePlan, more: dict[str, Any], why: str | None) -> None:
    directory.open_for(plan(1, 2))
    measured(plan(1, 2), 2, **more)
    found = directory.open_for(plan(1, 2))
    assert directory.outdated(found, {"fake-distro-1": NOW, "fake-distro-2": NOW}) == ({"fake-distro-2": why} if why else {})


def test_a_damaged_point_is_measured_again(plan: MakePlan) -> None:
    directory.open_for(plan(1))
    measured(plan(1), 1)
    (plan(1).out / "points/fake-distro-1/point.json").write_text('{"workload": ')
    assert directory.open_for(plan(1)) == {}


@pytest.mark.parametrize(("changes", "says"), [
    ({"seed": 2}, r"\(--seed 1, not 2\)"),
    ({"sets": ["probe_filter.enabled=false"]}, r"\(--set none, not probe_filter.enabled=false\)"),
    ({"threads": 2}, r"\(--threads 1, not 2 or more\)"),
    ({"seed": 2, "threads": 2}, r"\(--seed 1, not 2; --threads 1, not 2 or more\)"),
])
def test_other_options_are_a_user_error_that_names_them(plan: MakePlan, changes: dict[str, Any], says: str) -> None:
    directory.open_for(plan(1, 2))
    with pytest.raises(UserError, match="or another --out") as error:
        directory.open_for(plan(1, 2, **changes))
    assert re.search(says, str(error.value))


def test_differing_times_are_written_as_options(plan: MakePlan) -> None:
    before = plan(1, 2)
    directory.open_for(replace(before, points=[replace(p, warmup=10**12, begin=None, kernel="distro") for p in before.points]))
    with pytest.raises(UserError, match=r"\(--kernel distro, not pk; --warmup 1ms, not 1500us; --begin none, not 2s; "
                                        r"--until-error none, not 3%\)"):
        directory.open_for(replace(before, points=[replace(p, kernel="pk", warmup=1500 * 10**9, begin=2 * 10**15, until_error=0.03)
                                                   for p in before.points]))


def test_scripts_that_differ_are_not_written_out(plan: MakePlan) -> None:
    before = plan(1, 2)
    directory.open_for(replace(before, points=[replace(p, image="#!/bin/sh\nmake\n") for p in before.points]))
    with pytest.raises(UserError, match=r"\(another image\)"):
        directory.open_for(replace(before, points=[replace(p, image="#!/bin/sh\nmake all\n") for p in before.points]))


def test_two_or_more_threads_are_the_same_option_and_one_is_another(plan: MakePlan) -> None:
    directory.open_for(plan(1, threads=2))
    assert directory.open_for(plan(1, threads=8)) == {}
    for one in (None, 1):
        with pytest.raises(UserError, match="--threads 2 or more, not 1"):
            directory.open_for(plan(1, threads=one))


def test_options_that_were_refused_before_any_point_was_measured_can_be_corrected(plan: MakePlan, shared: Shared, tmp_path: Path) -> None:
    wrong = plan(1)
    with pytest.raises(UserError, match="No such file or directory"):
        main.run(replace(wrong, points=[replace(p, kernel=str(tmp_path / "bzImage")) for p in wrong.points]), shared)
    assert directory.open_for(wrong) == {}


def test_a_run_that_ends_without_a_point_gives_up_its_options_though_a_killed_process_left_a_folder(plan: MakePlan) -> None:
    with directory.opened(plan(1)):
        (plan(1).out / f"points/.fake-distro-1.partial-{NO_PROCESS}").mkdir()
    assert directory.open_for(plan(1, seed=2)) == {}


def test_a_run_that_ends_without_a_point_keeps_the_options_of_one_that_measures_in_the_same_folder(plan: MakePlan) -> None:
    with directory.opened(plan(1)):
        (plan(1).out / f"points/.fake-distro-1.partial-{os.getpid()}").mkdir()
    with pytest.raises(UserError, match="seed 1, not 2"):
        directory.open_for(plan(1, seed=2))


def test_a_run_with_a_point_keeps_its_options(plan: MakePlan) -> None:
    directory.open_for(plan(1))
    measured(plan(1), 1)
    directory.release(plan(1).out)
    assert list(directory.open_for(plan(1))) == ["fake-distro-1"]


def test_other_core_counts_are_a_user_error(plan: MakePlan) -> None:
    directory.open_for(plan(1, 2))
    with pytest.raises(UserError, match="--cores 1,2, not 1,4"):
        directory.open_for(plan(1, 4))


def test_a_folder_with_other_things_is_left_alone(plan: MakePlan) -> None:
    made = plan(1)
    made.out.mkdir()
    (made.out / "thesis.tex").write_text("years of work")
    with pytest.raises(UserError, match="expected a new or empty folder"):
        directory.open_for(made)
    assert [p.name for p in made.out.iterdir()] == ["thesis.tex"]


def test_a_file_in_the_folders_place_is_a_user_error(plan: MakePlan) -> None:
    made = plan(1)
    made.out.write_text("")
    with pytest.raises(UserError, match="expected a folder"):
        directory.open_for(made)


def test_run_json_tells_the_whole_machine(plan: MakePlan, tmp_path: Path) -> None:
    made = plan(1)
    directory.open_for(made)
    document = directory.write_run(made, [], ok=False)
    jsonio.validate(document)
    assert json.loads((made.out / "run.json").read_text()) == document and "failed" not in document
    config = document["config"]
    assert config["description"]["l2.size"] == "512KiB" and [0, 1] in config["edges"] and len(config["hops"]) == 8


def test_run_json_tells_which_points_failed_and_why(plan: MakePlan) -> None:
    made, error = plan(1), WorkloadFailed("fake-distro-1: ended with status 139")
    error.point = "fake-distro-1"
    directory.open_for(made)
    document = directory.write_run(made, [], False, [error, UserError("the report: no room")])
    jsonio.validate(document)
    assert document["failed"] == [{"point": "fake-distro-1", "kind": "WorkloadFailed", "error": str(error), "exit_code": 1}]
    (found,) = open_run(made.out).errors
    assert type(found) is WorkloadFailed and str(found) == str(error)
