# SPDX-License-Identifier: BSD-3-Clause
"""Functions of the package return tables whose figures are those of the commands, raise the commands' errors, and leave nothing
behind when they are interrupted."""

import ast
import dataclasses
import errno
import inspect
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
import synthetic_run

import moscope as package
from moscope import paths
from moscope.api import runs, sweeps
from moscope.errors import TimeEnded
from moscope.sweeps import main as sweep_main
from moscope.traces.document import UNFINISHED

Moscope = Callable[..., subprocess.CompletedProcess[str]]
SCRIPT = "c0 ld A@n1; c6 st A@n1"


@pytest.fixture(scope="module")
def traced() -> package.Trace:
    return package.trace(SCRIPT, "small")


def test_latency_has_the_figures_of_the_command(moscope: Moscope) -> None:
    seen: list[package.Progress] = []
    measured = package.latency("small", bandwidth=True, progress=seen.append)
    rows = json.loads(moscope("latency", "--machine", "small", "--bandwidth", "--json").stdout)["rows"]
    cycles = {row["name"]: row["measured"] for row in rows}
    assert {r["name"]: r["measured"] for r in (*measured.rows.to_pylist(), *measured.bandwidths.to_pylist())} == cycles
    parts = measured.segments.to_pylist()
    for row in measured.rows.to_pylist():
        assert sum(p["cycles"] for p in parts if p["name"] == row["name"]) == pytest.approx(row["measured"], abs=0.01)
        assert measured.traces[row["name"]].accesses.num_rows == 64
    assert [p.phase for p in seen][:2] == ["measuring L1", "measuring L2"]


def test_a_call_whose_options_are_refused_leaves_the_folder_for_corrected_ones(tmp_path: Path) -> None:
    for name in ("first", "second"):
        (tmp_path / name).write_text("no kernel")
        with pytest.raises(package.UserError, match=f"{name}: is not a Linux kernel"):
            package.run("counter", kernel=str(tmp_path / name), cores=1, out=tmp_path / "out")


def test_the_tables_of_a_trace_agree_with_its_document(traced: package.Trace, moscope: Moscope) -> None:
    assert traced.document == json.loads(moscope("trace", SCRIPT, "--machine", "small", "--json").stdout)
    accesses, segments = traced.accesses.to_pylist(), traced.segments.to_pylist()
    assert [a["latency_fs"] for a in accesses] == [sum(s["fs"] for s in segments if s["access"] == a["id"]) for a in accesses]
    assert traced.messages.num_rows >= len(traced.document["messages"])
    assert traced.transitions.column("event").to_pylist() == [t["event"] for t in traced.document["transitions"]]
    assert set(traced.links.column("from_chip").to_pylist()) == {0, 1, 3}


def test_a_trace_delays_the_messages_that_its_script_delays(moscope: Moscope) -> None:
    script = "c0 ld A@n0; c2 ld A@n0; c0 st A@n0 Upgrade>Directory-0+100ns | c2 st A@n0"
    assert package.trace(script, "small").document == json.loads(moscope("trace", script, "--machine", "small", "--json").stdout)


@pytest.mark.parametrize("seed", [None, 3])
def test_a_script_file_is_traced_as_the_command_traces_it(moscope: Moscope, tmp_path: Path, seed: int | None) -> None:
    file = tmp_path / "own.toml"
    file.write_text('title = "t"\nscript = "c0 st A@n0; c1 ld A@n0"\nmachine = "small"\nprotocol = "MSI"\ncores = 2\nseed = 2\n'
                    'caches = "tiny"\nchecked = true\n')
    found = package.trace(str(file), seed=seed)
    assert found.document == json.loads(moscope("trace", str(file), "--json", *([] if seed is None else ["--seed", "3"])).stdout)
    assert found.document["seed"] == (seed or 2) and found.document["violations"] == []
    assert found.machine == package.Machine("small", protocol="MSI")


def test_a_trace_with_an_access_that_did_not_end_shows_itself_in_a_notebook(traced: package.Trace) -> None:
    first, last = traced.document["accesses"]
    stopped = dataclasses.replace(traced, document={**traced.document, "accesses": [first, {**last, **UNFINISHED, "done": None}]})
    assert "<td style=\"text-align: left\">not done</td>" in stopped._repr_html_()
    assert stopped.accesses.column("latency_fs").to_pylist() == [first["latency_fs"], None]


