# SPDX-License-Identifier: BSD-3-Clause
"""The figures of `moscope mosbench`, from a folder of made-up points."""

import json
import math
from pathlib import Path
from typing import Any

import browser
import pyarrow as pa
import pytest
from matplotlib.colors import to_rgb
from pyarrow import parquet

from analysis import paper, style
from analysis.described import MISS_CLASS
from analysis.mosbench import data, main, names, page, summary
from analysis.mosbench.account import OTHERS, WAITS, per_operation
from analysis.mosbench.limits import Limit, limit
from analysis.page.markup import code, prose
from analysis.run_directory import Point, RunDirectoryError
from moscope.mosbench.applications import APPLICATIONS

MS, FS_PER_US = 10**12, 10**9
CURVES = [{"label": "Stock", "workload": "exim", "kernel": "stock"}, {"label": "PK", "workload": "exim", "kernel": "pk"}]
# Operations in a window of 1 ms by kernel and core count.
OPERATIONS = {("stock", 1): 100, ("stock", 12): 900, ("stock", 48): 960, ("pk", 1): 100, ("pk", 12): 1150, ("pk", 48): 3840}


def point(cores: int, ops: int, idle: float = 0.0, lock: float = 0.0, capacity: float = 0.0, **more: Any) -> Point:
    """Shares of the cores' time; the lock's is spinning on `queue.lock`, the rest user time."""
    window = MS * cores
    split = {"idle": idle, "memory": capacity, "core": lock, "busy": 1 - idle - capacity - lock}
    times = {kind: {"user": share * MS, "kernel": 0} for kind, share in split.items()}
    core = {**times, "spin": {"busy": {}, "core": {"user": lock * MS}}, "window": MS}
    record = {"schema": "moscope.point/1", "workload": "exim", "operation": "messages delivered", "cores": cores, "ops": ops,
              "window_ms": 1.0, "throughput_per_s": ops * 1e3, "stderr_per_s": ops * 10.0, "user_us_per_op": (1 - idle) * cores * 1e3 / ops,
              "system_us_per_op": 0.0, "kernel_share": 0.0, "cycles": split, "windows": [{}], **more}
    stats = {"cores": [core] * cores, "machine": {}, "attribution": {
        "spin": lock * window, "exposed": capacity * window, "classes": {"capacity": {"stall": capacity * window}}}}
    return Point("p", record, stats, made={WAITS: names.Waits({"queue.lock": lock * window} if lock else {})})


def lines_table(folder: Path, *rows: dict[str, Any]) -> Path:
    nothing = {"spin": 0, **{f"{c}_stall": 0 for c in MISS_CLASS.names}}
    parquet.write_table(pa.Table.from_pylist([{**nothing, **row} for row in rows]), folder / "lines.parquet")
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("mosbench")
    rows = []
    for (kernel, cores), ops in OPERATIONS.items():
        made = point(cores, ops, lock=0.8 if (kernel, cores) == ("stock", 48) else 0.0, capacity=0.5 if cores == 48 else 0.1)
        if (kernel, cores) == ("pk", 12):
            made.record |= {"windows": [{}] * 24, "trend": {"windows": 10, "before": 880000.0, "after": 118000.0}}
        digest = f"{kernel}-{cores}"
        (out / "points" / digest).mkdir(parents=True)
        (out / "points" / digest / "point.json").write_text(json.dumps({**made.record, "kernel": kernel}))
        (out / "points" / digest / "stats.json").write_text(json.dumps(made.stats))
        spun = {"": 0.0, **made.made[WAITS].shared}
        lines_table(out / "points" / digest, *({"name": name, "spin": int(time)} for name, time in spun.items()))
        rows.append({"workload": "exim", "kernel": kernel, "cores": cores, "point": digest, "status": "done"})
    rows.append({"workload": "exim", "kernel": "pk", "cores": 24, "point": "lost", "status": "failed"})
    parquet.write_table(pa.Table.from_pylist(rows), out / "table.parquet")
    failed = [{"error": "the guest died", "kind": "GuestDied", "command": "./moscope run --workload exim --cores 24"}]
    (out / "sweep.json").write_text(json.dumps({"failed": failed, "config": {"fixed": {"machine": "opteron48", "seed": 1}}}))
    (out / "mosbench.json").write_text(json.dumps({"machine": "opteron48", "set": [], "applications": [
        {"name": "exim", "title": "Exim", "figure": 4, "limit": "App: contention on spool directories", "curves": CURVES}]}))
    return out


