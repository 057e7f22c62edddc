# SPDX-License-Identifier: BSD-3-Clause
"""The report: self-contained, answers first, whatever the run has or lacks."""

import csv
import errno
import json
import re
import sys
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pytest
import synthetic_run
from pyarrow import parquet

from analysis import Run, RunDirectoryError, figures, load, style, tables
from analysis.database import Database
from analysis.maps import maps_of
from analysis.page import lines
from analysis.page.document import configuration, notices, picker, points_table
from analysis.page.markup import prose
from analysis.report import write_report
from analysis.tables.differences import kernel_pairs
from analysis.tables.time_split import causes


def page_of(folder: Path) -> str:
    """The page with all figures."""
    return write_report(folder).read_text(encoding="utf-8")


def page_with(folder: Path, *names: str) -> str:
    """The page with the figures of these names only."""
    chosen = [f for f in figures.all_figures() if f.name in names]
    assert len(chosen) == len(names)
    return write_report(folder, chosen).read_text(encoding="utf-8")


def test_no_heading_skips_a_level(whole: Path) -> None:
    levels = [int(level) for level in re.findall(r"<h(\d)", (whole / "report.html").read_text())]
    assert levels[0] == 1 and all(b <= a + 1 for a, b in zip(levels, levels[1:], strict=False))


def visible(page: str) -> str:
    return re.sub(r"<[^>]+>", "", re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))


def test_the_answer_comes_before_any_figure(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    start = page.index('class="headline"', page.index('data-of="p-exim-distro-48"'))
    said = visible(page[start:page.index("</p>", start)])
    assert "mount_lock" in said and "lock_mount_hash writes" in said and "lookup_mnt" in said and "29\u202f%" in said
    assert start < page.index("<svg")


def test_buttons_that_choose_a_point_say_that_they_need_javascript(tmp_path: Path) -> None:
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(1, 2)))
    assert "</nav><noscript>" in picker(run, run.points[0]) and "These buttons need JavaScript" in picker(run, run.points[0])
    assert not picker(Run(Path(), {}, run.points[:1], []), run.points[0])


@pytest.mark.parametrize("kernels", [("stock", "pk"), ("pk", "stock"), ("upstream", "stock", "distro")])
def test_kernels_have_the_order_in_which_the_run_was_given_them(tmp_path: Path, kernels: tuple[str, ...]) -> None:
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(4, 1), kernels=kernels))
    assert [(p.kernel, p.cores) for p in run.points] == [(kernel, cores) for kernel in kernels for cores in (1, 4)]
    assert [tuple(p.kernel for p in pair) for pair in kernel_pairs(run)] == [kernels[:2]]
    (run.path / "run.json").unlink()
    assert load(run.path).kernels == sorted(kernels)


def test_no_line_of_a_page_ends_between_a_number_and_its_unit() -> None:
    text = prose("pk-7 & stock: +20 % ± 150 %, -3.5 µs ± 2 µs, 8 nodes, 1 msg")
    assert text == ("pk-7 &amp; stock: +20\u202f% ±\u202f150\u202f%, \u22123.5\u202fµs ±\u202f2\u202fµs, 8 nodes, 1 msg")


def test_the_configuration_has_the_size_of_memory_that_was_simulated(tmp_path: Path) -> None:
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(1,)))
    run.record["config"] |= {"points": [{"memory_per_node": "512MiB"}], "description": {"chips": "8", "memory_per_node": "8GiB"}}
    assert "512MiB" in configuration(run) and "8GiB" not in configuration(run) and "chips" in configuration(run)
    run.record["config"]["points"] = []
    assert "8GiB" in configuration(run)


