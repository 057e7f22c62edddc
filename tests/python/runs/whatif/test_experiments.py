# SPDX-License-Identifier: BSD-3-Clause
"""What `moscope what-if` runs: which runs it repeats, and the folders of its experiments."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from analysis.whatif.lines import HOWS, Subject
from moscope import cli, errors
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.runs import directory, inputs, job, options
from moscope.runs.options import Plan
from moscope.runs.whatif import again, main
from moscope.runs.whatif.main import Asked, Experiment
from moscope.workloads import registry

MakePlan = Callable[..., Plan]


def slug(name: str, how: str = "padded") -> str:
    return Experiment(Subject(name, (name,), 1), how, []).slug


def test_a_folder_is_named_after_the_lines_and_the_treatment() -> None:
    assert slug("vfsmount_lock") == "vfsmount_lock-padded" and slug("page-2.x", "free") == "page-2.x-free"
    assert slug("packed:stats") == "packed_stats-padded-0918c558", "docs/run-directory.md has it"


def test_each_name_has_a_folder_of_its_own() -> None:
    long = "program:std::map<" + "std::pair<int, long>, " * 40
    names = ("table<int*>", "table<int&>", "table_int__", "table<int", "table_int", "packed:stats", "packed_stats", long + "int>",
             long + "long>", "stats", "größe", "stats-free", slug("packed:stats"))
    found = [slug(name, how) for name in names for how in HOWS]
    assert len(set(found)) == len(names) * len(HOWS)
    assert all(one.isascii() and "/" not in one and len(one) < 200 for one in found)


@pytest.mark.parametrize("workload", ["counter", "apache", "OWN"])
def test_an_experiments_guest_has_the_programs_of_the_run(workload: str, shared: Shared, tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_REGISTERED", {w.name: w for w in registry.every()})
    name = workload
    if workload == "OWN":
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "mine.c").write_text("int main(void) { return 0; }\n")
        (tmp_path / "mine" / "workload.py").write_text(
            "from moscope.workloads import Workload, register\nregister(__file__, Workload('mine-1', 'mine', 'turns', lambda cores: ''))\n")
        workload, name = str(tmp_path / "mine"), "mine-1"
    plan = options.make(shared, options.Options(workload=workload, cores="1"))
    assert again.programs(tmp_path, {name}, None, directory.configuration(plan, [])["folders"]) == plan.programs


@pytest.fixture
def repeated(plan: MakePlan, point: Any, shared: Shared, monkeypatch: pytest.MonkeyPatch) -> Callable[[list[str], str | None], Any]:
    """Repeats a finished run, made with these options and by a network card with this steering, with no experiment."""
    def inputs_of(gatherer: inputs.Gatherer, one: Any) -> Any:
        return SimpleNamespace(digests=lambda: {"machine": str(gatherer._nic(gatherer.machine, one))})

    def repeat(sets: list[str], steering: str | None, **options: Any) -> Any:
        from moscope.config import load_machine

        made = plan(2, sets=sets, machine=load_machine("opteron48", sets))
        made.points[:] = [main.replace(one, steering=steering, **options) for one in made.points]
        digests = inputs.Gatherer(made.machine, made.programs, print).of(made.points[0]).digests()
        record = {"made_from": digests, "engine": directory.engine_digest(), "ops": 1, "windows": [{"ops": 1, "ticks": 1}]}
        chosen = SimpleNamespace(name=made.points[0].name, record=record)
        monkeypatch.setattr(main, "_point", lambda asked: (SimpleNamespace(path=made.out), chosen))
        monkeypatch.setattr(main.again, "plan_of", lambda run_dir: made)
        return main.run(Asked(made.out, None, None, 1, None), shared)

    monkeypatch.setattr(inputs.Gatherer, "of", inputs_of)
    monkeypatch.setattr(main, "_experiments", lambda asked, chosen: [])
    return repeat


def test_a_run_whose_options_set_the_cards_steering_is_repeated(repeated: Callable[..., Any]) -> None:
    document, failed = repeated(["nic.steering=fixed-port"], "rss")
    assert not failed and document["ok"]


def test_a_run_with_the_steering_of_its_workload_is_repeated(repeated: Callable[..., Any]) -> None:
    assert repeated([], "pin-every-20")[0]["ok"] and repeated([], None)[0]["ok"]


def test_as_many_windows_are_measured_as_the_run_has(repeated: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[Any] = []
    one = Experiment(Subject("x", ("x",), 1), "free", [{"line": 0, "free": True}])

    def measure(made: dict[str, Any], shared: Shared) -> tuple[dict[str, Any], list[Any]]:
        jobs.extend(made.values())
        return {}, []

    monkeypatch.setattr(main, "_experiments", lambda asked, chosen: [one])
    monkeypatch.setattr(main, "_measure", measure)
    repeated([], None, windows=50, until_error=0.03)
    assert [(job.point.windows, job.point.until_error) for job in jobs] == [(1, None)]


def test_the_file_of_a_point_keeps_the_results_of_earlier_experiments(repeated: Callable[..., Any], shared: Shared,
                                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    assert shared.out is not None
    faster = {"ops": 1, "windows": [{"ops": 2, "ticks": 1}]}

    def measure(made: dict[str, job.Job], shared: Shared) -> tuple[dict[str, Any], list[Any]]:
        for one in made.values():
            Path(one.folder).mkdir(parents=True, exist_ok=True)
        return dict.fromkeys(made, faster), []

    def tried(name: str, how: str) -> list[tuple[str, str]]:
        one = Experiment(Subject(name, (name,), 1), how, [{"line": 0, "free": True}])
        monkeypatch.setattr(main, "_experiments", lambda asked, chosen: [one])
        assert [(r["name"], r["as"]) for r in repeated([], None)[0]["results"]] == [(name, how)], "of this command"
        (file,) = shared.out.glob("*.json")  # type: ignore[union-attr]
        return sorted((r["name"], r["as"]) for r in json.loads(file.read_text())["results"])

    monkeypatch.setattr(main, "_measure", measure)
    assert tried("x", "free") == [("x", "free")]
    assert tried("y", "padded") == tried("y", "padded") == [("x", "free"), ("y", "padded")]
    shutil.rmtree(next(shared.out.glob("*/x-free")))
    assert tried("y", "free") == [("y", "free"), ("y", "padded")]
    (file,) = shared.out.glob("*.json")
    file.write_text(file.read_text().replace('"gain"', '"changed"'))
    assert tried("z", "free") == [("z", "free")]


@pytest.mark.parametrize(("more", "why"), [([], "no core waited for a line"),
                                           (["--as", "local"], "no controller sent a line over the network")])
def test_a_point_without_lines_to_try_is_said_to_have_none(more: list[str], why: str, repeated: Callable[..., Any], tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    document, _ = repeated([], None)
    monkeypatch.setattr(main, "run", lambda asked, shared: (document, []))
    assert cli.main(["what-if", str(tmp_path), "--all", "3", *more]) == 0
    assert capsys.readouterr().out == f"{document['point']}: nothing to try: {why}\n"


def test_a_run_of_another_engine_is_not_repeated(repeated: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    engines = iter(("of the run", "of now"))
    monkeypatch.setattr(directory, "engine_digest", lambda: next(engines))
    with pytest.raises(UserError, match="another build of the engine"):
        repeated([], None)


@pytest.mark.parametrize("options, run, said", [({}, {}, "was made by another version of moscope"),
                                                ([], {}, "has no readable options.json or run.json")])
def test_documents_of_something_else_are_no_run_to_repeat(options: Any, run: Any, said: str, tmp_path: Path) -> None:
    for name, document in ((directory.IDENTITY, options), ("run.json", run)):
        (tmp_path / name).write_text(json.dumps(document))
    with pytest.raises(UserError, match=said):
        main.again.plan_of(tmp_path)


@pytest.mark.parametrize(("file", "what"), [("sweep.json", "a sweep"), ("point.json", "one point")])
def test_a_sweep_and_a_point_are_not_repeated(file: str, what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / file).write_text("{}")
    assert cli.main(["what-if", str(tmp_path), "--all", "3"]) == errors.UserError.exit_code
    assert capsys.readouterr().err == f"{tmp_path}: holds {what}: expected the folder that `moscope run --out` wrote\n"


def test_a_run_whose_config_is_null_is_repeated(tmp_path: Path) -> None:
    for name, document in ((directory.IDENTITY, {"machine": "small", "set": [], "seed": 1, "points": []}), ("run.json", {"config": None})):
        (tmp_path / name).write_text(json.dumps(document))
    assert main.again.plan_of(tmp_path).machine.name == "small"


@pytest.mark.parametrize("arguments", [["what-if", "RUN", "--all", "1"], ["export", "RUN", "--to", "pprof"]])
def test_a_run_without_a_finished_point_is_said_to_have_none(arguments: list[str], tmp_path: Path,
                                                             capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.json").write_text('{"schema": "moscope.run/1", "points": []}')
    assert cli.main([str(tmp_path) if word == "RUN" else word for word in arguments]) == errors.UserError.exit_code
    assert capsys.readouterr().err == f"{tmp_path}: has no finished point: expected a run that has one\n"
