# SPDX-License-Identifier: BSD-3-Clause
"""The report: self-contained, answers first, whatever the run has or lacks."""

import errno
import json
import re
from pathlib import Path

import pytest
import synthetic_run

from analysis import RunDirectoryError, figures
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
    assert "(the hottest 1 of 4 lines)</caption>" in page[start:]


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
    with pytest.raises(RunDirectoryError, match="run: No space left on device: room there would be right"):
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