def test_the_page_loads_no_other_files(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']+|url\((?!#)[^)]+\)|@import""", page)


UNITS = r"\(%\)|\(µs\)|\(ns|per second|\(thousands\)"
NO_SERIES = {"ink", "muted", "grid", "page", "dark", "onheat"}  # roles of text, axes and background


def test_every_figure_has_title_units_and_a_legend_for_several_colours(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    found = re.findall(r'<figure id="([^"]+)">(.*?)</figure>', page, flags=re.DOTALL)
    kinds = {name.split("-p-")[0] for name, _ in found}
    assert kinds == {f.name for f in figures.all_figures() if f.in_page}
    for name, body in found:
        text = visible(body)
        assert re.search("<h3>[^<]+</h3>", body), name
        assert "figcaption" in body, name
        assert re.search(UNITS, text), f"{name}: no axis with a unit: expected a label with one of (%), (µs), (ns), (thousands), per second"
        series = set(re.findall(r"var\(--(\w+)\)", body)) & set(style.PALETTE) - NO_SERIES
        assert "legend_" in body or len(series) <= 1, f"{name}: no legend of {sorted(series)}: expected style.legend_above"


def test_the_page_shows_the_difference_between_two_kernels(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    start = page.index('<figure id="kernel-difference">')
    said = visible(page[start:page.index("</figure>", start)])
    assert "by line" in said and "by waiting function" in said and "mount_lock" in said and "lookup_mnt" in said
    assert "distro" in said and "pk" in said and "per message (µs)" in said


def test_the_page_lists_locks_with_their_waiting_functions(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    start = page.index("<h3>Waiting by lock</h3>", page.index('data-of="p-exim-distro-48"'))
    rows = visible(page[start:page.index("</section>", start)].replace("</tr>", "\n")).splitlines()
    assert any("mount_lock" in row and "lookup_mnt" in row for row in rows) and not any("files_struct" in row for row in rows)
    assert (whole / "tables/locks.csv").read_text(encoding="utf-8").startswith("workload,kernel,cores,lock,form,lines,wait_share")


def test_the_page_has_transfers_by_chip(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    start = page.index("<caption>Transfers of mount_lock, by chips</caption>", page.index('data-of="p-exim-distro-48"'))
    rows = [re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", row) for row in page[start:page.index("</table>", start)].split("</tr>")]
    assert rows[0] == ["from", *(f"to chip {n}" for n in range(8))]
    assert rows[4] == ["cores of chip 3", *(str(400 + 10 * n) for n in range(8))] and rows[9][0] == "memory of node 0"


def test_figures_are_also_png_files(whole: Path) -> None:
    names = {f.name for f in (whole / "figures").iterdir()}
    assert {"time-split.png", "throughput.png", "time-per-op.png", "misses.png", "hot-lines-exim-distro-48.png",
            "writer-waiter-exim-pk-48.png", "topology-exim-distro-1.png", "latency-exim-distro-48.png"} <= names
    assert all((whole / "figures" / n).read_bytes().startswith(b"\x89PNG") for n in names)


WITH_PAPER = ("throughput", "time-per-op", "latency")  # figures with values of the paper


def test_only_exim_has_the_papers_points(tmp_path: Path, whole: Path) -> None:
    other = synthetic_run.write_run(tmp_path / "run", cores=(48,), workload="counter")
    assert "paper: stock" in visible((whole / "report.html").read_text(encoding="utf-8"))
    assert "paper: stock" not in visible(page_with(other, *WITH_PAPER))


def test_a_second_report_of_a_run_is_the_same(tmp_path: Path) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(12,))
    assert page_of(folder) == page_of(folder)


def test_names_in_the_page_are_escaped(tmp_path: Path) -> None:
    documents = synthetic_run.point("exim", "distro", 12)
    documents[2]["lines"][0]["name"] = "<script>alert(1)</script>"
    documents[2]["pairs"][0]["writer_function"] = "</svg><b>"
    documents[0]["workload"] = "a<b>$x_1$"
    folder = tmp_path / "run"
    folder.mkdir()
    target = folder / "points" / "odd"
    target.mkdir(parents=True)
    synthetic_run.write_files(target, *documents)
    page = page_of(folder)
    assert "&lt;script&gt;alert" in page
    assert "<script>alert" not in page and "</svg><b>" not in page and "a<b>" not in page


ODD = {
    "no idle, no stall": lambda r, s, n: [s["attribution"].update(exposed=0, transactions=0), n.update(lines=[])],
    "no lines": lambda r, s, n: [n.update(lines=[], pairs=[], transfers=[]), r.update(top_lines=[], top_names=[])],
    "no statistics": lambda r, s, n: [s.clear(), n.update(lines=[], pairs=[], transfers=[])],
    "no operation finished": lambda r, s, n: r.update(ops=0, throughput_per_s=0.0, stderr_per_s=None, user_us_per_op=None,
                                                      system_us_per_op=None),
    "one window": lambda r, s, n: r.update(stderr_per_s=None, windows=r["windows"][:1]),
    "ideal network": lambda r, s, n: s["machine"].update(network={"kind": "ideal", "channels": {}, "links": [], "ports": []}),
    "other protocol": lambda r, s, n: s["machine"].update(protocol="MSI", machine="small", controllers=[]),
    "hardly any key": lambda r, s, n: [r.clear(), r.update(cores=4), s.clear(), n.update(lines=[], pairs=[], transfers=[])],
    "long names": lambda r, s, n: n["lines"][0].update(name="a_very_long_" * 20, object="x" * 150, field="y" * 150),
}


@pytest.mark.parametrize("what", ODD)
def test_odd_data_still_gives_a_report(tmp_path: Path, what: str) -> None:
    record, stats, found = documents = synthetic_run.point("exim", "distro", 4)
    folder = synthetic_run.write_point(tmp_path / "run", documents)
    ODD[what](record, stats, found)
    synthetic_run.write_files(folder, record, stats, found)
    page = page_of(tmp_path / "run")
    assert 'class="headline"' in page and "All points" in page and "per second (± standard error)</th>" in page
    assert "run.json is missing" in visible(page)
    assert "nan" not in visible(page).lower().split()


def test_the_command_makes_the_report_again(tmp_path: Path, moscope) -> None:  # type: ignore[no-untyped-def]
    folder = synthetic_run.write_run(tmp_path / "run", cores=(2,))
    (folder / "report.html").write_text("an older report")
    got = moscope("report", str(folder), "--json", timeout=600)
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    from moscope import jsonio
    jsonio.validate(document)
    assert document["report"] == str(folder / "report.html")
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "an older report" not in page and "mount_lock" in page
    assert all(f'<figure id="{f.name}' in page for f in figures.all_figures() if f.in_page and f.name != "kernel-difference")


def test_a_wrong_folder_is_a_user_error_of_the_command(tmp_path: Path, moscope) -> None:  # type: ignore[no-untyped-def]
    got = moscope("report", str(tmp_path))
    assert got.returncode == 2 and "neither run.json nor a finished point" in got.stderr and "Traceback" not in got.stderr


def test_a_png_has_its_title_above_all_of_the_figure(tmp_path: Path) -> None:
    import io

    from PIL import Image, ImageChops

    from analysis import load, style
    run = load(synthetic_run.write_run(tmp_path / "run", cores=(48,)))
    spec = next(f for f in figures.all_figures() if f.name == "time-split")
    one, other = (Image.open(io.BytesIO(style.png(spec.drawn(run, True), title))) for title in ("A title", "Another one"))
    band = round(style.TITLE * 160)
    differing = ImageChops.difference(one.convert("RGB"), other.convert("RGB")).getbbox()
    assert differing and differing[3] <= band
    plain = style._drawn(spec.drawn(run, True)).convert("RGB")
    assert ImageChops.difference(one.convert("RGB").crop((0, band, *one.size)), plain).getbbox() is None


@pytest.mark.parametrize(("window", "said"), [(1.0, ">1 × 3<"), (0.002, ">0.002 × 3<"), (2.5, ">2.5 × 3<")])
def test_a_short_window_has_its_length(window: float, said: str) -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 4)
    run = Run(Path("run"), {}, [synthetic_run.made({**record, "window_ms": window}, stats, found)], [])
    assert said in points_table(run)


def test_without_the_engine_a_report_lacks_its_episodes_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = synthetic_run.write_run(tmp_path / "run", cores=(4,))
    episode = [{"name": "mount_lock", "name_kind": "slab", "line": 0x10000, "issued": 1, "va": 0, "core": 0, "pc": 1, "kind": "load",
                "class": "cold", "buffer_wait": False}]
    parquet.write_table(pa.Table.from_pylist(episode), run / "points" / "exim-distro-4" / "episodes.parquet")
    monkeypatch.delattr("moscope._engine", raising=False)
    monkeypatch.setitem(sys.modules, "moscope._engine", None)
    assert "mount" in visible(page_with(run))
    assert not (run / "episodes").exists()


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(1,))

    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunDirectoryError, match="run/figures/.*.png: No space left on device: expected free space"):
        write_report(folder)


def test_a_table_that_cannot_be_written_leaves_the_one_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run, folder = load(synthetic_run.write_run(tmp_path / "run", cores=(1,))), tmp_path / "tables"
    monkeypatch.setattr(tables, "ALL", {"points": tables.ALL["points"]})
    tables.write_csv(run, folder)
    before = {file: file.read_bytes() for file in folder.iterdir()}

    class Full:
        def __init__(self, file: IO[str]) -> None:
            self.file = file

        def writerow(self, row: Any) -> None:
            self.file.write("half a row")
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(csv, "writer", Full)
    with pytest.raises(OSError, match="No space left"):
        tables.write_csv(run, folder)
    assert {file: file.read_bytes() for file in folder.iterdir()} == before


def test_a_pairs_share_is_of_all_waiting_for_its_name(tmp_path: Path) -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 12)
    first, second = found["lines"][0], found["lines"][1]
    pair = next(one for one in found["pairs"] if one["line"] == first["line"])
    others = [one for one in found["pairs"] if one["line"] not in (first["line"], second["line"])]
    found["pairs"] = [{**pair, "writer_function": "w", "waiter_function": "r", "stall": first["stall"] // 4, "spin": 0}, *others]
    page = page_with(synthetic_run.write_point(tmp_path / "run", (record, stats, found)).parents[1])
    start = page.index(f"Writers and waiters of {first['name']}")
    assert re.findall(r">(\d+)\u202f%<", page[start:page.index("</table>", start)]) == ["25"]
    assert f"Writers and waiters of {second['name']}" not in page, "a table without rows"


def test_a_card_says_which_part_of_the_waiting_follows_a_write() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 12)
    first, pair = found["lines"][0], {**found["pairs"][0], "spin": 0}
    for tenths, said in ((3, "w 100\u202f% (for 30\u202f% of the waiting)"),
                         (1, "no other core or device for 90\u202f% of the waiting")):
        found["pairs"] = [{**pair, "writer": None, "writer_function": None, "waiter_function": "map",
                           "stall": (10 - tenths) * first["stall"]},
                          {**pair, "writer_function": "w", "waiter_function": "r", "stall": tenths * first["stall"]}]
        page = visible(lines.section(synthetic_run.made(record, stats, found)))
        assert f"last written by {said} · waited for by map {10 * (10 - tenths)}\u202f%" in page


def test_the_lines_that_cores_waited_for_are_those_with_waiting_each_once() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 12)
    assert sum(not line["stall"] + line["spin"] for line in found["lines"]) == 3 * (len(synthetic_run.LINES) - 1)
    found["lines"].append({**found["lines"][0], "use": 999, "name": "the name in another use of the page"})
    names = len(synthetic_run.LINES) + 1
    p = synthetic_run.made(record, stats, found)
    assert f"Cores waited for {names - 1} cache lines with {names} names." in lines.section(p)


def test_headline_and_entries_count_the_lines_with_waiting() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 12)
    found["lines"] = [{**found["lines"][0], "line": 64 * n, "spin": 0, "stall": 100 * (n < 3)} for n in range(7)]
    page = visible(lines.section(synthetic_run.made(record, stats, found)))
    assert "is for 3 cache lines of one name" in page
    assert "Cores waited for 3 cache lines with 1 name." in page
    assert "3 lines" in page and "7 lines" not in page


