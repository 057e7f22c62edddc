# SPDX-License-Identifier: BSD-3-Clause
"""Comparisons: differences add up, equal runs are reported as alike."""

import json
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import browser
import pyarrow
import pytest
import synthetic_run
from pyarrow import parquet

from analysis import Point, RunDirectoryError
from analysis.comparison import page, pairs, programs, sides, text, words
from moscope import cli, jsonio
from moscope.commands import compare as command
from moscope.runs.statistics.confidence import COUNT_ERROR, Mean

WINDOWS = 12


def run(folder: Path, *, cores: tuple[int, ...] = (24,), kernels: tuple[str, ...] = ("stock",), seed: int = 1, rate: float = 1.0) -> Path:
    """A run whose windows scatter by some percent, differently with another seed; `rate` times as many operations as usual."""
    synthetic_run.write_run(folder, cores=cores, kernels=kernels)
    whole = json.loads((folder / "run.json").read_text())
    whole["config"] |= {"seed": seed}
    for n, record in enumerate(whole["points"]):
        one = record["windows"][0]
        counts = [round(rate * 100 * (1 + 0.01 * (((7 * seed + 5 * k) % 11) / 5 - 1))) for k in range(WINDOWS)]
        record |= {"windows": [{**one, "ops": c, "throughput_per_s": c * 1000.0} for c in counts], "ops": sum(counts),
                   "ticks": WINDOWS * synthetic_run.MS, "throughput_per_s": sum(counts) * 1000.0 / WINDOWS}
        whole["points"][n] = record
        (folder / "points" / f"{record['workload']}-{record['kernel']}-{record['cores']}" / "point.json").write_text(json.dumps(record))
    (folder / "run.json").write_text(json.dumps(whole))
    return folder


def compared(a: Path, b: Path) -> list[dict[str, Any]]:
    return [pairs.compared(*pair) for pair in sides.matched(sides.side(a), sides.side(b))[0]]


@pytest.fixture(scope="module")
def stock(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("stock") / "run")


