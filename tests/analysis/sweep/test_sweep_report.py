# SPDX-License-Identifier: BSD-3-Clause
"""The report of a sweep, from a folder made up of 48 points on four axes."""

import errno
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import browser
import pyarrow as pa
import pytest
import synthetic_run
from pyarrow import parquet

import analysis
from analysis.page.markup import code
from analysis.run_directory import RunDirectoryError
from analysis.sweep import curves, expression, topologies
from analysis.sweep.main import LIST, caption, main, write_plot, write_report
from analysis.sweep.table import Sweep, load, quantities
from moscope import cli, reports
from moscope.commands import export, report  # noqa: F401  register themselves

AXES: dict[str, list[Any]] = {
    "cores": [12, 48], "topology": ["ring", "twisted_ladder", "straight_ladder", "full"],
    "workload": ["counter", "ticketlock", "falseshare"], "probe_filter.enabled": [True, False]}
EDGES = {"ring": [[n, (n + 1) % 8] for n in range(8)], "full": [[a, b] for a in range(8) for b in range(a)],
         "twisted_ladder": [[0, 1], [0, 2], [1, 3], [2, 3], [2, 5], [3, 4], [4, 5], [4, 6], [5, 7], [6, 7]],
         "straight_ladder": [[0, 1], [0, 2], [1, 3], [2, 3], [2, 4], [3, 5], [4, 5], [4, 6], [5, 7], [6, 7]]}


def write_sweep(folder: Path) -> Path:
    rows, points = [], {}
    for i, values in enumerate(product(*AXES.values())):
        params = dict(zip(AXES, values, strict=True))
        failed = i == 5
        rows.append({**params, "point": f"p{i}", "status": "failed" if failed else "done",
                     "throughput_per_s": None if failed else 1e6 * (1 + i % 7) / params["cores"], "stderr_per_s": None if failed else 2e3,
                     "cycles.busy": 0.25, "seconds": 3.5, "error": "the guest died" if failed else None})
        points[f"p{i}"] = {"edges": EDGES[params["topology"]]}
    (folder / "workflow").mkdir(parents=True)
    parquet.write_table(pa.Table.from_pylist(rows), folder / "table.parquet")
    (folder / "workflow" / "config.json").write_text(json.dumps({"points": points}))
    failures = [{"error": "the guest died", "kind": "GuestDied", "command": "./moscope run --workload counter --set topology=ring"}]
    (folder / "sweep.json").write_text(json.dumps({"failed": failures, "config": {
        "name": "study", "job": "run", "axes": AXES, "figures": ["throughput_per_s"]}}))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sweep(tmp_path_factory.mktemp("sweep") / "study")


@pytest.fixture(scope="module")
def sweep(folder: Path) -> Sweep:
    return load(folder)


@pytest.fixture(scope="module")
def page(sweep: Sweep) -> Path:
    return write_report(sweep)


def test_the_page_has_a_figure_for_each_axis_the_topologies_and_the_failed_point(page: Path) -> None:
    text = page.read_text()
    for axis in AXES:
        assert f"<h3>throughput_per_s against {axis}</h3>" in text
    assert text.count('class="wide"') == len(AXES) + 1
    assert "1 of 48 points failed" in text and code("./moscope run --workload counter --set topology=ring") in text
    assert "http" not in text.replace("http://www.w3.org", "")


