# SPDX-License-Identifier: BSD-3-Clause
"""The report: self-contained, answers first, whatever the run has or lacks."""

import errno
import json
import re
from pathlib import Path

import pytest
import synthetic_run

from analysis import Point, RunDirectoryError, figures, tables
from analysis.page import lines
from analysis.report import write_report


def page_of(folder: Path) -> str:
    return write_report(folder).read_text(encoding="utf-8")


def visible(page: str) -> str:
    return re.sub(r"<[^>]+>", "", re.sub(r"<(style|script)>.*?</\1>", "", page, flags=re.DOTALL))


def test_the_answer_comes_before_any_figure(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    start = page.index('class="headline"', page.index('data-of="p-exim-distro-48"'))
    said = visible(page[start:page.index("</p>", start)])
    assert "mount_lock" in said and "lock_mount_hash writes" in said and "lookup_mnt" in said and "29\u202f%" in said
    assert start < page.index("<svg")


def test_the_page_needs_nothing_from_elsewhere(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']+|url\((?!#)[^)]+\)|@import""", page)


def test_every_figure_has_title_units_and_legend(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    found = re.findall(r'<figure id="([^"]+)">(.*?)</figure>', page, flags=re.DOTALL)
    kinds = {name.split("-p-")[0] for name, _ in found}
    assert kinds == {f.name for f in figures.all_figures() if f.in_page}
    for name, body in found:
        text = visible(body)
        assert re.search("<h3>[^<]+</h3>", body), name
        assert "figcaption" in body, name
        assert re.search(r"\(%\)|\(µs\)|\(ns|per second|\(thousands\)", text), name
        assert "legend_" in body or "share of all waiting (%)" in text or "time in use (%)" in text, name


def test_the_page_tells_what_makes_the_difference_between_two_kernels(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    start = page.index('<figure id="kernel-difference">')
    said = visible(page[start:page.index("</figure>", start)])
    assert "by line" in said and "by waiting function" in said and "mount_lock" in said and "lookup_mnt" in said
    assert "distro" in said and "pk" in said and "per message (µs)" in said


def test_the_page_tells_the_locks_with_who_waits_for_them(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    start = page.index("<h3>Locks that are waited for</h3>", page.index('data-of="p-exim-distro-48"'))
    rows = visible(page[start:page.index("</section>", start)].replace("</tr>", "\n")).splitlines()
    assert any("mount_lock" in row and "lookup_mnt" in row for row in rows) and not any("files_struct" in row for row in rows)
    assert (whole / "tables/locks.csv").read_text(encoding="utf-8").startswith("workload,kernel,cores,lock,form,lines,wait_share")


def test_the_page_tells_from_where_to_where_a_line_went(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    start = page.index("<caption>Times that mount_lock was sent, by chips</caption>", page.index('data-of="p-exim-distro-48"'))
    rows = [re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", row) for row in page[start:page.index("</table>", start)].split("</tr>")]
    assert rows[0] == ["from", *(f"to chip {n}" for n in range(8))]
    assert rows[4] == ["cores of chip 3", *(str(400 + 10 * n) for n in range(8))] and rows[9][0] == "memory of node 0"
    assert "of 4 lines)</caption>" not in page[start:], "of all lines of a name"


def test_figures_are_there_as_png_too(whole: Path) -> None:
    names = {f.name for f in (whole / "figures").iterdir()}
    assert {"time-split.png", "throughput.png", "time-per-op.png", "misses.png", "hot-lines-exim-distro-48.png",
            "writer-waiter-exim-pk-48.png", "topology-exim-distro-1.png", "latency-exim-distro-48.png"} <= names
    assert all((whole / "figures" / n).read_bytes().startswith(b"\x89PNG") for n in names)


def test_the_papers_points_stand_beside_exim_only(tmp_path: Path, whole: Path) -> None:
    other = synthetic_run.write_run(tmp_path / "run", cores=(48,), workload="counter")
    assert "paper: stock" in visible((whole / "report.html").read_text(encoding="utf-8"))
    assert "paper: stock" not in visible(page_of(other))


def test_made_again_it_is_the_same(tmp_path: Path) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(12,))
    assert page_of(folder) == page_of(folder)


def test_names_cannot_break_out_of_the_page(tmp_path: Path) -> None:
    documents = synthetic_run.point("exim", "distro", 12)
    documents[2]["lines"][0]["name"] = "<script>alert(1)</script>"
    documents[2]["lines"][0]["pairs"][0]["writer_function"] = "</svg><b>"
    documents[0]["workload"] = "a<b>$x_1$"
    folder = tmp_path / "run"
    folder.mkdir()
    target = folder / "points" / "odd"
    target.mkdir(parents=True)
    for name, document in zip(("point", "stats", "lines"), documents, strict=True):
        (target / f"{name}.json").write_text(json.dumps(document))
    page = page_of(folder)
    assert "<script>alert" not in page and "</svg><b>" not in page and "a<b>" not in page


ODD = {
    "no idle, no stall": lambda r, s, n: [s["attribution"].update(exposed=0, lines=[], transactions=0), n.update(lines=[])],
    "no lines": lambda r, s, n: [n.update(lines=[], functions=[]), r.update(top_lines=[])],
    "no statistics": lambda r, s, n: [s.clear(), n.clear()],
    "no operation finished": lambda r, s, n: r.update(ops=0, throughput_per_s=0.0, stderr_per_s=None, user_us_per_op=None,
                                                      system_us_per_op=None),
    "one window": lambda r, s, n: r.update(stderr_per_s=None, windows=r["windows"][:1]),
    "ideal network": lambda r, s, n: s["machine"].update(network={"kind": "ideal", "channels": {}, "links": [], "ports": []}),
    "other protocol": lambda r, s, n: s["machine"].update(protocol="MSI", machine="small", controllers=[]),
    "hardly any key": lambda r, s, n: [r.clear(), r.update(cores=4), s.clear(), n.clear()],
    "long names": lambda r, s, n: n["lines"][0].update(name="a_very_long_" * 20, object="x" * 150, field="y" * 150),
}


@pytest.mark.parametrize("what", ODD)
def test_a_report_is_made_of_odd_data(tmp_path: Path, what: str) -> None:
    record, stats, lines = documents = synthetic_run.point("exim", "distro", 4)
    folder = synthetic_run.write_point(tmp_path / "run", documents)
    ODD[what](record, stats, lines)
    for name, document in (("point", record), ("stats", stats), ("lines", lines)):
        (folder / f"{name}.json").write_text(json.dumps(document))
    page = page_of(tmp_path / "run")
    assert 'class="headline"' in page and "All points" in page
    assert "run.json is not there" in visible(page)
    assert "nan" not in visible(page).lower().split()


def test_the_command_makes_the_report_again(whole: Path, moscope) -> None:  # type: ignore[no-untyped-def]
    (whole / "report.html").unlink()
    got = moscope("report", str(whole), "--json", timeout=300)
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    from moscope import jsonio
    jsonio.validate(document)
    assert Path(document["report"]).is_file()


def test_the_command_answers_a_wrong_folder_as_a_user_error(tmp_path: Path, moscope) -> None:  # type: ignore[no-untyped-def]
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


def test_a_disk_without_room_is_said_to_be_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(1,))

    def full(self: Path, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RunDirectoryError, match="run: No space left on device: expected room there"):
        write_report(folder)


def test_who_fights_is_told_as_shares_of_all_waiting_whatever_is_listed(tmp_path: Path) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(12,))
    (file,) = folder.glob("points/*/lines.json")
    document = json.loads(file.read_text())
    first, second = document["names"][:2]
    for name, pairs in ((first, [{"writer_function": "w", "waiter_function": "r", "stall": (first["stall"] + first["spin"]) // 4, "spin": 0}]),
                        (second, [])):
        name["pairs"] = pairs
    file.write_text(json.dumps(document))
    page = page_of(folder)
    start = page.index(f"Who fights over {first['name']}")
    assert re.findall(r">(\d+)\u202f%<", page[start:page.index("</table>", start)]) == ["25"]
    assert f"Who fights over {second['name']}" not in page, "a table of nothing"


def told_by_the_run(record: dict, document: dict) -> str:  # type: ignore[type-arg]
    """The point's `bottleneck`, made by what makes it in a run."""
    from moscope.run import lines as run_lines

    record["top_names"] = run_lines.top_names(document, sum(one["stall"] for one in document["names"]))
    record["bottleneck"] = run_lines.bottleneck(record, record["top_names"])
    return str(record["bottleneck"])


@pytest.mark.parametrize("writers, pair, said", [
    (["largest_writer", "second_writer"], ("second_writer", "waiter"), "which waiter waits for and largest_writer writes"),
    (["waiter", "second_writer"], ("second_writer", "waiter"), "which waiter both waits for and writes"),
    (["waiter", "second_writer"], ("waiter", "waiter"), "over which waiter fights with itself"),
    (["", "second_writer"], ("second_writer", "waiter"), "which waiter waits for and second_writer writes"),
    ([], ("", "waiter"), "which waiter waits for")])
@pytest.mark.parametrize("with_lines", [True, False], ids=["all files", "run.json alone"])
def test_headline_and_bottleneck_name_the_same_functions(writers: list[str], pair: tuple[str, str], said: str, with_lines: bool) -> None:
    record, stats, document = synthetic_run.point("exim", "distro", 48)
    first = document["names"][0]
    first["writers"] = [{"function": f, "share": 0.6 - 0.2 * n} for n, f in enumerate(writers)]
    first["waiters"] = [{"function": "waiter", "share": 0.9}, {"function": "late", "share": 0.1}]
    first["pairs"] = [{"writer_function": pair[0], "waiter_function": pair[1], "stall": first["stall"] // 2, "spin": 0},
                      {"writer_function": "late", "waiter_function": "late", "stall": first["stall"] // 9, "spin": 0}]
    bottleneck = told_by_the_run(record, document)
    found = visible(lines.headline(Point("p", record, stats, document) if with_lines else Point("p", record)))
    if not with_lines:  # and so without pairs
        said = said.replace("over which waiter fights with itself", "which waiter both waits for and writes")
    assert said in found
    functions = {"waiter", "largest_writer", "second_writer", "late"}
    assert {f for f in functions if re.search(rf"\b{f}\b", found)} == {f for f in functions if re.search(rf"\b{f}\b", bottleneck)}


def card(page: str, name: str) -> str:
    """What is told of a name in the list."""
    start = page.index(f'<span class="name"><code>{name}</code>')
    return visible(page[start:page.index("</li>", start)])


def test_of_a_run_of_before_the_list_says_for_how_many_of_a_names_lines_moves_are_counted() -> None:
    documents = synthetic_run.point("exim", "distro", 12)
    hottest, names = documents[2]["lines"], documents[2]["names"]
    for n, one in enumerate(names):
        del one["moves"]
        one["name"] = f"name{n}" if n < 6 else one["name"]
    for n in (0, 1, 2, 3):  # those of the names 4 and 5 are not among the hottest
        hottest[n]["name"] = f"name{n}"
    names[1]["lines"], names[2]["lines"], names[3]["lines"], names[4]["lines"], names[5]["lines"] = 4321, 1, 2, 4321, 1
    hottest[2]["moves"] = hottest[3]["moves"] = []
    page = lines.section(Point("p", *documents))
    none = f"No table by chips and no count of cores: both are kept for the {len(hottest)} hottest lines of the point, and"
    partly = "This and the cores that waited are counted for the hottest 1 of its 4,321 lines only."
    assert "Times that it was sent from chip to chip." in card(page, "name0") and "only" not in card(page, "name0")
    assert partly in card(page, "name1") and "to chip 1" in card(page, "name1")
    assert "In the windows nobody sent it to a core." in card(page, "name2")
    assert "In the windows nobody sent it to a core (the hottest 1 of 2 lines)." in card(page, "name3")
    assert f"{none} none of these 4,321 lines is among them." in card(page, "name4")
    assert f"{none} this line is not among them." in card(page, "name5") and "address" not in card(page, "name5")


def test_a_run_that_does_not_tell_where_lines_went_is_said_once_not_to() -> None:
    documents = synthetic_run.point("exim", "distro", 12)
    for one in (*documents[2]["lines"], *documents[2]["names"]):
        del one["moves"]
    page = lines.section(Point("p", *documents))
    assert visible(page).count("From where to where lines went is not recorded in this run.") == 1
    assert "hottest lines of the point" not in page


@pytest.mark.parametrize("share, told", [(0.0004, False), (0.02, True)])
def test_what_is_without_a_class_is_explained_where_it_is_shown(tmp_path: Path, share: float, told: bool) -> None:
    record, stats, named = documents = synthetic_run.point("exim", "distro", 48)
    whole = sum(core["window"] for core in stats["cores"])
    for line in (*named["lines"], *named["names"]):  # a line's own stall all has a class
        line["classes"]["cold"]["stall"] += line["stall"] - sum(by["stall"] for by in line["classes"].values())
    rest = tables.causes(Point("p", record, stats, named))["without_class"]
    stats["attribution"]["classes"]["cold"]["stall"] += round((rest - share) * whole)
    page = page_of(synthetic_run.write_point(tmp_path / "run", documents).parents[1])
    assert ("<dt>without a class</dt>" in page) == told
    assert ("without a class" in visible(page)) == told