@pytest.fixture(scope="module")
def faster(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that is a fifth faster because it lacks the first line: as pk against stock."""
    folder = run(tmp_path_factory.mktemp("pk") / "run", kernels=("pk",), rate=1.2)
    (point,) = folder.glob("points/*")
    record, stats = (json.loads((point / f"{name}.json").read_text()) for name in ("point", "stats"))
    _, _, found = synthetic_run.point("exim", "pk", 24)
    gone = found["lines"][0]["line"]
    kept = {name: [row for row in rows if row.get("line") != gone] for name, rows in found.items()}
    synthetic_run.write_files(point, record, stats, kept)
    return folder


def test_each_list_adds_up_to_the_difference_of_all_core_time(stock: Path, faster: Path) -> None:
    (pair,) = compared(stock, faster)
    for name in ("time", "lines", "functions"):
        assert sum(row["difference"] for row in pair[name]) == pytest.approx(pair["whole"]["difference"])
        assert sum(row["a"] for row in pair[name]) == pytest.approx(pair["whole"]["a"])


def test_the_first_line_listed_is_the_one_that_the_faster_run_lacks(stock: Path, faster: Path) -> None:
    (pair,) = compared(stock, faster)
    first = pair["lines"][0]
    assert first["name"] == synthetic_run.LINES[0][0] and first["b"] == 0 and not first["within_error"]
    assert pair["throughput"]["relative"] == pytest.approx(0.2, abs=0.02) and pair["alike"] is False


def test_of_equal_differences_the_largest_times_come_first(stock: Path) -> None:
    (pair,) = compared(stock, stock)
    for name in ("lines", "functions", "time"):
        times = [row["a"] for row in pair[name] if row["kind"] not in ("rest", "others")]
        assert times == sorted(times, reverse=True) and len(set(times)) > 5, name


def test_runs_that_differ_only_by_the_seed_are_alike(stock: Path, tmp_path: Path) -> None:
    (pair,) = compared(stock, run(tmp_path / "other", seed=2))
    assert [(row["key"], row["a"], row["b"]) for row in pair["configuration"]] == [("seed", "1", "2")]
    assert pair["alike"] is True and pair["throughput"]["within_error"]
    assert all(row["within_error"] for row in pair["lines"])


def test_a_difference_beyond_the_error_is_called_variation_of_boots_only_if_no_more_than_the_seed_differs(
        stock: Path, tmp_path: Path) -> None:
    said = "Only the seed differs, so this is the variation from boot to boot"
    level = run(tmp_path / "level", seed=2, rate=1.1)
    (pair,) = compared(stock, level)
    assert pair["alike"] is False and said in words.headline(pair) and said in page.document([pair], [], stock, level)
    (pair,) = compared(stock, run(tmp_path / "alike", seed=2))
    assert pair["alike"] is True and said not in words.headline(pair)
    (pair,) = compared(stock, run(tmp_path / "pk", kernels=("pk",), seed=2, rate=1.1))
    assert pair["alike"] is False and said not in words.headline(pair)


def test_time_that_moves_between_functions_of_alike_points_is_not_marked_as_significant(
        stock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (pair,) = compared(stock, run(tmp_path / "other", seed=2))
    moved = {**pair["functions"][0], "difference": 2 * pair["whole"]["half_width"], "within_error": False}
    pair["functions"][0] = moved
    text.show([pair], [])
    assert pair["alike"] is True and capsys.readouterr().out.count("the pair is alike") == 1
    assert page.document([pair], [], stock, stock).count("the pair is alike") == 1
    assert words.remark({**pair, "alike": False}, moved) == "" and words.remark(pair, {**moved, "within_error": True}) == "within the error"


@pytest.mark.parametrize(("half_width", "remark"), [(150.0, "within the error"), (50.0, ""), (None, "error unknown")])
def test_all_core_time_has_the_remark_of_its_own_error(stock: Path, faster: Path, half_width: float | None, remark: str,
                                                       monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    scale = abs(compared(stock, faster)[0]["whole"]["difference"]) / 100
    monkeypatch.setattr(pairs, "_error", lambda *_: None if half_width is None else half_width * scale)
    (pair,) = compared(stock, faster)
    text.show([pair], [])
    rows = [line for line in capsys.readouterr().out.splitlines() if line.lstrip().startswith("all core time")]
    assert len(rows) == 3 and {re.split(r"\s{2,}", row.strip() + "  ")[4] for row in rows} == {remark}
    row = page.document([pair], [], stock, faster).partition("<b>all core time</b>")[2].partition("</tr>")[0]
    assert (remark in row) and ("error" in row) == bool(remark)


@pytest.mark.parametrize(("value", "half_width", "said"), [
    (0.0302, 0.0113, "+0.030 % ± 0.011 %"), (-0.0302, 0.0113, "-0.030 % ± 0.011 %"), (-0.0003, 0.0113, "0 % ± 0.011 %"),
    (38.0, 21.6, "+38 % ± 22 %"), (-24.1, 1402.0, "0 % ± 1,400 %"), (294.0, 2576.9, "+300 % ± 2,600 %"), (1.25, 0.0996, "+1.25 % ± 0.10 %"),
    (38.04, None, "+38.0 %"), (-0.00412, None, "-0.0041 %"), (0.0, None, "0 %"), (0.0, 0.0, "0 % ± 0 %"), (-0.5, 0.0, "-0.50 % ± 0 %")])
def test_a_difference_has_the_digits_that_its_error_leaves(value: float, half_width: float | None, said: str) -> None:
    assert words.with_error(value, half_width, " %") == said


def test_a_difference_of_shares_that_is_rounding_is_zero() -> None:
    row = pairs.difference(Mean(0.3, 0.0, 0.0, 3, 3), Mean(0.1 + 0.2, 0.0, 0.0, 3, 3))
    assert row is not None and row["within_error"] is True and words.change(row) == "0 % ± 0 %"


def test_with_one_window_there_is_no_error_and_no_verdict_of_alike(stock: Path, tmp_path: Path) -> None:
    other = tmp_path / "one"
    shutil.copytree(stock, other)
    for file in (other / "run.json", *other.glob("points/*/point.json")):
        document = json.loads(file.read_text())
        for record in document.get("points", [document]):
            record["windows"] = record["windows"][:1]
        file.write_text(json.dumps(document))
    (pair,) = compared(stock, other)
    assert pair["alike"] is None and pair["throughput"]["half_width"] is None


def changed(source: Path, to: Path, **more: Any) -> Path:
    """A copy of a run with other figures in all points."""
    shutil.copytree(source, to)
    for file in (to / "run.json", *to.glob("points/*/point.json")):
        document = json.loads(file.read_text())
        for record in document.get("points", [document]):
            record |= more
        file.write_text(json.dumps(document))
    return to


def test_a_point_whose_windows_are_parts_of_its_work_has_figures_without_errors(stock: Path, faster: Path, tmp_path: Path) -> None:
    (pair,) = compared(changed(stock, tmp_path / "parts", stderr_per_s=None), faster)
    assert {row["half_width"] for row in pair["figures"].values()} == {None} and len(pair["figures"]) > 8
    assert pair["alike"] is None and pair["whole"]["half_width"] is None and pair["throughput"]["relative_half_width"] is None
    uncounted = {"windows": [{"ops": 0, "ticks": synthetic_run.MS, "cycles": {"memory": m}} for m in (0.1, 0.2)], "ops": 0}
    (pair,) = compared(changed(stock, tmp_path / "uncounted", stderr_per_s=None, **uncounted), faster)
    assert pair["whole"]["half_width"] is None


def test_windows_with_equal_small_counts_of_operations_have_the_error_of_counting(stock: Path, tmp_path: Path) -> None:
    windows = [{"ops": 1, "ticks": synthetic_run.MS, "cycles": {"memory": 0.1}, "kernel_share": 0.5, "instructions": 9}] * WINDOWS
    (pair,) = compared(*(changed(stock, tmp_path / name, windows=windows, ops=WINDOWS) for name in "ab"))
    rows, least = pair["figures"], COUNT_ERROR / WINDOWS * 2.201 * 2**0.5
    for name in ("throughput_per_s", "us_per_op", "user_us_per_op", "system_us_per_op", "instructions_per_op"):
        assert rows[name]["half_width"] == pytest.approx(rows[name]["a"] * least)
    assert rows["memory"]["half_width"] == rows["kernel_share"]["half_width"] == 0, "shares of time"
    assert pair["whole"]["half_width"] == pytest.approx(synthetic_run.MS / 10**9 * 24 * least)


@pytest.mark.parametrize(("a", "b", "half_widths"), [(1.35, 2.81, (0.4, 1.36)), (0.67, 0.41, (0.28, 0.05)), (-2.0, -1.0, (0.3, 0.4))])
def test_the_interval_of_a_percentage_contains_zero_if_the_difference_is_within_the_error(
        a: float, b: float, half_widths: tuple[float, float]) -> None:
    row = pairs.difference(*(Mean(value, half / 2, half, 3, 3) for value, half in zip((a, b), half_widths, strict=True)))
    assert row is not None and row["relative_half_width"] == pytest.approx(row["half_width"] / abs(a))
    assert row["within_error"] == (abs(row["relative"]) <= row["relative_half_width"])


def test_a_point_of_gem5_is_one_window_without_errors() -> None:
    record = {"ops": 50, "ticks": 10**12, "cycles": {"busy": 0.5, "core": 0.1, "memory": 0.2, "idle": 0.2}, "instructions": 5000,
              "kernel_share": None, "spin_cycles": None}
    point: Any = SimpleNamespace(record=record, cores=4)
    per_s, per_op = pairs.figure(point, "throughput_per_s"), pairs.figure(point, "us_per_op")
    assert per_s is not None and per_op is not None
    assert (per_s.value, per_s.stderr, per_op.value) == (pytest.approx(50_000), None, pytest.approx(0.8 * 1000 * 4 / 50))
    assert pairs.figure(point, "kernel_share") is None and pairs.figure(point, "system_us_per_op") is None


def test_a_side_without_operations_differs_and_conditions_apply(stock: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (point,) = json.loads((stock / "run.json").read_text())["points"]
    none = changed(stock, tmp_path / "none", ops=0, windows=[{**w, "ops": 0} for w in point["windows"]])
    (pair,) = compared(stock, none)
    assert pair["alike"] is False and pair["throughput"]["b"] == 0 and pair["throughput"]["relative"] == -1
    assert "B finishes 0 " in words.headline(pair)
    assert cli.main(["compare", str(stock), str(none), "--fail-if", "throughput_per_s < -5%"]) == 1
    assert cli.main(["compare", str(stock), str(none), "--fail-if", "us_per_op > 1", "--json"]) == 2
    said = capfd.readouterr()
    assert "--fail-if: us_per_op: has no difference between these points" in said.err
    assert '"alike":false' in said.out and '"ok":false' in said.out


def test_without_operations_the_headline_gives_core_time_per_simulated_time(stock: Path, faster: Path, tmp_path: Path) -> None:
    cycles = ({"busy": busy, "core": 0.1, "memory": 0.9 - busy} for busy in (0.3, 0.5))
    uncounted = [{"windows": [{"ops": 0, "ticks": synthetic_run.MS, "cycles": one}] * 3, "ops": 0} for one in cycles]
    (pair,) = compared(*(changed(source, tmp_path / source.parent.name, **more)
                         for source, more in zip((stock, faster), uncounted, strict=True)))
    assert pair["alike"] is False
    said = words.headline({**pair, "whole": {**pair["whole"], "difference": 1e-12}})  # as sums of shares come out
    assert "Core time differs by 0 µs per simulated ms; waiting for the line mount_lock accounts for -" in said
    assert said.count("simulated ms") == 1


def test_a_side_that_was_not_steady_is_named(stock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = run(tmp_path / "other", seed=2)
    file = next(other.glob("points/*/point.json"))
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "trend": {"windows": 1, "before": 9.0, "after": 1.0}}))
    (pair,) = compared(stock, other)
    text.show([pair], [])
    assert "\nB: throughput falls from 9 per second in the first window to 1 in the last" in capsys.readouterr().out
    assert [one[:24] for one in pair["unsteady"]] == ["B: throughput falls from"]
    assert "<p>B: throughput falls" in page.document([pair], [], stock, other)


NAMES = ("server:stats[2].packets", "server:work", "heap of server", "python3 (no symbols)")


def program(folder: Path, name: str) -> Path:
    """A run of a user's program with a file of this name, and with names in its lines and functions."""
    run(folder)
    (point,) = folder.glob("points/*")
    record, stats = (json.loads((point / f"{file}.json").read_text()) for file in ("point", "stats"))
    _, _, found = synthetic_run.point("exim", "stock", 24)
    for n, row in enumerate(found["lines"]):
        row |= {"name": NAMES[n % 4].replace("server", name), "kind": "heap" if n % 4 == 2 else "user symbol"}
    for n, row in enumerate(found["pairs"]):
        row["waiter_function"] = NAMES[n % 2 * 2 + 1].replace("server", name)
    record |= {"workload": name, "command": f"/run/moscope/programs/{name} 24; echo done"}
    synthetic_run.write_files(point, record, stats, found)
    (folder / "run.json").unlink()
    return point


def test_two_programs_with_different_file_names_have_rows_in_common(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a, b = (program(tmp_path / name, name) for name in ("server", "server-padded"))
    (pair,) = compared(a, b)
    for kind in ("lines", "functions"):
        rows = [row for row in pair[kind] if row["kind"] not in ("rest", "others")]
        assert not any("padded" in row["name"] for row in rows)
        assert any(row["a"] for row in rows) and all(row["a"] == row["b"] for row in rows)
    assert pair["programs"] == {"a": "server", "b": "server-padded"}
    text.show([pair], [])
    assert "Names in server-padded (B) are compared with those in server (A)" in capsys.readouterr().out
    assert "Names in server-padded (B)" in page.document([pair], [], a, b)
    assert compared(a, a)[0]["programs"] is None


def packed(folder: Path, name: str, accessed: tuple[str, ...], rate: float = 1.0) -> Path:
    """A run whose first line has this name; its waiters access the bytes of these names."""
    (point,) = run(folder, rate=rate).glob("points/*")
    for file in ("lines", "pairs"):
        table = parquet.read_table(point / f"{file}.parquet")
        first = [line == synthetic_run.FIRST for line in table["line"].to_pylist()]
        columns = {"lines": {"name": [name], "kind": ["user symbol"]}, "pairs": {"accessed": accessed}}[file]
        for column, values in columns.items():
            before = table[column].to_pylist() if column in table.column_names else [None] * len(first)
            after = [values[n % len(values)] if mine else old for n, (mine, old) in enumerate(zip(first, before, strict=True))]
            kept = table.drop_columns([column] if column in table.column_names else [])
            table = kept.append_column(column, pyarrow.array(after))
        parquet.write_table(table, point / f"{file}.parquet")
    return folder


def test_a_line_with_the_name_of_another_byte_on_each_side_is_one_row(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    both = ("cnt:packed[1]", "cnt:packed[0]")
    a, b = (packed(tmp_path / name, name, both, rate) for name, rate in zip(both, (1.0, 1.2), strict=True))
    (pair,) = compared(a, b)
    (row,) = [row for row in pair["lines"] if "packed" in row["name"]]
    assert row["name"] == "cnt:packed[1]" and row["names_in_b"] == ["cnt:packed[0]"] and row["a"] == pytest.approx(1.2 * row["b"], rel=0.01)
    for name in ("time", "lines"):
        assert sum(row["difference"] for row in pair[name]) == pytest.approx(pair["whole"]["difference"])
    text.show([pair], [])
    assert "the lists use A's name: cnt:packed[1] is cnt:packed[0] in B." in capsys.readouterr().out
    jsonio.validate(command.document([pair], [], ok=True))


def test_names_of_different_lines_stay_apart(tmp_path: Path) -> None:
    a = packed(tmp_path / "a", "cnt:packed[1]", ("cnt:packed[1]", "cnt:packed[0]"))
    for b in (packed(tmp_path / "b", "cnt:packed[0]", ("cnt:packed[0]",)), packed(tmp_path / "c", "cnt:other", ("cnt:other",))):
        (pair,) = compared(a, b)
        assert sorted(bool(row["a"]) for row in pair["lines"] if "cnt:" in row["name"]) == [False, True]


@pytest.mark.parametrize(("workload", "line", "name"), [
    ("server", "/run/moscope/programs/server; echo done", "server"), ("server", "/run/moscope/programs/server 24; echo done", "server"),
    ("server", "cd /run/moscope/work && N='1' /run/moscope/programs/server < /run/moscope/stdin; echo done", "server"),
    ("server", "/run/moscope/programs/server2; echo done", ""), ("redis", "/usr/bin/redis; echo done", "")])
def test_a_program_of_the_user_is_known_by_its_command(workload: str, line: str, name: str) -> None:
    assert programs.of(Point("p", {"workload": workload, "command": line})) == name


@pytest.mark.parametrize(("name", "kind", "as_in_a"), [
    ("b:f", "user symbol", "a:f"), ("b:C::f", "function", "a:C::f"), ("b (no symbols)", "function", "a (no symbols)"),
    ("shared memory of b", "anonymous memory", "shared memory of a"), ("b::f", "function", "b::f"), ("bb:f", "function", "bb:f"),
    ("struct page of b", "struct page", "struct page of b"), ("libc.so.6:b", "function", "libc.so.6:b")])
def test_only_names_of_the_program_itself_are_renamed(name: str, kind: str, as_in_a: str) -> None:
    assert programs.renamed("a", "b")(name, kind) == as_in_a
    assert programs.renamed("", "b")(name, kind) == programs.renamed("a", "")(name, kind) == name


def test_points_are_paired_by_what_they_have_in_common(tmp_path: Path) -> None:
    a = sides.side(run(tmp_path / "a", cores=(1, 24), kernels=("stock", "pk")))
    b = sides.side(run(tmp_path / "b", cores=(24, 48), kernels=("stock",)))
    matched, alone = sides.matched(a, b)
    assert [(x.point.name, y.point.name) for x, y in matched] == [("exim-stock-24", "exim-stock-24")]
    assert len(alone) == 4
    one = sides.side(tmp_path / "a/points/exim-pk-24")
    matched, alone = sides.matched(one, sides.side(tmp_path / "b/points/exim-stock-48"))
    assert [(x.point.name, y.point.name) for x, y in matched] == [("exim-pk-24", "exim-stock-48")] and not alone


def sweep(folder: Path, points: dict[str, Path], window: str = "1ms", digest: str = "digest", axes: str = "links.clock",
          **more: Any) -> Path:
    """A sweep over `links.clock`, with a point for each value; `more` parameters."""
    rows = [{"workload": "exim", "window": window, **more, "links.clock": clock, "point": f"{digest}-{clock}", "status": "done"}
            for clock in points]
    for clock, source in points.items():
        shutil.copytree(source, folder / "points" / f"{digest}-{clock}")
    table = pyarrow.Table.from_pylist(rows).replace_schema_metadata({"schema": "moscope.sweep.table/1", "axes": axes})
    parquet.write_table(table, folder / "table.parquet")
    return folder


@pytest.mark.parametrize("name, text, error", [
    ("point.json", "[]", "point.json: is not a JSON object: expected a finished point"),
    ("point.json", '{"windows": 5}', "point.json: its windows: expected a list of objects"),
    ("point.json", '{"cores": "4"}', "point.json: its cores: expected a number"),
    ("stats.json", '{"cores": 7}', "stats.json: its cores: expected a list of objects"),
    ("stats.json", "{", "stats.json: cannot be read .*: expected a finished point")])
def test_a_point_with_a_changed_file_is_refused(stock: Path, tmp_path: Path, name: str, text: str, error: str) -> None:
    point = shutil.copytree(next((stock / "points").iterdir()), tmp_path / "p")
    (point / name).write_text(text)
    with pytest.raises(RunDirectoryError, match=error):
        sides.side(point)


def test_a_comparison_holds_no_copies_of_the_tables_of_lines(stock: Path, tmp_path: Path) -> None:
    """The points of a sweep would take a gigabyte each."""
    for side in (stock, sweep(tmp_path / "a", {"1GHz": next((stock / "points").iterdir())})):
        for one in sides.side(side).points:
            rows = one.point.database.rows("SELECT table_name FROM duckdb_tables() ORDER BY table_name")
            assert "names" in (found := {row["table_name"] for row in rows}) and not found & {"lines", "all_pairs", "pairs", "transfers"}


def test_the_points_of_a_sweep_are_paired_by_their_parameters(stock: Path, faster: Path, tmp_path: Path) -> None:
    first, second = stock / "points/exim-stock-24", faster / "points/exim-pk-24"
    a = sweep(tmp_path / "a", {"1GHz": first, "2GHz": second})
    b = sweep(tmp_path / "b", {"2GHz": second, "1GHz": first})
    found = compared(a, b)
    assert [(pair["a"], pair["b"]) for pair in found] == [("exim on stock, 24 cores, links.clock=1GHz",) * 2,
                                                          ("exim on pk, 24 cores, links.clock=2GHz",) * 2]
    assert all(pair["throughput"]["difference"] == 0 for pair in found)
    short, long = (sweep(tmp_path / window, {"1GHz": first, "2GHz": first}, window) for window in ("1ms", "2ms"))
    assert [pair["b"].rpartition(", ")[2] for pair in compared(short, long)] == ["links.clock=1GHz", "links.clock=2GHz"]
    (one,) = compared(a / "points/digest-1GHz", second)
    assert one["alike"] is False


@pytest.mark.parametrize("digest", ["digest", "other"])
def test_points_of_sweeps_that_record_different_parameters_are_paired_by_the_values_of_both(
        stock: Path, tmp_path: Path, digest: str) -> None:
    point = stock / "points/exim-stock-24"
    a = sides.side(sweep(tmp_path / "a", dict.fromkeys(("1GHz", "2.4GHz"), point), axes="links.clock\nseed", seed=1))
    b = sides.side(sweep(tmp_path / "b", dict.fromkeys(("4GHz", "1GHz", "3GHz"), point), digest=digest, machine="opteron48"))
    found, alone = sides.matched(a, b)
    assert [(x.title, y.title) for x, y in found] == [("exim on stock, 24 cores, links.clock=1GHz, seed=1",
                                                       "exim on stock, 24 cores, links.clock=1GHz")]
    assert alone == [f"digest-2.4GHz ({a.path})", f"{digest}-4GHz ({b.path})", f"{digest}-3GHz ({b.path})"]


def test_equal_digests_are_a_pair_even_if_other_points_record_the_same(stock: Path, tmp_path: Path) -> None:
    point = stock / "points/exim-stock-24"
    a = sides.side(sweep(tmp_path / "a", {"1GHz": point}))
    b = sides.side(sweep(tmp_path / "b", {"1GHz": point, "2GHz": point}))
    for one in b.points:
        one.configuration["links.clock"] = "1GHz"  # what is recorded does not tell them apart
    assert [y.point.name for _, y in sides.matched(a, b)[0]] == ["digest-1GHz"]


def test_a_point_of_a_sweep_is_titled_by_the_axes_and_no_digest_of_the_machine_differs_beside_its_parameter(
        stock: Path, tmp_path: Path) -> None:
    clocks = ("1GHz", "2.4GHz")
    points = sweep(tmp_path / "sweep", dict.fromkeys(clocks, stock / "points/exim-stock-24")) / "points"
    for clock in clocks:
        params = {"workload": "exim", "links.clock": clock, "threads": len(clock)}
        (points / f"digest-{clock}/result.json").write_text(json.dumps({"schema": sides.RESULT_SCHEMA, "params": params}))
    a, b = (sides.side(points / f"digest-{clock}").points[0] for clock in clocks)
    assert [one.title for one in (a, b)] == [f"exim on stock, 24 cores, links.clock={clock}" for clock in clocks]
    for n, one in enumerate((a, b)):
        one.configuration["made_from.machine"] = str(n)
    assert [row["key"] for row in sides.differing(a, b)[0]] == ["links.clock", "threads"]
    b.configuration["links.clock"] = a.configuration["links.clock"]
    assert [row["key"] for row in sides.differing(a, b)[0]] == ["threads", "made_from.machine"], "the machine's file was edited"


def test_what_only_one_side_records_is_named_once_and_not_compared(stock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = json.loads((stock / "run.json").read_text())
    whole["config"] |= {"machine": "opteron48", "description": {"chips": "8", "line": "64B"}}
    described = shutil.copytree(stock, tmp_path / "run")
    (described / "run.json").write_text(json.dumps(whole))
    point = shutil.copytree(next((stock / "points").iterdir()), tmp_path / "copied/point")
    result = {"schema": "moscope.sweep.point/1", "params": {"seed": 2, "window": "1ms", "links.clock": "1GHz"}}
    (point / "result.json").write_text(json.dumps(result))
    for source in (point, sweep(tmp_path / "sweep", {"1GHz": point})):
        (pair,) = compared(described, source)
        assert [(row["key"], row["a"], row["b"]) for row in pair["configuration"]] == [("seed", "1", "2")]
        assert pair["not_recorded"]["a"] == ["links.clock"] and "machine.chips" in pair["not_recorded"]["b"]
        assert "Only the seed differs" not in words.headline({**pair, "alike": False})
        text.show([pair], [])
        said = capsys.readouterr().out
        assert "A does not record links.clock: not compared." in said
        assert re.search(r"B does not record machine, [^.]*machine\.\*[^*]*: not compared\.", said) and "chips" not in said
    unfinished = shutil.copytree(described, tmp_path / "unfinished")
    (unfinished / "run.json").unlink()
    (pair,) = compared(described, unfinished)
    assert pair["configuration"] == [] and {"seed", "machine.chips"} <= {*pair["not_recorded"]["b"]}
    (pair,) = compared(point, sweep(tmp_path / "other", {"2GHz": next((stock / "points").iterdir())}))
    found = [(row["key"], row["a"], row["b"]) for row in pair["configuration"]]
    assert found == [("seed", "2", None), ("links.clock", "1GHz", "2GHz")] and not any(pair["not_recorded"].values()), "not given"


@pytest.mark.parametrize(("text", "error"), [
    ("{", "result.json: cannot be read .*: expected a finished point"),
    ('{"schema":"moscope.sweep.point/1","params":[]}', "result.json: its params: expected an object")])
def test_a_point_of_a_sweep_with_changed_parameters_is_refused(stock: Path, tmp_path: Path, text: str, error: str) -> None:
    point = shutil.copytree(next((stock / "points").iterdir()), tmp_path / "p")
    (point / "result.json").write_text(text)
    with pytest.raises(RunDirectoryError, match=error):
        sides.side(point)


def test_points_of_a_sweep_with_the_same_counterpart_are_named_as_the_reason(stock: Path, faster: Path, tmp_path: Path) -> None:
    a, b = (sides.side(sweep(tmp_path / name, dict.fromkeys(clocks, stock / "points/exim-stock-24")))
            for name, clocks in (("a", ("1GHz", "2GHz")), ("b", ("3GHz",))))
    assert sides.matched(a, b)[0] == []
    expected = (f"{a.path}: 2 of its points have the same counterpart in {b.path} (exim on stock, 24 cores, links.clock=1GHz; exim on "
                f"stock, 24 cores, links.clock=2GHz): expected the folder of one of them, such as {a.path}/points/digest-1GHz")
    assert sides.unmatched(a, b) == sides.unmatched(b, a) == expected
    a.points[0].point.record["workload"] = a.points[1].point.record["workload"] = "postgresql"
    assert sides.unmatched(a, b).endswith("expected the same workloads, or folders of single points")


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunDirectoryError, match="expected a run directory, a folder in its points/, or the folder of a sweep"):
        sides.side(tmp_path / "nowhere")


def test_the_command_answers_with_its_schema_and_exit_code(stock: Path, faster: Path, tmp_path: Path,
                                                           capfd: pytest.CaptureFixture[str]) -> None:
    html = tmp_path / "c.html"
    assert cli.main(["compare", str(stock), str(faster), "--json", "--html", str(html), "--fail-if", "throughput_per_s < -5%"]) == 0
    document = json.loads(capfd.readouterr().out)
    jsonio.validate(document)
    assert document["ok"] and document["lines"][0]["name"] in html.read_text().replace("<wbr>", "")
    assert cli.main(["compare", str(faster), str(stock), "--fail-if", "throughput_per_s < -5%"]) == 1
    seen = capfd.readouterr()
    assert "--fail-if throughput_per_s < -5%: holds for exim on stock, 24 cores" in seen.err and "By line" in seen.out
    assert cli.main(["compare", str(stock), str(faster), "--fail-if", "throughput < 5"]) == 2
    assert '--fail-if: no figure called "throughput": expected a known name, such as throughput_per_s' in capfd.readouterr().err


@pytest.mark.skipif(browser.find() is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [1280, 400])
def test_the_page_is_whole_on_a_desk_and_on_a_telephone(stock: Path, faster: Path, tmp_path: Path, width: int) -> None:
    file = tmp_path / "c.html"
    file.write_text(page.document(compared(stock, faster), ["exim-stock-48 (b)"], stock, faster))
    with browser.Page(file, width, profile=tmp_path / "profile") as shown:
        assert browser.faults(shown) == []


def test_the_text_marks_differences_within_the_error(stock: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text.show(compared(stock, run(tmp_path / "other", seed=3)), [])
    said = capsys.readouterr().out
    assert "The two are alike." in said and said.count("within the error") > 20
