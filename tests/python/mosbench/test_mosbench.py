# SPDX-License-Identifier: BSD-3-Clause
"""`moscope mosbench`: which points it runs, and its errors. The figures are tested in tests/analysis/mosbench."""

import json
from pathlib import Path

import jsonschema
import pytest

from analysis import paper
from moscope import jsonio, paths, workloads
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.guest import kernel
from moscope.mosbench import applications, main, show
from moscope.mosbench.applications import APPLICATIONS, Application, Curve
from moscope.sweeps import axes, jobs, speeds
from moscope.sweeps.main import Outcome

THREE = Application("a", "A", 5, (Curve("1", "w1", "stock"), Curve("2", "w2", "stock"), Curve("3", "w3", "pk")), "App: x")


def points(wanted: main.Wanted, chosen: list[Application], known: set[str]) -> list[tuple[object, ...]]:
    found = axes.points(main.spec(Shared(quiet=True), wanted, chosen, known))
    return [(p["workload"], p["kernel"], p["cores"]) for p in found]


def test_only_pairs_of_workload_and_kernel_that_are_curves_are_points() -> None:
    assert points(main.Wanted(cores="1,48"), [THREE], {"w1", "w2", "w3"}) == [
        ("w1", "stock", 1), ("w1", "stock", 48), ("w2", "stock", 1), ("w2", "stock", 48), ("w3", "pk", 1), ("w3", "pk", 48)]


def test_a_curve_between_the_bars_is_left_out_where_its_workload_is_missing() -> None:
    assert {w for w, _, _ in points(main.Wanted(cores="1"), [THREE], {"w1", "w3"})} == {"w1", "w3"}


def test_quick_measures_three_core_counts_until_the_error_is_below_10_percent() -> None:
    described = main.spec(Shared(quiet=True), main.Wanted(quick=True), [THREE], {"w1", "w2", "w3"})
    assert described.axes["cores"] == [1, 12, 48] and described.fixed["until_error"] == "10%"
    given = main.spec(Shared(quiet=True), main.Wanted(quick=True, cores="1,4", until_error="3%"), [THREE], {"w1", "w2", "w3"})
    assert given.axes["cores"] == [1, 4] and given.fixed["until_error"] == "3%"


def test_a_smaller_machine_has_the_usual_counts_up_to_all_its_cores() -> None:
    small = Shared(quiet=True, machine="small")
    for quick, counts in ((True, [1, 8]), (False, [1, 4, 6, 8])):
        assert main.spec(small, main.Wanted(quick=quick), [THREE], {"w1", "w2", "w3"}).axes["cores"] == counts


def test_quick_measures_shorter_windows_of_each_workload() -> None:
    known = {w.name for w in workloads.every()}
    chosen = applications.chosen(None, known)
    job = jobs.find("run")

    def lengths(wanted: main.Wanted) -> dict[tuple[object, ...], float]:
        return {(p["workload"], p["kernel"], p["cores"]): (job.rough(p) or ("", 0.0))[1]
                for p in axes.points(main.spec(Shared(quiet=True), wanted, chosen, known))}

    long = lengths(main.Wanted(cores="1,12,48", windows=12, until_error="10%"))
    short = lengths(main.Wanted(quick=True))
    assert short.keys() == long.keys() and all(short[point] < long[point] for point in long)


def test_the_card_has_the_papers_limits_unless_they_are_set() -> None:
    of_paper = main.spec(Shared(quiet=True), main.Wanted(), [THREE], {"w1", "w3"})
    assert of_paper.fixed["nic.in_per_second"] == of_paper.fixed["nic.out_per_second"] == 5_000_000
    sets = [f"{key}={value}" for key, value in main.CARD.items()]
    assert paper.is_of({"machine": "opteron48", "config": {"machine": "opteron48", "set": sets}})
    without = main.spec(Shared(quiet=True, sets=["nic.in_per_second=0"]), main.Wanted(), [THREE], {"w1", "w3"})
    assert without.fixed["nic.in_per_second"] == "0"


@pytest.mark.parametrize("changed", ["topology=straight_ladder", "core_clock=3GHz", "links.clock=2.4GHz"])
def test_a_machine_that_a_set_changes_is_not_the_papers(changed: str) -> None:
    described = main.spec(Shared(quiet=True, sets=[changed]), main.Wanted(quick=True), [THREE], {"w1", "w3"})
    found = main.sets(described)
    assert changed in found and len(found) == 1 + len(main.CARD)
    assert not paper.is_of({"machine": "opteron48", "config": {"machine": "opteron48", "set": found}})


def test_a_machine_file_that_keeps_the_papers_name_is_not_the_papers_machine() -> None:
    assert not paper.is_of({"machine": "opteron48", "config": {"machine": "mine.py", "set": []}})