def test_a_bar_is_the_ratio_of_throughput_per_core_on_most_cores_to_one_core_with_the_errors_of_both(folder: Path) -> None:
    stock, pk = data.load(folder).applications[0].curves
    assert (stock.ratio, pk.ratio) == (pytest.approx(0.2), pytest.approx(0.8))
    assert pk.ratio_stderr == pytest.approx(0.8 * math.hypot(0.01, 0.01))


def test_the_page_has_the_papers_figures_its_limits_and_points_that_failed_or_were_not_steady(folder: Path) -> None:
    found = main.write(data.load(folder))
    assert set(found["figures"]) == {"3", "4", "4-time"} and all(Path(path).stat().st_size > 5000 for path in found["figures"].values())
    exim = found["applications"][0]
    assert [c["paper"] for c in exim["curves"]] == ["0.12 to 0.27", "at least 0.35"]
    assert [c["difference"] for c in exim["curves"]] == [0.0, 0.0]
    assert [c["limit"]["cause"] for c in exim["curves"]] == ["queue.lock", "size"]
    text = Path(found["report"]).read_text()
    assert "App: contention on spool directories" in text and prose(exim["limit"]["text"]) in text
    assert "1 point failed" in text and code("./moscope run --workload exim --cores 24") in text
    assert text.count("<li>Exim on ") == 1
    assert ("<li>Exim on PK, 12 cores: throughput falls from 880,000 per second in the first 10 windows to 118,000 in the last 14 windows: "
            "expected a longer --warmup, unless the system has no steady state</li>") in text


def test_a_curve_of_another_workload_than_the_applications_is_named_below_figure_and_table(folder: Path, tmp_path: Path) -> None:
    rows = parquet.read_table(folder / "table.parquet").to_pylist()
    for row in rows:
        row["workload"] = "exim-one" if row["kernel"] == "pk" else row["workload"]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "table.parquet")
    described = json.loads((folder / "mosbench.json").read_text())
    described["applications"][0]["curves"] = [CURVES[0], {**CURVES[1], "workload": "exim-one"}]
    (tmp_path / "mosbench.json").write_text(json.dumps(described))
    for name in ("points", "sweep.json"):
        (tmp_path / name).symlink_to(folder / name)
    main.write(data.load(tmp_path))
    assert (tmp_path / main.PAGE).read_text().count("Exim: PK measures exim-one.") == 3
    main.write(data.load(folder))
    assert " measures " not in (folder / main.PAGE).read_text()


def test_the_papers_limits_are_those_of_its_48_cores(folder: Path) -> None:
    results = data.load(folder)
    results.most_cores = 2
    shown = page.limits(results, {"exim": None})
    assert "What limits each application on 2 cores (figure 12)" in shown and ">paper, 48 cores<" in shown


def test_a_curve_without_its_point_on_the_most_cores_has_no_ratio(folder: Path, tmp_path: Path) -> None:
    for name in ("points", "sweep.json", "mosbench.json"):
        (tmp_path / name).symlink_to(folder / name)
    rows = parquet.read_table(folder / "table.parquet").to_pylist()
    for row in rows:
        if (row["kernel"], row["cores"]) == ("stock", 48):
            row["status"] = "failed"
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "table.parquet")
    results = data.load(tmp_path)
    stock, pk = results.applications[0].curves
    assert [p.cores for p in stock.points] == [1, 12] and results.most_cores == 48
    assert (stock.ratio, stock.ratio_stderr, stock.ends) == (None, None, None) and pk.ratio == pytest.approx(0.8)
    found = main.write(results)["applications"][0]["curves"][0]
    assert (found["ratio"], found["difference"], found["limit"]) == (None, None, None)
    assert '<td data-label="curve">Stock</td><td data-label="moscope" class=n>–</td>' in (tmp_path / main.PAGE).read_text()