def test_one_transaction_by_one_core_is_singular() -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 12)
    found["lines"] = [{**found["lines"][0], "transfers": 1, "waiters": 1}]
    assert "1 transaction, by 1 core," in visible(lines.section(synthetic_run.made(record, stats, found)))


@pytest.mark.parametrize("counts, pair, said", [
    ({"frequent_writer": 9, "slow_writer": 3}, ("slow_writer", "waiter"), "which waiter waits for and slow_writer writes"),
    ({"waiter": 9, "slow_writer": 3}, ("slow_writer", "waiter"), "which waiter waits for and slow_writer writes"),
    ({"waiter": 9, "slow_writer": 3}, ("waiter", "waiter"), "which waiter writes on one core and waits for on another"),
    ({"waiter": 9}, (None, "waiter"), "which waiter waits for"),  # another core's write precedes almost no waiting
    ({}, (None, "waiter"), "which waiter waits for")])
@pytest.mark.parametrize("with_tables", [True, False], ids=["all files", "run.json alone"])
def test_headline_and_bottleneck_name_the_functions_of_the_pair_with_the_most_waiting(
        counts: dict[str, int], pair: tuple[str | None, str], said: str, with_tables: bool) -> None:
    from moscope.naming.columns import Tables
    from moscope.runs import lines as run_lines

    record, stats, found = synthetic_run.point("exim", "distro", 48)
    first = found["lines"][0]
    one = {**found["pairs"][0], "spin": 0}
    found["pairs"] = [{**one, "writer": 1 if pair[0] else None, "writer_function": pair[0], "waiter_function": pair[1],
                       "stall": first["stall"] // 2, "count": 0}]
    found["pairs"] += [{**one, "writer_function": writer, "waiter_function": "waiter", "stall": 1, "count": count} for writer,
                       count in counts.items()]
    tables = Tables(**{name: rows for name, rows in synthetic_run.arrow(found).items() if name != "card"})
    record["top_names"] = run_lines.Hottest(tables, lambda line: line).names(stats["attribution"]["exposed"])
    bottleneck = run_lines.bottleneck(record, record["top_names"])
    headline = visible(lines.headline(synthetic_run.made(record, stats, found if with_tables else None)))
    assert said in headline
    functions = {"waiter", "frequent_writer", "slow_writer"}
    assert {f for f in functions if re.search(rf"\b{f}\b", headline)} == {f for f in functions if re.search(rf"\b{f}\b", bottleneck)}


@pytest.mark.parametrize("portion, shown, bare", [(0.5, "one cache line, that of p:lock", "the line of p:lock ("),
                                                  (0.7, "one cache line, p:lock.next", "p:lock.next (")])
def test_a_line_whose_fields_share_the_waiting_is_called_after_their_object(portion: float, shown: str, bare: str) -> None:
    from moscope.naming.columns import Tables
    from moscope.runs import lines as run_lines

    record, stats, found = synthetic_run.point("exim", "distro", 48)
    found["lines"][0].update(name="p:lock.next", kind="user symbol", field="next")
    one = {**found["pairs"][0], "spin": 0}
    whole = found["lines"][0]["stall"]
    found["pairs"] = [{**one, "stall": int(whole * part), "waiter": n} for n, part in enumerate((portion, 1 - portion))]
    tables = synthetic_run.arrow(found)
    tables["pairs"] = tables["pairs"].append_column("accessed", pa.array(["p:lock.next", "p:lock.owner"]))
    p = synthetic_run.made(record, stats)
    p.database = Database({"p": tables})
    assert f"is for {shown}, which" in visible(lines.headline(p))
    names = run_lines.Hottest(Tables(**{name: rows for name, rows in tables.items() if name != "card"}), lambda line: line).names(1)
    assert f" of it for {bare}" in run_lines.bottleneck(record, names)
    alone = {**record, "top_names": names, "bottleneck": run_lines.bottleneck(record, names)}
    page = visible(lines.section(synthetic_run.made(alone, stats)))
    assert shown in page and "Bottleneck:" not in page


@pytest.mark.parametrize("share, listed", [(0.0004, False), (0.02, True)])
def test_stall_without_a_class_is_explained_if_a_legend_lists_it(tmp_path: Path, share: float, listed: bool) -> None:
    record, stats, found = documents = synthetic_run.point("exim", "distro", 48)
    whole = sum(core["window"] for core in stats["cores"])
    for line in found["lines"]:  # a line's own stall all has a class
        line["cold_stall"] += line["stall"] - sum(line[f"{k}_stall"] for k in synthetic_run.CLASSES)
    rest = causes(synthetic_run.made(record, stats))["without_class"]
    stats["attribution"]["classes"]["cold"]["stall"] += round((rest - share) * whole)
    page = page_with(synthetic_run.write_point(tmp_path / "run", documents).parents[1], "time-split", "hot-lines")
    assert ("<dt>without a class</dt>" in page) == listed
    assert ("without a class" in visible(page)) == listed


def changed_run(folder: Path, **config: Any) -> Run:
    synthetic_run.write_run(folder, cores=(1, 48))
    record = json.loads((folder / "run.json").read_text())
    record["config"] |= config
    (folder / "run.json").write_text(json.dumps(record))
    return load(folder)


@pytest.mark.parametrize(("sets", "beside"), [([], True), (["memory_per_node=1GiB"], True), (["links.clock=2.4GHz"], False)])
def test_only_the_papers_machine_has_the_papers_values(tmp_path: Path, sets: list[str], beside: bool) -> None:
    run = changed_run(tmp_path / "run", set=sets)
    page = page_with(run.path, *WITH_PAPER)
    assert ("Linux 2.6.35" in page, "paper: stock" in page, "idle load latencies published" in page) == (beside,) * 3


def test_without_operations_there_is_no_figure_of_throughput(tmp_path: Path) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(4,), workload="mine")
    for file in (folder / "run.json", *folder.glob("points/*/point.json")):
        document = json.loads(file.read_text())
        for record in document.get("points", [document]):
            record |= {"ops": 0, "throughput_per_s": 0.0, "stderr_per_s": 0.0, "user_us_per_op": None, "system_us_per_op": None}
        file.write_text(json.dumps(document))
    page = write_report(folder).read_text()
    assert not (folder / "figures/throughput.png").exists() and 'id="throughput"' not in page
    assert "Linux 2.6.35" not in page and "paper" not in page.lower()
    assert "0 \u00b1 0" not in page


def test_the_difference_of_two_kernels_is_marked_where_it_is_within_the_error(tmp_path: Path) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(24,), kernels=("stock", "pk"))
    page = page_with(folder, "kernel-difference")
    assert "exim on 24 cores: pk against stock, +" in page and "within the error of the windows" not in page
    point, stats, found = synthetic_run.point("exim", "stock", 24)
    synthetic_run.write_files(folder / "points/exim-pk-24", {**point, "kernel": "pk"}, stats, found)
    assert "throughput, which is within the error of the windows" in page_with(folder, "kernel-difference")