def test_a_result_is_printed_as_one_line_with_its_main_figures(traced: package.Trace) -> None:
    assert repr(traced) == f"Trace({traced.machine!r}, {traced.document['script']!r}, seed=1)"
    many = package.trace("; ".join(f"c0 ld {64 * n:#x}" for n in range(40)), "small")
    assert len(repr(many)) < 150
    latency = package.Latency(package.Machine("small"), "MSI", pyarrow.table({"name": ["L1", "L2"], "measured": [3.0, 14.04]}),
                              pyarrow.table({}), pyarrow.table({}), {})
    assert repr(latency) == "Latency(Machine('small'), 'MSI', cycles={'L1': 3.0, 'L2': 14.0})"
    checked = package.Check({"protocol": "MSI", "machine": "small", "ok": False, "ops": 9, "violations": ["a\nb"], "reached": 5,
                             "declared": 71})
    assert repr(checked) == "Check('MSI', 'small', ok=False, ops=9, violations=1, reached=5, declared=71)"
    verified = package.Verification({"protocol": "MSI", "caches": 2, "lines": 1, "ok": True, "complete": True, "states": 99,
                                     "unreachable": ["x"]})
    assert repr(verified) == "Verification('MSI', caches=2, lines=1, ok=True, complete=True, states=99, unreachable=1)"


def test_no_module_of_the_package_has_a_public_name() -> None:
    assert not {part.name for part in pkgutil.iter_modules(package.__path__)} & set(package.__all__)


def test_importing_the_package_loads_none_of_its_parts() -> None:
    code = "import sys, moscope; print([m for m in sys.modules if m.startswith(('moscope.', 'typer', 'pyarrow', 'numpy'))])"
    env = {**os.environ, "PYTHONPATH": str(paths.import_dir())}
    got = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert set(ast.literal_eval(got.stdout)) <= {"moscope._version", "moscope.errors", "moscope.paths"}


def test_every_name_of_the_package_is_there_and_documented(root: Path) -> None:
    page = (root / "docs" / "python.md").read_text(encoding="utf-8")
    for name in package.__all__:
        assert getattr(package, name) is not None
        assert f"`{name}" in page or f"moscope.{name}" in page, name


def test_a_run_directory_is_opened_as_tables(tmp_path: Path) -> None:
    run = package.open_run(synthetic_run.write_run(tmp_path / "run", cores=(1, 12), kernels=("stock", "pk")))
    assert run.points.column("cores").to_pylist() == [1, 12, 1, 12]
    for row in run.points.to_pylist():
        assert sum(row[part] for part in ("busy", "idle", "core", "memory")) == pytest.approx(1)
    assert set(run.lines.column("point").to_pylist()) == set(run.points.column("point").to_pylist())
    assert run.sql("SELECT count(*) AS transactions FROM pairs").column("transactions").to_pylist() == [run.pairs.num_rows]
    asked = run.sql("SELECT point, sum(stall)::BIGINT AS stall FROM lines GROUP BY point ORDER BY point")
    lines = run.lines.to_pylist()
    assert asked.to_pylist() == [{"point": point, "stall": sum(r["stall"] for r in lines if r["point"] == point)}
                                 for point in sorted({r["point"] for r in lines})]
    with pytest.raises(package.UserError, match="transactions.parquet: no such file: expected a run with detail"):
        run.transactions  # noqa: B018


def test_the_docs_list_the_columns_of_the_points_of_a_run(root: Path) -> None:
    page = (root / "docs" / "python.md").read_text(encoding="utf-8")
    (row,) = [line for line in page.splitlines() if line.startswith("| `points` | workload")]
    assert re.findall(r"`(\w+)`", row.partition(": those")[0]) == ["points", *runs.POINTS]


@pytest.mark.parametrize("query", [
    "SELECT count(*) FROM lines JOIN pairs USING (point, line, use)",
    "SELECT count(*) FROM lines SEMI JOIN transfers USING (point, line, use)",
    "SELECT COLUMNS('.*_stall') FROM lines",
    "UNPIVOT lines ON stall, spin",
    "SELECT count(*) FROM Lines, Points",
])
def test_a_query_may_need_the_columns_of_its_tables(query: str, tmp_path: Path) -> None:
    assert package.open_run(synthetic_run.write_run(tmp_path / "run", cores=(1,))).sql(query).num_rows