def test_a_run_whose_options_are_not_recorded_is_not_the_papers_machine() -> None:
    assert not paper.is_of({"machine": "opteron48", "engine": "gem5 24.0"})


@pytest.mark.parametrize(("cores", "expected"), [
    (48, "Throughput per core on 48 cores / on 1 core, and what limits the last curve on 48 cores"),
    (1, "What limits the last curve on 1 core"), (0, "What limits the last curve")])
def test_the_table_of_one_core_has_no_ratio_in_its_title(cores: int, expected: str) -> None:
    assert show.title(cores) == expected


def test_the_papers_limit_is_that_of_its_48_cores_whatever_was_measured(capsys: pytest.CaptureFixture[str]) -> None:
    curve = {"label": "PK", "ratio": None, "ratio_stderr": None, "paper": None}
    show.table({"most_cores": 2, "applications": [{"title": "A", "curves": [curve], "limit": None, "paper_limit": "HW: x"}]})
    assert "paper, 48 cores: HW: x" in capsys.readouterr().out


def test_points_that_were_not_steady_are_named_below_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    steady = {"workload": "exim", "kernel": "pk", "cores": 1, "windows": [{}] * 24}
    falling = {**steady, "kernel": "stock", "cores": 48, "trend": {"windows": 1, "before": 880.0, "after": 118.0}}
    document = {"applications": [], "most_cores": 48, "points": [steady, falling], "report": "r", "table": "t"}
    show.show(document, Outcome({}, []), Shared(quiet=True))
    (named,) = [line for line in capsys.readouterr().out.splitlines() if "throughput falls" in line]
    assert named.startswith("exim on stock, 48 cores: throughput falls from 880 per second in the first window to 118")


def test_an_application_is_refused_with_the_names_of_those_that_run() -> None:
    with pytest.raises(UserError, match='--workload: no application called "gmak".* as gmake .one of exim, .*metis\\)'):
        applications.chosen("gmak", {"exim"})
    with pytest.raises(UserError, match="--workload: metis: moscope has no workload metis or metis-2m yet: expected some of exim"):
        applications.chosen("exim,metis", {"exim"})


def test_each_application_has_a_figure_of_its_own_and_the_papers_seven_are_there() -> None:
    assert len({a.figure for a in APPLICATIONS}) == len({a.name for a in APPLICATIONS}) == 7
    known = {w.name for w in workloads.every()}
    assert [a.name for a in applications.chosen(None, known)][:3] == ["exim", "memcached", "apache"]


def test_several_values_of_a_set_are_refused() -> None:
    with pytest.raises(UserError, match=r"--set: several values .*expected one, or moscope sweep"):
        main.spec(Shared(quiet=True, sets=["links.clock=1GHz,2.4GHz"]), main.Wanted(), [THREE], {"w1", "w2", "w3"})


@pytest.mark.long
def test_the_command_measures_exim_and_goes_on_with_more_core_counts(tmp_path: Path) -> None:
    schema = json.loads((paths.PACKAGE / "schemas" / "moscope.mosbench.1.json").read_text())
    del schema["properties"]["failed"]
    for counts, done in (("1", 2), ("1,2", 4)):
        wanted = main.Wanted(workload="exim", cores=counts, windows=1)
        document, outcome = main.run(Shared(quiet=True, out=tmp_path / "out"), wanted, say=lambda _: None)
        assert outcome.exit_code == 0 and len(document["points"]) == done
        jsonschema.validate(document, schema)
    assert all(c["ratio"] > 0.3 for c in document["applications"][0]["curves"])


def test_a_dry_run_names_what_is_built_and_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "is_kept", lambda _: False)
    wanted = main.Wanted(workload="gmake", cores="1,2")
    document, _ = main.run(Shared(quiet=True, out=tmp_path / "out"), wanted, say=lambda _: None, dry_run=True)
    jsonio.validate(document)
    assert document["points"] == 4 and "the kernel (7 minutes)" in document["built_first"]
    assert not {"table", "report"} & document.keys() and not (tmp_path / "out").exists()


@pytest.mark.parametrize("quick", [True, pytest.param(False, marks=pytest.mark.long)])
def test_the_documentation_states_the_estimate_of_recorded_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, quick: bool) -> None:
    monkeypatch.setattr(kernel, "is_kept", lambda _: False)
    monkeypatch.setattr(speeds, "known", dict)
    shared = Shared(quiet=True, out=tmp_path / "out")
    document, _ = main.run(shared, main.Wanted(quick=quick), say=lambda _: None, dry_run=True, at_once=2)
    said = " ".join((paths.root() / "docs" / "mosbench.md").read_text().split())
    of = f"the {document['points']} points of `--quick`" if quick else f"all {document['points']} points of a full run"
    assert f"of {speeds.duration(document['estimated_s'])} for {of}" in said