def test_the_page_begins_with_the_points_whose_throughput_was_not_steady(tmp_path: Path) -> None:
    record, *others = synthetic_run.point("exim", "stock", 24)
    folder = synthetic_run.write_run(tmp_path / "run", cores=(24,), kernels=("stock",))
    assert "not steady" not in write_report(folder).read_text()
    record |= {"windows": record["windows"] * 4, "trend": {"windows": 4, "before": 100.0, "after": 2000.0}}
    synthetic_run.write_files(folder / "points/exim-stock-24", record, *others)
    expected = (f"from 100 per second in the first 4 windows to 2,000 in the last {len(record['windows']) - 4} windows: "
                "expected a longer --warmup, unless the system has no steady state")
    assert f"<li>exim on stock, 24 cores: throughput rises {expected}</li>" in write_report(folder).read_text()


def test_the_page_has_the_notes_of_the_points(tmp_path: Path) -> None:
    record, *others = synthetic_run.point("exim", "stock", 24)
    folder = synthetic_run.write_run(tmp_path / "run", cores=(24,), kernels=("stock",))
    assert "Notes of the points" not in notices(load(folder))
    synthetic_run.write_files(folder / "points/exim-stock-24", {**record, "notes": ["f<1> was not called"]}, *others)
    assert "<li>exim on stock, 24 cores: f&lt;1&gt; was not called</li>" in notices(load(folder))