def test_a_difference_is_from_the_nearer_end_of_the_papers_range() -> None:
    known = paper.Ratio(0.2, 0.4, "")
    assert [known.difference(ratio) for ratio in (0.1, 0.2, 0.3, 0.5)] == [pytest.approx(d) for d in (-0.1, 0.0, 0.0, 0.1)]


def test_a_bound_is_marked_as_one_and_only_values_beyond_it_differ() -> None:
    least, most = paper.Ratio(0.35, 1.0, ""), paper.Ratio(0.0, 0.7, "")
    assert (least.text, most.text, paper.Ratio(0.1, 0.2, "").text) == ("at least 0.35", "at most 0.70", "0.10 to 0.20")
    assert [r.difference(x) for r, x in ((least, 0.3), (least, 0.9), (most, 0.1), (most, 0.9))] == [
        pytest.approx(-0.05), 0.0, 0.0, pytest.approx(0.2)]


def test_fourteen_bars_stand_in_one_figure_beside_the_papers_known_ratios() -> None:
    applications = []
    for one in APPLICATIONS:
        curves = [data.Curve(c.label, c.workload, c.kernel, [point(1, 100), point(48, 2400)], 48) for c in one.curves]
        applications.append(data.Application(one.name, one.title, one.figure, one.limit, curves, data.Run(Path(), {}, [], [])))
    results = data.Results(Path(), "opteron48", applications, [], of_paper=True, most_cores=48)
    known = [r for pair in paper.RATIO.values() for r in pair if r]
    drawn = summary.draw(results, True)
    assert drawn is not None
    bars = [p for p in drawn.axes[0].patches if p.get_facecolor()[:3] not in ((0, 0, 0), to_rgb(style.color("grid")))]
    assert [b.get_height() for b in bars] == [pytest.approx(0.5)] * 14
    assert sum(t.get_text() == "–" for t in drawn.axes[0].texts) == 14 - len(known) == 4


def test_results_of_another_machine_are_not_compared_with_the_papers(folder: Path, tmp_path: Path) -> None:
    described = json.loads((folder / "mosbench.json").read_text())
    for name in ("points", "table.parquet", "sweep.json"):
        (tmp_path / name).symlink_to(folder / name)
    (tmp_path / "mosbench.json").write_text(json.dumps({**described, "set": ["topology=straight_ladder"]}))
    assert [c["paper"] for c in main.write(data.load(tmp_path))["applications"][0]["curves"]] == [None, None]


@pytest.mark.skipif(browser.find() is None, reason="no Chromium here")
@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_of_the_page_is_cut_off(folder: Path, tmp_path: Path, width: int) -> None:
    main.write(data.load(folder))
    with browser.Page(folder / main.PAGE, width, profile=tmp_path / "profile") as shown:
        assert browser.faults(shown) == []


def test_the_cause_of_most_additional_time_is_the_limit() -> None:
    one = point(1, 100, capacity=0.1)
    lock = limit(one, point(48, 960, lock=0.7, capacity=0.1))
    assert lock.cause == "queue.lock" and lock.share == pytest.approx(0.7 * 50 / 40)
    # Where misses take less than on one core, the share is of what the others take more.
    fewer = limit(point(1, 100, capacity=0.5), point(48, 1600, idle=0.4, lock=0.2))
    assert fewer.cause == "idle" and fewer.share == pytest.approx(0.4 * 30 / (0.4 * 30 + 0.2 * 30 + 0.4 * 30 - 0.5 * 10))
    assert limit(one, point(48, 2400, capacity=0.6)).cause == "size"
    assert limit(one, point(48, 2400, idle=0.5)).cause == "idle"
    assert limit(one, point(48, 4800, capacity=0.1)) == Limit("none", "none: an operation takes no more time than on one core", 0.0)


