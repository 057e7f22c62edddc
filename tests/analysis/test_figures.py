# SPDX-License-Identifier: BSD-3-Clause
"""Figures: axes begin at their first label, arrows touch their boxes, labels are legible, legends list what is drawn."""

import io
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import synthetic_run
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, Patch
from PIL import Image

from analysis import Point, Run, figures, filters, load, paper, style
from analysis.described import SEGMENT
from analysis.figures import all_figures, hot_lines, topology, writer_waiter
from analysis.tables.card import moments
from analysis.tables.time_split import causes
from analysis.tables.traffic import point_links
from moscope.errors import UserError

BOTH = pytest.mark.parametrize("wide", [True, False], ids=["wide", "narrow"])


def drawn(name: str, subject: Any, wide: bool) -> Figure:
    figure = next(f for f in all_figures() if f.name == name).drawn(subject, wide)
    assert figure is not None
    figure.draw_without_rendering()
    return figure


def legend(figure: Figure) -> set[str]:
    return {text.get_text() for one in figure.legends for text in one.get_texts()}


@pytest.fixture(scope="module")
def point() -> Point:
    return synthetic_run.made(*synthetic_run.point("exim", "distro", 48))  # type: ignore[no-any-return]


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A figure's file of the test's own."""
    monkeypatch.setattr(figures, "__path__", [*figures.__path__, str(tmp_path)])
    yield tmp_path / "mine.py"
    sys.modules.pop("analysis.figures.mine", None)


SPEC = "from analysis import style\nfrom analysis.figures import Spec\ndef draw(_, wide):\n    return style.color({!r})\n" \
       "FIGURE = Spec({!r}, {!r}, 1, 'Mine', 'My own', draw)\n"


@pytest.mark.parametrize("text, says", [
    ("x = 1\n", "mine.py: declares no FIGURE: expected FIGURE = Spec"),
    ("def draw(:\n", "mine.py:1: not Python: invalid syntax: expected a figure"),
    (SPEC.format("ink", "mine", "pont"), "mine.py: FIGURE is of 'pont': expected run or point"),
    (SPEC.format("ink", "hot-lines", "point"), "mine.py: the figure hot-lines: analysis/figures/hot_lines.py has this name: expected"),
])
def test_a_figure_that_cannot_be_drawn_is_refused_by_its_file(mine: Path, text: str, says: str) -> None:
    mine.write_text(text)
    with pytest.raises(UserError, match=says):
        all_figures()


def test_a_colour_that_the_palette_lacks_is_an_error_of_the_figures_line(mine: Path) -> None:
    mine.write_text(SPEC.format("series99", "mine", "point"))
    figure = next(f for f in all_figures() if f.name == "mine")
    with pytest.raises(UserError, match=r'mine.py:4: colour: no role called "series99": expected a known name, such as series'):
        figure.drawn(None, True)


@pytest.mark.parametrize("name", ["draw", "caption"])
def test_an_error_while_a_figure_is_drawn_is_reported_by_the_figures_line(mine: Path, name: str) -> None:
    fails = f"FIGURE.__dict__[{name!r}] = lambda subject, wide=True:\\\n    subject.cores\n"
    mine.write_text(SPEC.format("series1", "mine", "point") + fails)
    figure = next(f for f in all_figures() if f.name == "mine")
    with pytest.raises(UserError, match=r"mine.py:\d+: AttributeError: 'NoneType' object has no attribute 'cores': expected a figure"):
        figure.drawn(None, True) if name == "draw" else figure.caption_of(None)


def test_ticks_at_numbers_of_cores_are_those_numbers_and_keep_a_distance() -> None:
    assert style.apart([1, 2, 12, 13, 24, 48], 48 / 14) == [1, 12, 24, 48]


def test_the_name_of_a_figure_is_that_of_its_file_with_dashes() -> None:
    for figure in all_figures():
        assert figure.name == Path(figure.draw.__code__.co_filename).stem.replace("_", "-")


def test_names_break_after_punctuation_and_only_very_long_ones_are_cut() -> None:
    assert style.wrapped("anon_vma_interval_tree_insert", 20) == "anon_vma_interval_\ntree_insert"
    assert style.wrapped("__rb_insert", 20) == "__rb_insert" and style.wrapped("", 20) == ""
    assert style.wrapped("a" * 30, 20) == "a" * 20 + "\n" + "a" * 10
    assert "\u2026" in style.wrapped("long_" * 40, 20)


def test_kernels_of_which_no_operations_are_counted_have_no_figure_of_their_difference(tmp_path: Path) -> None:
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(4,), kernels=("stock", "pk")))
    assert drawn("kernel-difference", run, True)
    for one in run.points:
        one.record["ops"] = 0
    assert next(f for f in all_figures() if f.name == "kernel-difference").drawn(run, True) is None


def test_a_kernel_has_one_colour_in_all_figures_and_the_legend_has_every_kernel(tmp_path: Path) -> None:
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(4,), kernels=("pk", "stock")))
    other = load(synthetic_run.write_run(tmp_path / "other", cores=(4,), kernels=("distro", "stock"), workload="gmake"))
    other.points[0].database = other.points[1].database
    run.points += other.points
    colours = {}
    for name in ("throughput", "kernel-difference"):
        figure = drawn(name, run, True)
        for one in figure.legends:
            for text, handle in zip(one.get_texts(), one.legend_handles, strict=True):
                made = handle.get_facecolor() if isinstance(handle, Patch) else handle.get_color()  # type: ignore[union-attr]
                colours[name, text.get_text().removeprefix("moscope: ")] = to_hex(made if isinstance(made, (str, tuple)) else made[0])
    wanted = {kernel: style.color(style.series(n)[0]) for n, kernel in enumerate(("pk", "stock", "distro"))}
    assert {key: colour for key, colour in colours.items() if key[1] in wanted} == {
        (name, kernel): colour for name in ("throughput", "kernel-difference") for kernel, colour in wanted.items()}


def test_two_kernels_that_are_compared_have_two_colours_however_many_there_are(tmp_path: Path) -> None:
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(4,), kernels=("pk", "pk-1", "pk-2", "pk-3", "stock")))
    figure = drawn("kernel-difference", run, True)
    (one,) = figure.legends
    assert legend(figure) == {"pk", "stock"} and len({handle.get_facecolor() for handle in one.get_patches()}) == 2


def test_the_first_sixteen_series_differ() -> None:
    assert len({style.series(n) for n in range(16)}) == 16


def test_a_name_with_dollars_is_drawn_as_it_is(point: Point) -> None:
    figure = style.figure(True, 1)
    with style.house():
        figure.subplots().set_title("count$_$a^")
    assert "count$_$a^" in style.svg(figure, "k", "t", "c") and style.png(figure, "a$_$b")


@BOTH
def test_every_row_and_column_of_the_matrix_has_a_value(wide: bool) -> None:
    # Each waiter has a writer of its own; the last writers have no column on a telephone.
    pairs = {(f"writer_{n}", f"waiter_{n}"): 100 - n for n in range(20)} | {("writer_0", "hardly_waits"): 1}
    writers, waiters = writer_waiter.shown(pairs, wide, least=2)
    assert len(writers) == len(waiters) == (12 if wide else 6)
    assert all(any(pairs.get((a, b), 0) >= 2 for a in writers) for b in waiters)
    assert all(any(pairs.get((a, b), 0) >= 2 for b in waiters) for a in writers)


@BOTH
def test_functions_of_the_matrix_have_their_whole_names(point: Point, wide: bool) -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    long = "__anon_vma_interval_tree_augment_rotate"
    found["pairs"][0] |= {"writer_function": long, "waiter_function": "native_queued_spin_lock_slowpath"}
    ax = drawn("writer-waiter", synthetic_run.made(record, stats, found), wide).axes[0]
    assert long in [text.get_text().replace("\n", "") for text in ax.get_xticklabels()]
    assert "native_queued_spin_lock_slowpath" in [text.get_text().replace("\n", "") for text in ax.get_yticklabels()]


@BOTH
def test_labels_of_reference_latencies_meet_no_line_no_bar_and_no_other_label(point: Point, wide: bool) -> None:
    figure = drawn("latency", point, wide)
    ax = figure.axes[0]
    names = [name for name, _ in paper.IDLE_LATENCY_NS]
    labels = {text.get_text(): text.get_window_extent() for text in ax.texts}
    assert list(labels) == names
    for name, label in labels.items():
        assert label.x1 <= ax.get_window_extent().x1 + 1, name
        assert not any(label.overlaps(other) for text, other in labels.items() if text != name), name
        assert not any(label.overlaps(bar.get_window_extent()) for bar in ax.patches), name
        for line in ax.lines:
            (x, bottom), (_, top) = line.get_transform().transform(line.get_xydata())
            assert not (label.x0 < x < label.x1 and bottom < label.y1 and label.y0 < top), name


@BOTH
def test_the_colours_of_a_machine_whose_links_and_dram_are_hardly_used_end_at_one_per_cent(
        point: Point, wide: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topology, "point_nodes", lambda _: [(0, 1e-6, 1e-9)])
    monkeypatch.setattr(topology, "point_links", lambda _: [])
    (scale,) = drawn("topology", point, wide).axes[0].child_axes
    assert scale.get_xlim() == (0, 1) and scale.xaxis.get_offset_text().get_text() == ""


@BOTH
def test_arrows_of_links_go_from_box_to_box(point: Point, wide: bool) -> None:
    ax = drawn("topology", point, wide).axes[0]
    arrows = [patch for patch in ax.patches if isinstance(patch, FancyArrowPatch)]
    links = point_links(point)
    assert len(arrows) == len(links) > 0
    for arrow, (start, end, *_) in zip(arrows, links, strict=True):
        for (x, y), node in zip(arrow._posA_posB, (start, end), strict=True):
            at_x, at_y = topology.place(node, wide)
            beside, above = abs(x - at_x) - topology.HALF_W, abs(y - at_y) - topology.HALF_H
            assert 0 < max(beside, above) <= 0.021, (start, end)
    assert ax.get_title(loc="left").startswith("GB/s of each direction of a link")


def test_the_axis_of_the_hottest_lines_begins_at_zero() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    thin = next(line for line in found["lines"] if line["name"] == synthetic_run.LINES[5][0])  # the part after it begins almost at zero
    thin["true_sharing_stall"] = found["lines"][0]["stall"] // 10**6
    ax = drawn("hot-lines", synthetic_run.made(record, stats, found), True).axes[0]
    assert ax.get_xlim()[0] == 0 and 0 in ax.get_xticks()


def test_the_papers_share_of_the_kernel_has_a_tick_in_runs_without_its_core_count(tmp_path: Path) -> None:
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(12, 48)))
    ax = drawn("time-per-op", run, True).axes[1]
    assert ax.get_title(loc="left") == "kernel's share" and list(ax.get_xticks()) == [1, 12, 48]


@pytest.mark.parametrize("system", [0.0, 5.0])
def test_the_label_of_the_highest_bar_is_below_the_title_of_its_panel(system: float) -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    point = synthetic_run.made({**record, "user_us_per_op": 10.0, "system_us_per_op": system}, stats, found)
    ax = drawn("time-per-op", Run(Path("run"), {}, [point], []), True).axes[0]
    assert ax.texts[0].get_window_extent().y1 < ax.get_window_extent().y1


@BOTH
def test_the_times_of_two_kernels_have_one_scale(tmp_path: Path, wide: bool) -> None:
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(4,), kernels=("stock", "pk")))
    run.points[0].record |= {"user_us_per_op": 12345.0, "system_us_per_op": 0.0}
    scales = [ax.get_ylim() for ax in drawn("time-per-op", run, wide).axes[:2]]
    assert scales[0] == scales[1] and scales[0][1] > 12345
    assert "12,345" in [text.get_text() for text in drawn("time-per-op", run, wide).axes[0].texts]


@BOTH
def test_misses_of_two_kernels_have_one_scale_that_begins_at_a_labelled_zero(tmp_path: Path, wide: bool) -> None:
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(1, 4), kernels=("stock", "pk")))
    for one in run.points[:2]:
        one.attribution["classes"]["cold"]["stall"] *= 3
        one.attribution["classes"]["cold"]["count"] *= 0
    axes = drawn("misses", run, wide).axes
    for ax, other in zip(axes[:2], axes[2:], strict=True):
        assert ax.get_ylim() == other.get_ylim() and ax.get_ylim()[0] == 0 and 0 in ax.get_yticks()


@pytest.mark.parametrize(("windows", "changed", "known"), [(3, {}, True), (1, {}, False), (3, {"stderr_per_s": None}, False)])
def test_the_kernels_share_has_no_error_bar_where_the_error_is_unknown(windows: int, changed: dict[str, Any], known: bool) -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    record |= {"windows": record["windows"][:windows], **changed}
    point = synthetic_run.made(record, stats, found)
    ax = drawn("time-per-op", Run(Path("run"), {}, [point], []), True).axes[1]
    (bar,) = ax.containers[0].lines[2][0].get_segments()
    assert bar[1][1] > bar[0][1] if known else not len(bar)


@BOTH
def test_the_card_is_drawn_over_time_and_its_drops_only_where_there_are_any(wide: bool) -> None:
    record, stats, found = synthetic_run.point("memcached", "stock", 2)
    one = synthetic_run.made(record, stats, found)
    rows = moments(one)
    assert [row["at_us"] for row in rows] == [float(n) for n in range(1, 11)]
    assert (rows[2]["in_packets"], rows[2]["out_packets"], rows[2]["out_waiting"], rows[2]["fifo_frames"]) == (7, 4, 2, 4)
    titles = [ax.get_title(loc="left") for ax in drawn("card", one, wide).axes]
    assert titles == ["Packets", "Waiting frames", "Free receive buffers", "Packets dropped"]
    assert [text.get_text() for text in drawn("card", one, wide).axes[3].get_legend().get_texts()] == [
        "receive FIFO full", "no receive buffer"]
    figure = next(f for f in all_figures() if f.name == "card")
    assert "dropped: 5 (receive FIFO full) and 1 (no receive buffer)" in figure.caption_of(one)
    for row in found["card"]:
        row["dropped"] = row["dropped_fifo_full"] = 0
    without = synthetic_run.made(record, stats, found)
    assert [ax.get_title(loc="left") for ax in drawn("card", without, wide).axes] == titles[:3]
    assert "dropped: none" in figure.caption_of(without)


@pytest.mark.parametrize("share, listed", [(0.0004, False), (0.02, True)])
@BOTH
def test_a_legend_lists_what_is_seen_in_a_bar(point: Point, wide: bool, share: float, listed: bool) -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    whole = sum(core["window"] for core in stats["cores"])
    classes = stats["attribution"]["classes"]
    rest = causes(point)["without_class"]
    classes["cold"]["stall"] += round((rest - share) * whole)
    one = synthetic_run.made(record, stats, found)
    assert causes(one)["without_class"] == pytest.approx(share)
    run = Run(Path(), {}, [one], [])
    assert ("without a class" in legend(drawn("time-split", run, wide))) == listed
    assert {"cold", "spinning", "idle"} <= legend(drawn("time-split", run, wide))


def test_the_legend_of_probe_filters_lists_the_outcomes_that_are_seen(point: Point, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filters, "by_node", lambda _: (["directed", "broadcast", "rare", "none"], [[5000, 0, 1, 0], [0, 400, 0, 0]]))
    assert legend(drawn("probe-filter", point, True)) == {"directed", "broadcast"}


@BOTH
def test_the_bar_of_the_only_core_count_stands_in_the_middle(point: Point, wide: bool) -> None:
    run = Run(Path("run"), {}, [point], [])
    for name in ("time-split", "time-per-op", "misses"):
        assert sum(drawn(name, run, wide).axes[0].get_xlim()) == 0, name
    assert style.bar_limits(3) == (-0.6, 2.6)


@pytest.mark.parametrize("most, ticks", [(60000, ["0", "20,000", "40,000", "60,000"]), (3e6, ["0", "1,000,000", "2,000,000", "3,000,000"]),
                                         (0.6, ["0.0", "0.2", "0.4", "0.6"])])
def test_ticks_have_commas_between_thousands(most: float, ticks: list[str]) -> None:
    with style.house():
        figure = style.figure(True, 2)
        ax = figure.subplots()
        ax.set(ylim=(0, most), yticks=[n * most / 3 for n in range(4)])
        page = style.svg(figure, "k", "t", "c")
    assert re.findall(r"<text[^>]*>([\d.,]+)</text>", page)[-4:] == ticks


def test_a_png_has_the_resolution_with_which_it_is_as_wide_as_drawn() -> None:
    figure = style.figure(True, 1)
    figure.subplots()
    picture = Image.open(io.BytesIO(style.png(figure, "title")))
    assert picture.width / picture.info["dpi"][0] == pytest.approx(style.WIDE, abs=0.01)


def test_many_lines_of_a_name_are_counted_with_commas() -> None:
    assert hot_lines.label({"name": "heap", "lines": 200000, "waited": 158811}, True) == "heap (158,811 lines)"


def test_segments_of_latencies_have_the_names_of_the_columns_of_latency(point: Point) -> None:
    names = {text.get_text() for text in drawn("latency", point, True).axes[1].get_yticklabels()}
    assert {"queue", "home queue", "dram"} <= names == {SEGMENT.short(s) for s in point.attribution["segments"]}
    assert "home queue, waiting at the home node" in next(f for f in all_figures() if f.name == "latency").caption_of(point)


def test_the_legend_of_misses_leaves_out_invisible_classes(point: Point) -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    stats["attribution"]["classes"]["false_sharing"] = {"count": 1, "stall": 1}
    assert "false sharing" in legend(drawn("misses", Run(Path(), {}, [point], []), True))
    assert legend(drawn("misses", Run(Path(), {}, [synthetic_run.made(record, stats, found)], []), True)) == {"true sharing", "upgrade",
                                                                                                              "capacity", "cold"}