def test_a_query_of_a_table_that_the_run_lacks_says_why(tmp_path: Path) -> None:
    run = package.open_run(synthetic_run.write_run(tmp_path / "run", cores=(1,)))
    with pytest.raises(package.UserError, match="transactions.parquet: no such file: expected a run with detail"):
        run.sql("SELECT line FROM Transactions JOIN lines USING (point, line)")


@pytest.mark.parametrize("query", ["SELECT nothing FROM lines", "SELEKT 1", "SELECT * FROM elsewhere", 5])
def test_a_query_that_cannot_be_answered_is_a_user_error(query: Any, tmp_path: Path) -> None:
    run = package.open_run(synthetic_run.write_run(tmp_path / "run", cores=(1,)))
    with pytest.raises(package.UserError, match="Run.sql: .*(nothing|SELEKT|elsewhere|5: expected a string)"):
        run.sql(query)


@pytest.mark.parametrize("text", ["[]", "null", "{}", '{"points": null}', '{"points": [], "failed": ["x"]}'])
def test_a_run_json_of_something_else_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(package.UserError, match="run.json: (is not from a run|its list of failed points is malformed): expected"):
        package.open_run(tmp_path)


def test_the_folder_of_a_point_or_a_sweep_is_refused_with_what_to_open(tmp_path: Path) -> None:
    run = synthetic_run.write_run(tmp_path / "run", cores=(1,))
    point = next((run / "points").iterdir())
    with pytest.raises(package.UserError, match=f"^{point}: holds one point: expected the folder of its run, {run}$"):
        package.open_run(point)
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(package.UserError, match="holds a sweep, whose results are in table.parquet .*: expected the folder that"):
        package.open_run(tmp_path)


def test_points_say_how_their_throughput_changed(tmp_path: Path) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(1, 12))
    document = json.loads((folder / "run.json").read_text())
    document["points"][1]["trend"] = {"windows": 1, "before": 9.0, "after": 1.0}
    (folder / "run.json").write_text(json.dumps(document))
    points = package.open_run(folder).points
    assert [points.column(f"trend_{side}").to_pylist() for side in ("before", "after")] == [[None, 9.0], [None, 1.0]]


def test_a_run_on_gem5_has_no_tables(tmp_path: Path) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(1,))
    document = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps({**document, "engine": "gem5 24.0.0.1"}))
    with pytest.raises(package.UserError, match=r"points/exim-gem5-distro-1/lines.parquet: no such file: expected a run on moscope's own"):
        assert package.open_run(folder).lines


def test_a_machine_with_changes_is_fixed_in_a_sweep_but_no_value_of_an_axis() -> None:
    changed = package.Machine("small", links_clock="2GHz")

    def described(axes: dict[str, Any], fixed: dict[str, Any]) -> dict[str, Any]:
        return sweeps._described("trace", axes, {"script": SCRIPT, **fixed}, (), (), None, None).fixed

    assert described({}, {"machine": changed}) == {"script": SCRIPT, "machine": "small", "links.clock": "2GHz"}
    with pytest.raises(package.UserError, match=r"moscope.sweep: Machine\('small', .*: expected the name or the file of a machine here"):
        described({"machine": ["small", changed]}, {})
    with pytest.raises(package.UserError, match=r"moscope.sweep: fixed: links.clock: is also set by the machine: expected one"):
        described({}, {"machine": changed, "links.clock": "1GHz"})


def test_a_sweep_has_a_row_for_each_point(tmp_path: Path) -> None:
    seen: list[package.Progress] = []
    machine = package.Machine("small", topology=[(0, 1), (1, 2), (2, 3), (3, 0)])
    found = package.sweep("trace", {"links.clock": ["1GHz", "2GHz"]}, fixed={"script": SCRIPT}, machine=machine, out=tmp_path / "out",
                          progress=seen.append)
    slow, fast = found.points.to_pylist()
    assert (slow["links.clock"], fast["links.clock"]) == ("1GHz", "2GHz")
    expected = package.trace(SCRIPT, machine.with_(links_clock="1GHz"))
    assert [slow["access1_cycles"], slow["access2_cycles"]] == pytest.approx(expected.accesses.column("latency_cycles").to_pylist())
    assert max(p.share for p in seen) == 1
    with pytest.raises(package.UserError, match="expected a known name, such as links.clock"):
        package.sweep("trace", {"links.clok": ["1GHz"]}, fixed={"script": SCRIPT})