def test_reads_that_wait_for_others_in_dram_are_told_apart_from_misses_that_a_larger_cache_avoids() -> None:
    def with_reads(p: Point, ns: int, in_dram: float) -> Point:
        lost = {"row_cycle": 390, "no_request": 210}
        channel = {"accounted": 1000, "busy": 400, "lost": lost, "reads": 10, "read_latency_fs": ns * 10**7}
        p.stats["machine"]["dram"] = [{"channels": [channel]}] * 8
        p.stats["attribution"]["segments"] = {"dram": int(in_dram * MS), "link": int((1 - in_dram) * MS), "queue": 7 * MS}
        return p

    one = with_reads(point(1, 100, capacity=0.1), 50, 0.5)
    queued = limit(one, with_reads(point(48, 2400, capacity=0.6), 500, 0.9))
    # Of 12 us, reads wait 0.9 * 0.9 for others; an operation takes 10 us more than on one core.
    assert queued.cause == "dram" and queued.share == pytest.approx(12 * 0.81 / (12 * 0.81 + 12 * 0.19 - 1))
    assert queued.text == ("DRAM bandwidth: reads wait for other requests (88 % of the additional time); "
                           "its channels are occupied 79 % of the time")
    assert limit(one, with_reads(point(48, 2400, capacity=0.6), 60, 0.9)).cause == "size"
    unknown = point(1, 100, capacity=0.1)
    assert limit(unknown, with_reads(point(48, 2400, capacity=0.6), 500, 0.9)).cause == "size"


def test_misses_that_wait_for_a_prefetch_have_the_causes_of_the_others() -> None:
    def secondary(p: Point, **stall: float) -> Point:
        p.stats["attribution"]["classes"] = {c: {"stall": share * MS * p.cores} for c, share in stall.items()}
        return p

    one = point(1, 100, capacity=0.1)
    fetched = per_operation(secondary(point(48, 2400, capacity=0.6), cold=0.2, secondary=0.4), 1.0, [])
    assert fetched["size"] == pytest.approx(0.6 * 20) and fetched[OTHERS] == pytest.approx(0)
    half = per_operation(secondary(point(48, 2400, capacity=0.6), cold=0.1, true_sharing=0.1, upgrade=0.2, secondary=0.2), 1.0, [])
    assert half["size"] == pytest.approx(0.2 * 20) and half[OTHERS] == pytest.approx(0.4 * 20)
    assert per_operation(one, 1.0, [])["dram"] == 0


