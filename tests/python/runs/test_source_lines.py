# SPDX-License-Identifier: BSD-3-Clause
"""A program of one's own that is compiled with -g: field and source line appear wherever a run names what waits and what writes."""

import json
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

from moscope import jsonio
from moscope.guest import initramfs, kernel, packages

Moscope = Callable[..., "subprocess.CompletedProcess[str]"]
SOURCE = Path(__file__).parent / "packed.c"
LINES = SOURCE.read_text(encoding="utf-8").splitlines()
PACKETS, BYTES, CALL = (next(n for n, text in enumerate(LINES, 1) if part in text)
                        for part in ("of->packets++", "of->bytes +=", "count(own,"))
INLINED = f"count called at packed.c:{CALL}"

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None or not all(
    (packages.cache() / "chosen" / f"{name}.json").is_file() for name in (kernel.CLOUD_KERNEL, initramfs.BUSYBOX_PACKAGE)),
    reason="without gcc, or the distribution's kernel is not in the cache: `moscope boot` fetches it")


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory, moscope_in: Callable[[Path], Moscope]) -> tuple[Path, dict[str, Any], str]:
    """The run, its JSON object and what it printed for people."""
    folder = tmp_path_factory.mktemp("packed")
    shutil.copy(SOURCE, folder)
    subprocess.run(["gcc", "-g", "-O2", "-static", "-pthread", "packed.c", "-o", "packed"], cwd=folder, check=True)
    moscope = moscope_in(folder)
    # With overlap, the loads of one of the two fields hide behind those of the other.
    command = ("run", "--program", "packed {cores}", "--begin", "the workers run", "--cores", "4", "--warmup", "50us", "--window", "100us",
               "--detail", "full", "--set", "core.model=blocking", "--out", "run")
    got = moscope(*command, "--json", timeout=600)
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    jsonio.validate(document)
    again = moscope(*command, timeout=600)  # all is measured: it only prints
    assert again.returncode == 0, again.stderr
    return folder / "run", document, again.stdout


def test_the_hottest_name_has_its_field_and_the_lines_that_write_and_wait(packed: tuple[Path, dict[str, Any], str]) -> None:
    (point,) = packed[1]["points"]
    hottest = point["top_names"][0]
    assert hottest["name"].startswith("packed:stats[") and hottest["class"] == "false_sharing" and hottest["wait_share"] > 0.9
    for role in ("written_at", "waited_at"):
        assert {place["source"] for place in hottest[role]} == {f"packed.c:{PACKETS}", f"packed.c:{BYTES}"}
        assert all(place["inlined"] == [INLINED] and place["function"] == "packed:work" for place in hottest[role])
        assert sum(place["share"] for place in hottest[role]) == pytest.approx(1)
    assert f"packed:work (packed.c:{PACKETS}) waits for" in point["bottleneck"]
    assert point["top_lines"][0]["waited_at"] == hottest["waited_at"]


def test_the_text_names_the_lines_below_the_name(packed: tuple[Path, dict[str, Any], str]) -> None:
    printed = packed[2].splitlines()
    first = next(n for n, text in enumerate(printed) if "packed:stats[" in text and "false sharing" in text and text.split()[1] == "%")
    below = "\n".join(printed[first + 1:first + 5])
    assert "written at" in below and "waits at" in below and f"packed:work  packed.c:{PACKETS}, in {INLINED}" in below


def test_every_transaction_of_the_program_has_its_line(packed: tuple[Path, dict[str, Any], str]) -> None:
    file = packed[0] / "points/packed-distro-4/transactions.parquet"
    rows = duckdb.execute("""SELECT DISTINCT source, inlined FROM read_parquet(?)
                             WHERE function = 'packed:work' AND name LIKE 'packed:stats%'""", [str(file)]).fetchall()
    assert set(rows) == {(f"packed.c:{PACKETS}", INLINED), (f"packed.c:{BYTES}", INLINED)}
    writers = duckdb.execute("SELECT DISTINCT writer_source, writer_inlined FROM read_parquet(?) WHERE writer_function = 'packed:work'",
                             [str(file)]).fetchall()
    assert set(writers) == {(f"packed.c:{PACKETS}", INLINED), (f"packed.c:{BYTES}", INLINED)}


def test_the_call_chain_of_a_worker_leads_to_its_thread(packed: tuple[Path, dict[str, Any], str]) -> None:
    file = packed[0] / "points/packed-distro-4/stacks.parquet"
    rows = duckdb.execute("SELECT frames, waiting FROM read_parquet(?) WHERE name LIKE 'packed:stats%'", [str(file)]).fetchall()
    # An interrupt waits for the stores before it, at whatever instruction of the loop it comes.
    at = duckdb.execute("""SELECT DISTINCT at_function, at_source, at_inlined FROM read_parquet(?)
                           WHERE name LIKE 'packed:stats%' AND (frames[-1] = 'packed:work' OR frames[-1] LIKE '%(inlined)')""",
                        [str(file)]).fetchall()
    assert set(at) == {("packed:work", f"packed.c:{PACKETS}", INLINED), ("packed:work", f"packed.c:{BYTES}", INLINED)}
    functions = duckdb.execute("SELECT DISTINCT at_function FROM read_parquet(?) WHERE name LIKE 'packed:stats%'", [str(file)]).fetchall()
    assert functions == [("packed:work",)], "also where the kernel interrupts it"
    assert "called_at" not in packed[1]["points"][0]["top_names"][0]  # waited_at has the lines
    whole = sum(waiting for _, waiting in rows)
    lines = duckdb.execute("SELECT sum(stall + spin) FROM read_parquet(?) WHERE name LIKE 'packed:stats%'",
                           [str(packed[0] / "points/packed-distro-4/lines.parquet")]).fetchone()
    assert lines and whole == pytest.approx(int(lines[0]), rel=0.02)
    by_chain = Counter[tuple[str, ...]]()
    for frames, waiting in rows:
        by_chain[tuple(frames)] += waiting
    thread = by_chain["packed:clone3", "packed:start_thread", "packed:work", "count (inlined)"]
    first = next(waiting for frames, waiting in by_chain.items() if frames[-3:] == ("packed:main", "packed:work", "count (inlined)"))
    assert thread > 0.5 * whole and first > 0.1 * whole and thread + first > 0.98 * whole