@pytest.mark.parametrize("name", ["fields", "stacks", "transactions", "episodes", "links", "card", "loads"])
def test_a_damaged_file_that_a_run_may_lack_is_left_out_and_listed(tmp_path: Path, name: str) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(1,))
    damaged = folder / "points" / "exim-distro-1" / f"{name}.parquet"
    damaged.write_bytes(b"PAR1 cut short")
    page = page_with(folder, "throughput")
    assert f"exim-distro-1/{name}.parquet cannot be read" in visible(page)
    assert load(folder).points[0].database.rows("SELECT count(*) AS n FROM lines")[0]["n"] > 0


@pytest.mark.parametrize("name", ["stacks", "episodes", "fields", "loads", "card", "links"])
def test_a_file_with_other_columns_is_left_out_and_listed(tmp_path: Path, name: str) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(1,))
    parquet.write_table(pa.table({"name": ["other"]}), folder / "points" / "exim-distro-1" / f"{name}.parquet")
    assert f"exim-distro-1/{name}.parquet cannot be read" in visible(page_with(folder, "throughput"))


@pytest.mark.parametrize("config", [5, {"set": 5}])
def test_a_run_json_of_another_shape_is_left_out_and_listed(tmp_path: Path, config: Any) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(1,))
    (folder / "run.json").write_text(json.dumps({"machine": "opteron48", "points": [{}], "config": config}))
    run = load(folder)
    assert [p.cores for p in run.points] == [1] and run.record == {}
    assert any(problem.startswith("run.json is left out: its config") for problem in run.problems)


def test_a_map_does_not_need_transactions_that_have_other_columns(tmp_path: Path) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(4,))
    parquet.write_table(pa.table({"core": [1]}), folder / "points" / "exim-distro-4" / "transactions.parquet")
    (line,) = maps_of(load(folder).points[0], "mount_lock", "slab")
    assert not line.complete and not line.sample