def test_a_failed_point_of_a_sweep_raises_the_error_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    failed = {"kind": "TimeEnded", "error": "late", "exit_code": 4}
    monkeypatch.setattr(sweep_main, "run", lambda *_, **__: sweep_main.Outcome({}, [failed]))
    with pytest.raises(TimeEnded, match="^late$"):
        package.sweep("trace", {"seed": [1]}, fixed={"script": SCRIPT})


def test_results_show_themselves_in_a_notebook(traced: package.Trace, tmp_path: Path) -> None:
    run = package.open_run(synthetic_run.write_run(tmp_path / "a<b", cores=(1,)))
    assert "a&lt;b" in run._repr_html_() and "<td" in run._repr_html_()
    assert "<svg" in traced._repr_html_() and "c6 st A@n1" in traced._repr_html_()
    assert "links.clock" in package.Machine("small", links_clock="2.4GHz")._repr_html_()


@pytest.mark.parametrize("call, arguments", [
    (lambda: package.trace("c0 ld", "small"), ("trace", "c0 ld", "--machine", "small")),
    (lambda: package.run("nope"), ("run", "--workload", "nope")),
    (lambda: package.run("counter", cores=[1, 99]), ("run", "--workload", "counter", "--cores", "1,99")),
    (lambda: package.latency(package.Machine("small", {"chips": 99})), ("latency", "--machine", "small", "--set", "chips=99")),
])
def test_errors_have_the_text_of_the_command_line(call: Callable[[], Any], arguments: tuple[str, ...], moscope: Moscope) -> None:
    with pytest.raises(package.UserError) as error:
        call()
    assert moscope(*arguments).stderr.strip() == str(error.value).strip()


@pytest.mark.parametrize("end, raised, said", [
    (KeyboardInterrupt(), KeyboardInterrupt, ""),
    (OSError(errno.ENOSPC, "No space left on device", "run.json"), package.UserError, "run.json: No space left on device: expected"),
])
def test_a_run_without_out_that_ends_early_leaves_nothing(end: BaseException, raised: type[BaseException], said: str, tmp_path: Path,
                                                          monkeypatch: pytest.MonkeyPatch) -> None:
    from moscope.runs import main

    def measure(plan: Any, *_: Any) -> None:
        assert list(tmp_path.iterdir()) == [plan.out]
        raise end

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(main, "measure", measure)
    with pytest.raises(raised, match=said or None):
        package.run("counter", kernel="distro", cores=1)
    assert not list(tmp_path.iterdir())


def test_run_takes_each_option_of_the_command_and_hands_it_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from moscope.runs import main, options

    names = {f.name for f in dataclasses.fields(options.Options)}
    assert names <= set(inspect.signature(package.run).parameters)

    def measure(plan: options.Plan, *_: Any) -> None:
        assert [(p.until_error, p.windows) for p in plan.points] == [(0.03, 20)]
        raise KeyboardInterrupt

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(main, "measure", measure)
    with pytest.raises(KeyboardInterrupt):
        package.run("counter", kernel="distro", cores=1, windows=20, until_error="3%")
    with pytest.raises(package.UserError, match="until-error: 3: expected more than 0%"):
        package.run("counter", kernel="distro", cores=1, until_error="3")


@pytest.mark.long
def test_a_run_hands_its_progress_on_and_its_tables_outlive_the_call(tmp_path: Path) -> None:
    seen: list[package.Progress] = []
    run = package.run("falseshare", kernel="distro", cores=4, windows=1, progress=seen.append)
    assert run.top_lines.to_pylist()[0]["name"] == "falseshare:packed_counters"
    assert run.report.is_file() and run.lines.num_rows
    assert {"finished"} < {p.phase for p in seen if p.task == "falseshare-distro-4"}
