# SPDX-License-Identifier: BSD-3-Clause
"""`moscope run` from the command line to the run directory, on the real engine with the distribution's kernel on two cores."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyarrow import parquet

from analysis import audit
from moscope import jsonio, paths
from moscope.guest import initramfs, kernel, packages
from moscope.runs.point import memory_stall

sys.path.insert(0, str(Path(__file__).parents[2] / "analysis"))

import browser

Moscope = Callable[..., "subprocess.CompletedProcess[str]"]
QUICK = ("--workload", "counter", "--warmup", "50us", "--window", "100us")


@pytest.fixture(autouse=True, scope="module")
def guest(request: pytest.FixtureRequest) -> None:
    if all((packages.cache() / "chosen" / f"{n}.json").is_file() for n in (kernel.CLOUD_KERNEL, initramfs.BUSYBOX_PACKAGE)):
        return
    if not request.config.getoption("--long"):
        pytest.skip("the distribution's kernel is not in the cache: `moscope boot` or --long fetches it")


def measured(moscope: Moscope, out: str, *more: str) -> dict[str, Any]:
    got = moscope("run", *QUICK, "--out", out, "--json", *more, timeout=600)
    assert got.returncode == 0, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    return document


@pytest.fixture(scope="module")
def counter(tmp_path_factory: pytest.TempPathFactory, moscope_in: Callable[[Path], Moscope]) -> Path:
    """A run of two cores with its report."""
    folder = tmp_path_factory.mktemp("counter")
    measured(moscope_in(folder), "a", "--cores", "2")
    return folder / "a"


def results(point: dict[str, Any]) -> dict[str, Any]:
    """A point without what depends on the host."""
    return {k: results(v) if isinstance(v, dict) else [results(x) if isinstance(x, dict) else x for x in v]
            if isinstance(v, list) else v for k, v in point.items() if not k.startswith("host_")}


def test_every_document_and_table_of_a_run_directory_carries_its_schema(counter: Path) -> None:
    from pyarrow import parquet

    documents = list(counter.rglob("*.json"))
    assert {file.name for file in documents} == {"run.json", "options.json", "point.json", "stats.json"}
    for file in documents:
        jsonio.validate(json.loads(file.read_text()))
    for file in counter.rglob("*.parquet"):
        assert parquet.read_schema(file).metadata[b"schema"] == f"moscope.{file.stem}/1".encode()


def test_a_shared_counter_is_found_to_be_one_line_that_both_cores_wait_for(counter: Path) -> None:
    document = json.loads((counter / "run.json").read_text())
    point = document["points"][0]
    assert document["ok"] and point["ops"] > 1000 and point["verified"]
    assert sum(point["cycles"].values()) == pytest.approx(1)
    assert point["cycles"]["memory"] > 0.2 and point["top_lines"][0]["stall_share"] > 0.95
    assert point["top_lines"][0]["class"] == "true_sharing"
    folder = counter / "points/counter-distro-2"
    waits = max(parquet.read_table(folder / "pairs.parquet").to_pylist(), key=lambda pair: int(pair["stall"]))
    assert waits["waiter_function"] in ("counter:shared_acquire", "counter:shared_release") and not waits["kernel"]
    stats = json.loads((folder / "stats.json").read_text())
    for core in stats["cores"]:
        assert sum(core[k][who] for k in ("busy", "idle", "core", "memory") for who in ("kernel", "user")) == core["window"]
        assert 0 <= core["unreported"] < 10**10, "one transaction's at most"
    assert memory_stall(stats) == stats["attribution"]["exposed"] + sum(core["unreported"] for core in stats["cores"])
    assert b"moscope: ready" in (folder / "console.txt").read_bytes()


def test_two_runs_agree_to_the_last_count_and_a_finished_one_is_not_run_again(counter: Path, moscope: Moscope, tmp_path: Path) -> None:
    first, second = json.loads((counter / "run.json").read_text()), measured(moscope, "b", "--cores", "2")
    assert results(first["points"][0]) == results(second["points"][0])
    name = "points/counter-distro-2/stats.json"
    assert (counter / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    again = measured(moscope, "b", "--cores", "2")
    assert again["points"] == second["points"]


@pytest.mark.parametrize("width", [1280, 400])
def test_its_report_is_whole_in_a_browser(counter: Path, tmp_path: Path, width: int) -> None:
    if browser.find() is None:
        pytest.skip("no Chromium here")
    with browser.Page(counter / "report.html", width, profile=tmp_path / "profile") as page:
        assert browser.faults(page) == []
        assert "counter" in page.ask('document.querySelector(".headline").innerText')
        assert page.ask('document.querySelectorAll("figure svg").length') > 5


MACHINE = """from opteron48 import machine
from moscope.config import Count, replace
machine = replace(machine, outstanding_misses=Count({}))
"""


def test_a_point_whose_machine_file_was_edited_is_measured_again_and_the_reason_reported(moscope: Moscope, tmp_path: Path) -> None:
    mine, why = tmp_path / "mine.py", "measured again because there is another description of the machine now: counter-distro-1"
    command = ("run", *QUICK, "--windows", "1", "--cores", "1", "--machine", "mine.py", "--out", "a")
    documents = []
    for misses in (8, 1):
        mine.write_text(MACHINE.format(misses))
        got = moscope(*command, timeout=600)
        assert got.returncode == 0, got.stderr
        documents.append(json.loads((tmp_path / "a/run.json").read_text()))
        jsonio.validate(documents[-1])
        assert documents[-1]["config"]["description"]["outstanding_misses"] == str(misses)
        assert (why in got.stderr) == (misses == 1) and "points are already finished" not in got.stderr
    (before,), (after,) = (document["points"] for document in documents)
    assert before["made_from"]["machine"] != after["made_from"]["machine"] and before["made_from"]["kernel"] == after["made_from"]["kernel"]


def test_other_options_in_the_same_folder_are_a_user_error(moscope: Moscope) -> None:
    measured(moscope, "a", "--cores", "1")
    got = moscope("run", *QUICK, "--cores", "2", "--out", "a")
    assert got.returncode == 2 and "--cores 1, not 2" in got.stderr and "Traceback" not in got.stderr


def test_what_the_engine_refuses_is_a_user_error_and_leaves_no_point(moscope: Moscope, tmp_path: Path) -> None:
    got = moscope("run", *QUICK[:2], "--warmup", "0s", "--window", "1us", "--cores", "1", "--windows", "1", "--out", "a",
                  "--memory-per-node", "65MiB", timeout=600)
    assert got.returncode == 2 and "2MiB" in got.stderr
    assert not (tmp_path / "a/points/counter-distro-1").exists()


# `moscope`, where the process of the point with 12 cores never ends.
HELD = """
import functools, subprocess, sys
from moscope.cli import main
from moscope.runs import pool