@pytest.mark.skipif(browser.find() is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_of_the_page_is_cut_off(page: Path, tmp_path: Path, width: int) -> None:
    with browser.Page(page, width, profile=tmp_path / "profile") as shown:
        assert browser.faults(shown) == []


@pytest.mark.parametrize("wide", [True, False])
def test_nodes_of_topologies_are_drawn_whole_and_titles_of_a_row_have_one_height(sweep: Sweep, wide: bool) -> None:
    figure = topologies.draw(sweep, wide)
    assert figure is not None
    figure.draw_without_rendering()
    shown = [ax for ax in figure.axes if ax.collections]
    assert len(shown) == len(EDGES)
    for ax in shown:
        space = ax.get_window_extent()
        for node in ax.collections:
            (x, y), radius = ax.transData.transform(node.get_offsets()[0]), (node.get_sizes()[0] / 3.14) ** 0.5 / 72 * figure.dpi
            assert space.x0 <= x - radius and x + radius <= space.x1 and space.y0 <= y - radius and y + radius <= space.y1
    columns = 4 if wide else 2
    for first in range(0, len(shown), columns):
        heights = [ax.get_window_extent().y1 for ax in shown[first:first + columns]]
        assert heights == pytest.approx([heights[0]] * len(heights), abs=0.5)


@pytest.mark.parametrize("wide", [True, False])
def test_the_legend_of_a_figure_with_very_long_names_is_within_the_figure(tmp_path: Path, wide: bool) -> None:
    made = load(write_sweep(tmp_path / "study"))
    longer = {name: f"{name}_{'with_a_name_of_many_parts_' * 5}{'unbroken' * 9}" for name in AXES["topology"]}
    rows = [{**row, "topology": longer[row["topology"]]} for row in made.rows]
    figure = curves.draw(replace(made, rows=rows, axes={**made.axes, "topology": list(longer.values())}),
                         expression.parse("throughput_per_s ~ cores | topology", made), wide)
    assert figure is not None
    figure.draw_without_rendering()
    (legend,) = figure.legends
    assert len(legend.get_texts()) == len(longer)
    assert figure.bbox.x0 <= legend.get_window_extent().x0 and legend.get_window_extent().x1 <= figure.bbox.x1


def test_figures_of_an_earlier_report_are_removed_and_those_of_others_stay(tmp_path: Path) -> None:
    sweep = load(write_sweep(tmp_path / "study"))
    figures = tmp_path / "study" / "figures"
    few = replace(sweep, axes={"cores": [12, 48]})
    write_report(replace(sweep, axes={"cores": [12, 48], "workload": ["counter", "ticketlock"]}))
    others = [figures / "mine.png", figures / "plot-throughput_per_s-workload.png"]
    for file in others:
        file.touch()
    with (figures / LIST).open("a") as listed:
        listed.write("\n\n..\n../table.parquet\n")  # damaged
    write_report(few)
    assert (figures.parent / "table.parquet").exists()
    assert sorted(figures.glob("*.png")) == [*others[:1], others[1], figures / "throughput_per_s-cores.png", figures / "topologies.png"]


def test_the_table_of_points_has_the_columns_that_its_job_names_and_the_time(sweep: Sweep) -> None:
    chosen = replace(sweep, beside=["stderr_per_s", "cycles.memory", "cycles.busy"])
    assert chosen.columns(["throughput_per_s"]) == ["throughput_per_s", "stderr_per_s", "cycles.busy", "seconds"]
    assert sweep.columns(["throughput_per_s"]) == ["throughput_per_s", "seconds"]


def test_a_zipped_axis_with_one_value_alone_gets_no_figure(sweep: Sweep) -> None:
    assert replace(sweep, axes={"chips": [2, 4, 4], "topology": ["ring"] * 3}).varied == {"chips": [2, 4]}


def test_a_curve_that_lies_on_another_is_dashed(sweep: Sweep) -> None:
    rows = [{**r, "throughput_per_s": 5.0} for r in sweep.rows]
    for one, styles in ((replace(sweep, rows=rows), ["-", "--", "--"]), (sweep, ["-", "-", "-"])):
        fig = curves.draw(one, expression.parse("throughput_per_s ~ cores | workload", one), True)
        assert fig is not None
        assert [line.get_linestyle() for line in fig.axes[0].get_lines() if line.get_linestyle() != "None"] == styles


def test_the_list_of_possible_figures_says_where_it_is_cut() -> None:
    with pytest.raises(RunDirectoryError, match=r"expected one of 40 names: f0, .* \.\.\.$"):
        expression.column("x", [f"f{n}" for n in range(40)])


def test_a_full_disk_is_an_error_that_names_the_file(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                     capsys: pytest.CaptureFixture[str]) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", str(tmp_path / "figures/a.png"))

    monkeypatch.setattr("analysis.sweep.main.write_report", full)
    assert main([str(folder)]) == 2
    assert capsys.readouterr().err == f"{tmp_path}/figures/a.png: No space left on device: expected free space\n"


def test_the_command_report_writes_a_sweeps_report_and_no_runs_report_into_its_folder(
        folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    made: list[Any] = []
    monkeypatch.setattr(reports, "made_by", lambda *words: made.append(words) or "")
    assert cli.main(["report", str(folder)]) == 0
    assert made == [("analysis.sweep.main", [str(folder)], folder)] and capsys.readouterr().out == f"{folder}/report.html\n"
    assert not (folder / "tables").exists()


@pytest.mark.parametrize("option", [["--locks"], ["--audit"], ["--line", "x"]])
def test_of_a_sweep_a_map_locks_or_audit_is_refused_with_the_folders_of_its_points(
        tmp_path: Path, capsys: pytest.CaptureFixture[str], option: list[str]) -> None:
    folder = write_sweep(tmp_path / "study")
    for name in ("p0", "p1"):
        (folder / "points" / name).mkdir(parents=True)
        (folder / "points" / name / "point.json").write_text("{}")
    assert cli.main(["report", str(folder), *option]) == 2
    assert capsys.readouterr().err == (f"{folder}: holds a sweep: expected a run directory, or the folder of one point: "
                                       f"{folder}/points/p0, {folder}/points/p1\n")


def test_the_folder_of_one_point_is_read_and_exported_but_gets_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(2,)) / "points/exim-distro-2"
    run = analysis.load(folder)
    assert [point.name for point in run.points] == ["exim-distro-2"] and run.problems == []
    assert cli.main(["report", str(folder)]) == 2
    assert "holds one point: expected --line, --locks or --audit" in capsys.readouterr().err
    assert cli.main(["export", str(folder), "--to", "c2c", "--out", str(tmp_path / "out")]) == 2
    assert "--detail full" in capsys.readouterr().err
    assert cli.main(["export", str(folder), "--to", "pprof", "--out", str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/out/exim-distro-2.pprof.pb.gz\n"


def test_a_default_figure_places_all_axes(sweep: Sweep) -> None:
    for wanted in curves.default_expressions(sweep, "throughput_per_s"):
        assert curves.averaged(sweep, wanted) == []
        assert wanted.by[0] == ("topology" if wanted.x != "topology" else "workload")


def test_an_expression_takes_the_beginning_of_a_name_and_names_curves_and_panels(sweep: Sweep) -> None:
    assert expression.parse("throughput ~ cores | topology, workload", sweep) == expression.Expression(
        "throughput_per_s", "cores", ("topology", "workload"))
    written = write_plot(sweep, "throughput ~ cores | topology, workload")
    assert written.read_bytes().startswith(b"\x89PNG") and written.with_suffix(".svg").exists()


@pytest.mark.parametrize("text, error", [
    ("throughput", "expected FIGURE ~ AXIS or FIGURE ~ AXIS | AXIS, .."),
    ("throughput ~ core", 'no parameter called "core": expected a known name, such as cores'),
    ("s ~ cores", '"s" begins the names of several figures: expected one of stderr_per_s, seconds'),
    ("troughput ~ cores", 'no figure called "troughput": expected a known name, such as throughput_per_s'),
])
def test_a_mistake_in_an_expression_is_answered_by_the_nearest_name(sweep: Sweep, text: str, error: str) -> None:
    with pytest.raises(RunDirectoryError, match=error.replace("|", r"\|").replace("..", r"\.\.")):
        write_plot(sweep, text)


def test_one_point_keeps_its_own_error_and_several_have_the_error_of_their_spread() -> None:
    one = {"throughput_per_s": 10.0, "stderr_per_s": 2.0}
    assert curves.mean_and_error([one], "throughput_per_s") == (10.0, 2.0)
    assert curves.mean_and_error([one, {**one, "throughput_per_s": 14.0}], "throughput_per_s") == (12.0, 2.0)
    assert curves.mean_and_error([one], "throughput_per_s", 2) == (10.0, None), "the other one failed"


def test_a_mean_of_points_that_agree_has_the_error_of_their_own_errors() -> None:
    three, four = ({"throughput_per_s": 10.0, "stderr_per_s": error, "cycles": 5.0} for error in (3.0, 4.0))
    assert curves.mean_and_error([three, four], "throughput_per_s") == (10.0, 2.5)
    assert curves.mean_and_error([three, {**four, "stderr_per_s": None}], "throughput_per_s") == (10.0, 1.5)
    assert curves.mean_and_error([three, four], "cycles") == (5.0, 0.0), "a figure without errors"


def test_figures_that_differ_between_points_are_drawn_before_those_that_do_not(sweep: Sweep) -> None:
    flat, far = ["L1_cycles", "L2_cycles", "L3_cycles", "DRAM_0_hops_cycles"], ["DRAM_1_hop_cycles", "DRAM_2_hops_cycles"]
    rows = [{"point": n, "status": "done", **dict.fromkeys(flat, 9.0), **dict.fromkeys(far, float(n))} for n in (1, 2)]
    latencies = replace(sweep, axes={}, rows=rows, main=["L?_cycles", "DRAM_*_cycles"])
    assert latencies.figures == flat + far
    assert latencies.drawn() == far + flat[:2]


def test_host_figures_are_not_plotted_and_are_the_last_columns(sweep: Sweep) -> None:
    rows = [{"point": n, "status": "done", "loads_per_second": 9.0 * n, "seconds": 1.0 * n, "reached": 70, "ops": 5} for n in (1, 2)]
    checks = replace(sweep, axes={}, rows=rows, main=["loads_per_second", "reached"])
    assert checks.figures == ["reached", "ops", "loads_per_second", "seconds"]
    assert checks.drawn() == ["reached"] and replace(checks, main=[]).drawn() == ["reached"]
    assert replace(checks, beside=["loads_per_second", "ops"]).columns(["reached"]) == ["reached", "ops", "loads_per_second", "seconds"]
    assert replace(checks, rows=[{"point": 1, "status": "done", "seconds": 1.0}]).drawn() == []


def test_a_caption_speaks_of_error_bars_only_where_the_figure_has_some(sweep: Sweep) -> None:
    wanted = expression.parse("throughput_per_s ~ cores | topology, workload, probe_filter.enabled", sweep)
    assert "Error bars are standard errors over the windows" in caption(sweep, wanted)
    busy = replace(wanted, figure="cycles.busy")
    assert caption(sweep, busy) == "Where curves coincide, all but one are dashed."
    alike = replace(sweep, rows=[r for r in sweep.rows if r["status"] == "done"])
    assert caption(alike, replace(busy, by=())) == "Points are means over topology, workload, probe_filter.enabled."
    assert "Error bars are standard errors of the means." in caption(alike, replace(wanted, by=()))


def test_more_panels_than_a_figure_has_place_for_are_refused(sweep: Sweep) -> None:
    rows = [{**row, "seed": n, "k": k} for n, row in enumerate(sweep.done[:30]) for k in (1, 2)]
    with pytest.raises(RunDirectoryError, match="has 30 panels: expected at most 24"):
        curves.draw(replace(sweep, rows=rows), expression.Expression("throughput_per_s", "cores", ("k", "seed")), True)


@pytest.mark.parametrize("values, found", [
    (["800MHz", "2.4GHz"], ([800.0, 2400.0], "MHz")),
    ([12, 48], ([12.0, 48.0], "")),
    (["ring", "2"], None),
    ([True, False], None),
])
def test_quantities_are_placed_by_size(values: list[Any], found: Any) -> None:
    assert quantities(values) == found


def test_whole_numbers_have_ticks_at_whole_numbers(sweep: Sweep) -> None:
    rows = [{"cores": n, "status": "done", "throughput_per_s": 5.0 * n, "stderr_per_s": None} for n in (1, 2)]
    figure = curves.draw(replace(sweep, rows=rows, axes={"cores": [1, 2]}), expression.Expression("throughput_per_s", "cores"), True)
    assert figure is not None
    figure.draw_without_rendering()
    assert all(float(tick).is_integer() for tick in figure.axes[0].get_xticks())


def test_topologies_are_arranged_with_few_crossing_links(sweep: Sweep) -> None:
    shapes = topologies.variants(sweep)
    assert [len(edges) for edges in shapes.values()] == [8, 10, 10, 28]
    assert topologies.clashes(topologies.best(8, shapes["ring"]), shapes["ring"]) == 0
    assert topologies.clashes(topologies.best(8, shapes["straight_ladder"]), shapes["straight_ladder"]) == 0
    assert topologies.clashes(topologies.best(8, shapes["twisted_ladder"]), shapes["twisted_ladder"]) == 1