def test_a_card_at_its_limit_or_that_drops_packets_is_a_limit_before_the_cores_time() -> None:
    one = point(1, 100)
    busy = point(48, 2400, idle=0.05, network={"in_packets": 900, "dropped_fifo_full": 100})
    idle = point(48, 2400, idle=0.5, network={"in_packets": 900, "dropped_fifo_full": 100})
    assert limit(one, busy).cause != "card"
    assert limit(one, idle).text == "the network card drops 10.0 % of the packets; cores are idle 50 % of the time"
    limited = point(48, 2400, idle=0.05, network={"in_busy_ns": 0, "out_busy_ns": busy.window_fs // 1_000_000 * 97 // 100})
    assert limit(one, limited).text == "the network card sends as many packets as it can for 97 % of the time"
    limited.record["network"]["in_busy_ns"] = busy.window_fs // 1_000_000
    assert limit(one, limited).text == "the network card receives and sends as many packets as it can for 97 % of the time"
    limited.record["network"] = {"in_busy_ns": 0, "out_busy_ns": busy.window_fs // 2_000_000}
    assert limit(one, limited).cause != "card"


def test_few_drops_and_drops_of_frames_to_be_sent_do_not_make_the_card_the_limit() -> None:
    one = point(1, 100)

    def cause(**network: int) -> str:
        return limit(one, point(48, 2400, idle=0.5, network=network)).cause

    assert cause(in_packets=100_000, dropped_fifo_full=1) == cause(in_packets=991, dropped_no_buffer=9) == "idle"
    assert cause(in_packets=990, dropped_no_buffer=9, dropped_fifo_full=1) == "card"
    assert cause(in_packets=900, dropped_bad_request=100, dropped_not_ready=100) == "idle"


def test_a_folder_of_something_else_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(RunDirectoryError, match="expected the folder of moscope mosbench"):
        data.load(tmp_path)
    assert main.main([str(tmp_path)]) == 2 and main.main([]) == 2
    assert "expected the folder of moscope mosbench" in capsys.readouterr().err


def test_a_name_keeps_its_sharing_time_also_where_most_of_its_misses_are_cold(tmp_path: Path) -> None:
    found = names.waits(lines_table(
        tmp_path,
        {"name": "memory", "cold_stall": 60, "true_sharing_stall": 30, "secondary_stall": 10},
        {"name": "memory", "upgrade_stall": 5, "false_sharing_stall": 10},
        {"name": "table", "capacity_stall": 100, "secondary_stall": 9},
        {"name": "lock", "spin": 70},
        {"name": "", "true_sharing_stall": 90}))
    assert found.shared == {"lock": 70.0, "memory": pytest.approx(45 + 10 * 40 / 100), "table": 0.0}
    assert list(found.shared) == ["lock", "memory", "table"]


def test_misses_that_wait_for_a_prefetcher_are_charged_to_cache_size_and_not_to_the_lock(tmp_path: Path) -> None:
    def us(time: float) -> int:
        return int(time * 100 * FS_PER_US)

    p = point(48, 100)
    stall = {"cold": us(8), "secondary": us(50), "true_sharing": us(12)}
    p.stats["attribution"]["classes"] = {name: {"stall": time} for name, time in stall.items()}
    p.made[WAITS] = names.waits(lines_table(
        tmp_path, {"name": "table", "secondary_stall": us(50)}, {"name": "other", "cold_stall": us(8)},
        {"name": "lock", "true_sharing_stall": us(12)}))
    found = per_operation(p, 0.0, ["lock"])
    assert {cause: round(found[cause], 6) for cause in ("size", "lock", OTHERS)} == {"size": 58, "lock": 12, OTHERS: 0}


def test_a_name_that_costs_time_on_one_core_is_subtracted_whatever_its_rank_is_there() -> None:
    one, many = point(1, 100), point(48, 2400)
    kinds = {f"name {i}": 10.0 ** (30 - i) for i in range(30)}
    one.made[WAITS] = names.Waits({**kinds, "memory": 1e9 * 100 * 5})
    many.made[WAITS] = names.Waits({"memory": 1e9 * 2400 * 5})
    one.stats["attribution"]["classes"] = {"true_sharing": {"stall": int(0.5 * MS)}}
    many.stats["attribution"]["classes"] = {"true_sharing": {"stall": int(0.25 * MS * 48)}}
    assert limit(one, many).cause != "memory"


@pytest.mark.parametrize("what", ["missing", "damaged", "of a version without a column"])
def test_a_lines_table_that_cannot_be_read_is_a_user_error(tmp_path: Path, what: str) -> None:
    file = tmp_path / "lines.parquet"
    if what == "damaged":
        file.write_bytes(b"PAR1 and nothing")
    elif what != "missing":
        parquet.write_table(pa.table({"name": ["lock"], "cold_stall": [1]}), file)
    with pytest.raises(RunDirectoryError, match=r"lines.parquet: cannot be read \(.*\): expected a finished point"):
        names.waits(tmp_path)


def test_the_time_of_sharing_is_divided_by_name() -> None:
    p = point(48, 100, lock=0.5)
    p.made[WAITS] = names.Waits({"queue.lock": 0.3 * 48 * MS, "memory": 0.1 * 48 * MS})
    found = per_operation(p, 0.0, p.made[WAITS].shared)
    whole = 48 * 1e3 / 100
    assert [found[cause] for cause in ("queue.lock", "memory", OTHERS)] == [pytest.approx(part * whole) for part in (0.3, 0.1, 0.1)]