def start(job, stderr, real=pool.start_process):
    endless = [sys.executable, "-c", "import time; time.sleep(3600)"]
    pipe = subprocess.PIPE
    return subprocess.Popen(endless, stdin=pipe, stdout=pipe, stderr=stderr) if job.point.cores == 12 else real(job, stderr)

pool.run = functools.partial(pool.run, start=start, processors=2)
sys.exit(main(sys.argv[1:]))
"""


def interrupt(tmp_path: Path, when: Callable[[], bool], *more: str, program: tuple[str, ...] = ("-m", "moscope")) -> str:
    """Runs `counter` into `a` and interrupts it when that is so; what it said."""
    env = {**os.environ, "PYTHONPATH": str(paths.root() / "src" / "python")}
    command = [sys.executable, "-P", *program, "run", "--workload", "counter", *more, "--out", "a"]
    # Also if the tests run in the background of a shell, whose children ignore the signal.
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True,
                               preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    limit = time.monotonic() + 600
    while not when() and process.poll() is None and time.monotonic() < limit:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=300)
    assert process.returncode == 130, said
    return said


def test_an_interrupted_run_keeps_what_is_finished(tmp_path: Path) -> None:
    begun = time.monotonic()
    interrupt(tmp_path, lambda: (tmp_path / "a/points").is_dir() and time.monotonic() - begun > 4,
              "--cores", "1,2", "--warmup", "50us", "--window", "100us", "--windows", "1000")
    left = [p.name for p in (tmp_path / "a/points").iterdir()]
    assert all(not name.startswith(".") for name in left) and len(left) < 2
    document = json.loads((tmp_path / "a/run.json").read_text())
    jsonio.validate(document)
    assert document["ok"] is False and len(document["points"]) == len(left)


def test_an_interrupted_run_goes_on_at_the_last_finished_point(moscope: Moscope, tmp_path: Path) -> None:
    given = ("--cores", "1,12", "--warmup", "50us", "--window", "1ms", "--windows", "1")
    said = interrupt(tmp_path, lambda: (tmp_path / "a/points/counter-distro-1/point.json").exists(), *given,
                     program=("-c", HELD))
    assert "1 of 2 points are finished and kept in a; repeat the command to resume" in said.splitlines()
    assert said.splitlines()[-1] == "moscope: interrupted"
    first = json.loads((tmp_path / "a/run.json").read_text())
    assert [p["cores"] for p in first["points"]] == [1], "the larger one was under way"
    again = moscope("run", "--workload", "counter", *given, "--out", "a", "--json", timeout=600)
    assert again.returncode == 0, again.stderr
    assert "a: 1 of 2 points are already finished" in again.stderr
    assert "counter-distro-12: window 1 of 1" in again.stderr, "progress, with --json too"
    document = json.loads(again.stdout)
    assert [p["cores"] for p in document["points"]] == [1, 12] and document["ok"]
    assert document["points"][0] == first["points"][0], "host seconds and all: it was not measured again"


OWN = """
#include <stdio.h>
#include <string.h>
static volatile long shelf[1 << 19];
static void mark(long code, long item) {
    if (code == 0x5a) __asm__ volatile(".byte 0x0f, 0x04, 0x5a, 0x00" : : "D"(item), "S"(0L) : "rax", "memory");
    else __asm__ volatile(".byte 0x0f, 0x04, 0x5b, 0x00" : : "D"(item), "S"(0L) : "rax", "memory");
}
__attribute__((noinline)) static void dust(unsigned long seed) {
    for (int i = 0; i < 64; i++) {
        seed = seed * 6364136223846793005 + 1442695040888963407;
        shelf[seed >> 45]++;
    }
}
int main(int count, char **words) {
    if (count > 1 && !strcmp(words[1], "quit")) return 3;
    memset((void *)shelf, 1, sizeof shelf);
    puts("dusting");
    fflush(stdout);
    if (count > 1 && !strcmp(words[1], "marked")) mark(0x5a, 0);
    for (unsigned long n = 0;; n++) { dust(n); mark(0x5b, 1); }
}
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's program, which goes through memory of its own and never ends."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "duster.c").write_text(OWN)
    subprocess.run(["gcc", "-O2", "-static", "-o", folder / "duster", folder / "duster.c"], check=True)
    return folder / "duster"