def test_the_map_of_the_line_divides_all_waiting_by_field_and_names_the_cores(
        packed: tuple[Path, dict[str, Any], str], moscope_in: Callable[[Path], Moscope]) -> None:
    hottest = packed[1]["points"][0]["top_names"][0]
    got = moscope_in(packed[0].parent)("report", "run", "--line", hottest["name"], "--json")
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    jsonio.validate(document)
    line = document["lines"][0]
    assert line["all_recorded"] and line["recorded"] > 100
    for part in ("bytes", "fields"):
        assert sum(one["waiting"] for one in line[part]) == line["waiting"]
        assert sum(one["transactions"] for one in line[part]) == line["transactions"]
        assert sum(one["share"] for one in line[part]) == pytest.approx(1)
    assert [(one["first"], one["bytes"], one["name"], one["type"]) for one in line["fields"]] == [
        (16 * n + 8 * i, 8, f"packed:stats[{n}].{name}", "long int") for n in range(4) for i, name in enumerate(("packets", "bytes"))]
    packets = [one for one in line["fields"] if one["name"].endswith("packets")]
    assert all(one["waited_at"][0]["source"] == f"packed.c:{PACKETS}" == one["written_at"][0]["source"] for one in packets)
    assert len({tuple(one["writing_cores"]) for one in packets}) == 4 == sum(len(one["writing_cores"]) for one in packets)
    assert line["advice"][0]["kind"] == "false_sharing" and line["advice"][0]["fields"][0] == "packed:stats"


def test_no_transaction_contradicts_its_class_and_waits_behind_own_accesses_are_marked(
        packed: tuple[Path, dict[str, Any], str], moscope_in: Callable[[Path], Moscope]) -> None:
    got = moscope_in(packed[0].parent)("report", "run", "--audit", "--json")
    assert got.returncode == 0, got.stdout
    document = json.loads(got.stdout)
    jsonio.validate(document)
    (point,) = document["points"]
    assert document["ok"] and point["contradictions"] == [] and point["classes"]["false_sharing"] > 1000
    file = packed[0] / "points/packed-distro-4/transactions.parquet"
    # A timer interrupt in the window fetches code behind the core's own prefetches.
    behind = duckdb.execute("SELECT class, kind, count(*) FROM read_parquet(?) WHERE secondary_miss AND kind <> 'fetch' GROUP BY ALL",
                            [str(file)]).fetchall()
    assert [(miss, kind) for miss, kind, _ in behind] == [("secondary", "load")], "loads behind the store to the same counter"


def test_the_load_of_the_links_over_time_adds_up_to_their_traffic(packed: tuple[Path, dict[str, Any], str]) -> None:
    folder = packed[0] / "points/packed-distro-4"
    rows = duckdb.execute("""SELECT "from", "to", sum(bytes)::BIGINT, sum(busy)::BIGINT, count(*), max(begin + length) - min(begin),
                                    sum(length)::BIGINT FROM read_parquet(?) GROUP BY 1, 2""", [str(folder / "links.parquet")]).fetchall()
    traffic = {(one["from"], one["to"]): tuple(sum(c[what] for c in one["channels"].values()) for what in ("bytes", "busy_fs"))
               for one in json.loads((folder / "stats.json").read_text())["machine"]["network"]["links"]}
    assert {row[:2]: row[2:4] for row in rows} == traffic and sum(moved for moved, _ in traffic.values()) > 0
    windows = packed[1]["points"][0]["windows"]
    assert {row[4:] for row in rows} == {(25 * len(windows), packed[1]["points"][0]["ticks"], packed[1]["points"][0]["ticks"])}


@pytest.mark.parametrize(("to", "files", "holds"), [
    ("perfetto", 1, "packed:stats["), ("perfetto", 1, '"name":"link '), ("pprof", 1, ""),
    ("collapsed", 1, "packed:work;count (inlined);packed:stats["),
    ("c2c", 2, f"packed:work,packed.c:{PACKETS},")])
def test_it_is_exported_to_each_format(packed: tuple[Path, dict[str, Any], str], moscope_in: Callable[[Path], Moscope], to: str, files: int,
                                       holds: str) -> None:
    got = moscope_in(packed[0].parent)("export", "run", "--to", to, "--json")
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    jsonio.validate(document)
    assert len(document["files"]) == files
    if holds:
        assert holds in (packed[0].parent / document["files"][-1]).read_text()


def test_the_report_shows_the_lines_and_cuts_nothing_off(packed: tuple[Path, dict[str, Any], str], tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).parents[2] / "analysis"))
    import browser

    if browser.find() is None:
        pytest.skip("no Chromium here")
    for width in (1280, 400):
        with browser.Page(packed[0] / "report.html", width, profile=tmp_path / f"profile{width}") as page:
            card = 'document.querySelector(".lines li").innerText'
            assert f"packed.c:{PACKETS} in count" in page.ask(card) and "Align each element" in page.ask(card)
            assert page.ask('document.querySelectorAll(".lines li:first-child .bytes i").length') == 64
            assert browser.faults(page) == []