def test_a_program_of_ones_own_is_measured_from_a_time_from_its_mark_and_from_a_text(own: Path, moscope: Moscope, tmp_path: Path) -> None:
    quick = ("--cores", "1", "--warmup", "20us", "--window", "100us", "--windows", "1", "--json")
    points = {}
    for out, *given in (("time", f"{own}", "--begin", "20ms"), ("mark", f"{own} marked"), ("text", f"{own}", "--begin", "dusting"),
                        ("call", f"{own}", "--begin", "call:dust", "--count", "dust")):
        got = moscope("run", "--program", *given, *quick, "--out", out, timeout=600)
        assert got.returncode == 0, got.stderr
        document = json.loads(got.stdout)
        jsonio.validate(document)
        points[out] = document["points"][0]
    for point in points.values():
        assert point["workload"] == "duster" and point["ops"] > 10 and not point["verified"]
        assert any(line["name"].startswith("duster:shelf") and line["waiters"] == ["duster:dust"] for line in point["top_lines"])
    assert [p["begin"] for p in points.values()] == ["20ms", "workbegin", "dusting", "call:dust"]
    assert points["call"]["calls"] == {"dust": points["call"]["ops"]}, "its marks do not count"
    again = moscope("run", "--program", f"{own} marked", *quick, "--out", "mark", timeout=600)
    assert json.loads(again.stdout)["points"][0]["host_s"] == points["mark"]["host_s"], "a finished point is not measured again"


def test_a_program_of_ones_own_that_ends_early_is_reported_with_its_status(own: Path, moscope: Moscope) -> None:
    got = moscope("run", "--program", f"{own} quit", "--begin", "50ms", "--cores", "1", "--out", "quit", timeout=600)
    assert got.returncode == 1, got.stderr
    assert "duster: ended with status 3 before --begin 50ms: expected a program that runs that long, or a shorter time" in got.stderr
    assert "moscope: program ended with status 3" in got.stderr and "Traceback" not in got.stderr


def test_all_transactions_add_up_to_what_attribution_counts(moscope: Moscope, tmp_path: Path) -> None:
    from pyarrow import compute

    measured(moscope, "a", "--cores", "2", "--detail", "full")
    folder = tmp_path / "a/points/counter-distro-2"
    rows = parquet.read_table(folder / "transactions.parquet")
    counted = json.loads((folder / "stats.json").read_text())["attribution"]
    assert rows.num_rows - compute.sum(rows["buffer_wait"]).as_py() == counted["transactions"] > 1000
    assert compute.sum(rows["exposed"]).as_py() == counted["exposed"]
    for name, fs in counted["segments"].items():
        assert compute.sum(rows[name]).as_py() == fs
    sent: dict[int, dict[tuple[str, int], int]] = {}
    for row in rows.filter(compute.is_valid(rows["supplier_chip"])).select(
            ["line", "supplier", "supplier_chip", "buffer_wait"]).to_pylist():
        assert not row["buffer_wait"]
        of_line = sent.setdefault(row["line"], {})
        key = row["supplier"], row["supplier_chip"]
        of_line[key] = of_line.get(key, 0) + 1
    found = duckdb.connect()
    for table in ("lines", "pairs", "transfers"):
        found.execute(f"CREATE TABLE {table} AS SELECT * FROM read_parquet('{folder / table}.parquet')")

    def query(sql: str) -> dict[Any, Any]:
        """The last column by the others."""
        return {row[0] if len(row) == 2 else row[:-1]: row[-1] for row in found.execute(sql).fetchall()}

    assert {rule: n for rule, n in audit.contradictions(folder / "transactions.parquet", 6).items() if n} == {}
    by_line: dict[int, dict[tuple[str, int], int]] = {}
    for (line, supplier, chip), count in query("SELECT line, supplier, from_chip, sum(count)::BIGINT FROM transfers WHERE to_chip = 0 AND "
                                               "count > 0 GROUP BY ALL").items():
        by_line.setdefault(line, {})[supplier, chip] = count
    functions = rows.filter(compute.invert(rows["buffer_wait"])).group_by("function").aggregate(
        [("exposed", "sum"), ("exposed", "count")]).to_pylist()
    assert {f["function"]: f["exposed_count"] for f in functions} == query(
        "SELECT waiter_function, sum(count)::BIGINT AS n FROM pairs GROUP BY 1 HAVING n > 0")
    of_name = rows.group_by(["name", "name_kind"]).aggregate([("exposed", "sum")]).to_pylist()
    assert {(n["name"], n["name_kind"]): n["exposed_sum"] for n in of_name if n["exposed_sum"]} == query(
        "SELECT name, kind, sum(stall)::BIGINT AS n FROM lines GROUP BY 1, 2 HAVING n > 0")
    went = rows.filter(compute.and_(compute.is_valid(rows["supplier_chip"]), compute.invert(rows["buffer_wait"])))
    by_name = went.group_by(["name", "name_kind", "supplier", "supplier_chip"]).aggregate([("exposed", "count")]).to_pylist()
    assert {(n["name"], n["name_kind"], n["supplier"], n["supplier_chip"]): n["exposed_count"] for n in by_name} == query(
        "SELECT name, kind, supplier, from_chip, sum(count)::BIGINT AS n FROM transfers JOIN lines USING (line, use) GROUP BY ALL HAVING "
        "n > 0")
    waited = rows.group_by(["name", "name_kind"]).aggregate([("core", "count_distinct")]).to_pylist()
    cores = query("SELECT name, kind, bit_count(bit_or(waiters)) FROM lines GROUP BY 1, 2")
    assert all(cores[n["name"], n["name_kind"]] >= n["core_count_distinct"] for n in waited) and {*cores.values()} <= {1, 2}
    assert by_line and by_line == sent, "both cores are of the first chip"
    hottest = found.execute("SELECT page_part_of FROM lines ORDER BY stall + spin DESC LIMIT 1").fetchone()
    assert hottest and hottest[0] & 1, "anonymous memory, as the kernel describes it at each miss"
