# SPDX-License-Identifier: BSD-3-Clause
"""Each workload as an ordinary program of the host: it does its work, checks it, and ends as asked."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import workloads
from moscope.workloads import Results, build

Run = Callable[..., tuple[int, Results]]


@pytest.mark.parametrize("family, variant", [("counter", "shared"), ("counter", "percore"), ("counter", "sloppy"), ("ticketlock", "ticket"),
                                             ("ticketlock", "mcs"), ("falseshare", "packed"), ("falseshare", "padded")])
def test_each_thread_does_the_given_number_of_operations_and_none_is_lost(on_the_host: Run, family: str, variant: str) -> None:
    status, got = on_the_host(family, variant, "--cores", "3", "--operations", "2000")
    assert status == 0 and got.right
    assert got.values["operations"] == 3 * 2000 and got.values["variant"] == variant


@pytest.mark.parametrize("variant", ["dentry", "mount", "lookup", "table", "open", "seek"])
def test_a_file_system_stress_test_makes_its_calls_in_processes_and_leaves_nothing(on_the_host: Run, variant: str, tmp_path: Path) -> None:
    folder = tmp_path / "storm"
    status, got = on_the_host("vfsfix", variant, "--directory", str(folder), "--cores", "3", "--operations", "500")
    assert status == 0 and got.right and not folder.exists()
    assert got.values["operations"] == 3 * 500 and got.values["processes"] == 3 and got.values["variant"] == variant


@pytest.mark.parametrize("variant", ["route", "memory", "inode", "dentry", "accept"])
def test_a_network_stress_test_makes_its_calls_in_processes(on_the_host: Run, variant: str) -> None:
    status, got = on_the_host("netfix", variant, "--cores", "3", "--operations", "200")
    assert status == 0 and got.right and got.values["wrong"] == 0
    assert got.values["operations"] == 3 * 200 and got.values["processes"] == 3 and got.values["variant"] == variant


def test_queries_find_their_rows_and_the_files_their_sizes(on_the_host: Run, tmp_path: Path) -> None:
    status, got = on_the_host("pglseek", "--directory", str(tmp_path / "pg"), "--cores", "2", "--operations", "200")
    assert status == 0 and got.right and got.values["operations"] == 2 * 200 and not (tmp_path / "pg").exists()


def test_a_server_that_seeks_more_often_gets_the_same_answers(root: Path, tmp_path: Path) -> None:
    """Each seek to the end of a file is done twice; other seeks once."""
    (tmp_path / "file").write_bytes(b"x" * 1234)
    program = "import os; f = os.open('file', os.O_RDONLY); print(os.lseek(f, 0, 2), os.lseek(f, 7, 0)); os.lseek(99, 0, 2)"
    got = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False,
                         env={"LD_PRELOAD": str(build.library(root / "workloads/postgresql/seeks.c"))})
    assert got.stdout == "1234 7\n" and "Bad file descriptor" in got.stderr and "LD_PRELOAD" not in got.stderr


def test_a_file_that_changes_its_size_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "pg"
    with subprocess.Popen([build.program("pglseek"), "--directory", str(folder), "--cores", "2"], stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        with (folder / "table").open("ab") as table:
            table.write(b"more")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
    got = Results.of(first + rest, "pglseek")
    assert process.returncode == 1 and got.finished and not got.right


@pytest.mark.parametrize("variant", ["threads", "processes"])
def test_an_index_has_every_word_of_every_file(on_the_host: Run, variant: str, tmp_path: Path) -> None:
    folder = tmp_path / "index"
    status, got = on_the_host("pedsort", variant, "--directory", str(folder), "--cores", "3", "--operations", "100", "--table", "64KiB",
                              "--file", "2KiB", "--fold", "1", "--placement", "spread")
    assert status == 0 and got.right and got.values["operations"] == 300 and not folder.exists()


@pytest.mark.parametrize(("variant", "phase"), [("4k", "job"), ("2m", "job"), ("4k", "map"), ("2m", "reduce")])
def test_an_inverted_index_has_every_word_and_position(on_the_host: Run, variant: str, phase: str) -> None:
    status, got = on_the_host("metis", variant, "--phase", phase, "--cores", "3", "--operations", "64", "--input", "64KiB")
    assert status == 0 and got.right and got.values["operations"] == 3 * 64


def test_a_word_that_the_generator_did_not_write_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    with subprocess.Popen([build.program("pedsort"), "--directory", str(folder), "--cores", "2", "--files", "2"], stdout=subprocess.PIPE,
                          text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        while not (folder / "f1").exists() or not (folder / "f1").stat().st_size:
            time.sleep(0.01)
        time.sleep(0.1)
        with (folder / "f1").open("r+b") as text:
            text.write(b"zz")
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
    got = Results.of(first + rest, "pedsort")
    assert process.returncode == 1 and got.finished and not got.right


def test_a_word_that_the_merge_did_not_put_into_the_database_is_noticed(tmp_path: Path) -> None:
    folder = tmp_path / "index"
    with subprocess.Popen([build.program("pedsort"), "--directory", str(folder), "--cores", "1", "--table", "64KiB"],
                          stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        while not (folder / "d0.1").exists():  # then d0.0 is closed
            time.sleep(0.01)
        found = re.compile(rb"[b-y][a-z]{3,7}\0").search((folder / "d0.0").read_bytes(), 2 * 4096)
        assert found, "words lie behind the root page"
        with (folder / "d0.0").open("r+b") as database:
            database.seek(found.start())
            database.write(b"a")
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
    got = Results.of(first + rest, "pedsort")
    assert process.returncode == 1 and got.finished and not got.right


@pytest.mark.parametrize("family", ["vfsfix", "pglseek"])
def test_processes_end_after_the_seconds_given(on_the_host: Run, tmp_path: Path, family: str) -> None:
    status, got = on_the_host(family, "--directory", str(tmp_path / "here"), "--cores", "2", "--seconds", "1")
    assert status == 0 and got.right and got.values["operations"] > 0


def test_the_lock_changes_hands(on_the_host: Run) -> None:
    # The run ends by time: with a few thousand operations, one thread on a busy host may do all of them before the other begins.
    status, got = on_the_host("ticketlock", "ticket", "--cores", "2", "--seconds", "1")
    assert status == 0 and got.values["handoffs"] > 5000 and got.values["handoff_cycles"] > 20


def test_a_chase_takes_longer_in_memory_than_in_the_first_cache(on_the_host: Run) -> None:
    def cycles(size: str) -> float:
        status, got = on_the_host("chase", "--size", size, "--operations", "300")
        assert status == 0 and got.right and got.values["operations"] == 300
        return float(got.values["median"])

    assert 2 < cycles("16KiB") < cycles("64MiB") / 5


def test_a_workload_goes_on_until_it_is_interrupted() -> None:
    with subprocess.Popen([build.program("counter"), "--cores", "2"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        first = process.stdout.readline()
        time.sleep(0.2)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=120)
    got = Results.of(first + rest, "counter")
    assert process.returncode == 0 and got.right and got.values["operations"] > 0


def test_a_workload_ends_after_the_seconds_given(on_the_host: Run) -> None:
    status, got = on_the_host("falseshare", "--cores", "2", "--seconds", "1")
    assert status == 0 and got.right


@pytest.mark.parametrize("family", sorted({w.launcher or w.family for w in workloads.every()}))
@pytest.mark.parametrize("arguments", [["--bogus", "1"], ["--cores", "x"], ["--cores", "0"], ["nothing"], ["--seconds", "-1"]])
def test_bad_options_are_answered_with_one_line_and_status_2(family: str, arguments: list[str]) -> None:
    refused_in_one_line(family, arguments)


@pytest.mark.parametrize(("family", "option", "value"), [
    ("chase", "--node", "abc"), ("chase", "--node", "64"), ("chase", "--warm", "x"), ("chase", "--chains", "0"),
    ("chase", "--chains", "3x"), ("pedsort", "--fold", "many"), ("pedsort", "--table", "64"), ("metis", "--rounds", "-1"),
    ("metis", "--words", "1e3"), ("gmake", "--files", "0"), ("gmake", "--compute", "half"), ("pglseek", "--seeks", "x"),
    ("exim", "--clients", "99999999999999999999"), ("launcher", "--port", "http"), ("launcher", "--processes", "two"),
])
def test_bad_values_of_a_workloads_own_options_are_named(family: str, option: str, value: str) -> None:
    said = refused_in_one_line(family, [option, value])
    assert option in said and f'"{value}"' in said


@pytest.mark.parametrize("at_once", [True, False])
def test_exim_ends_with_a_wrong_result_where_a_client_is_killed(tmp_path: Path, at_once: bool) -> None:
    command = [build.program("exim"), "--cores", "2", "--clients", "48", "--directory", str(tmp_path / "spool"), "--seconds", "100"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        while len(pids := children.read_text().split()) < 49:
            assert process.poll() is None
        if not at_once:
            time.sleep(0.5)
        os.kill(int(pids[-1]), signal.SIGKILL)
        said, _ = process.communicate(timeout=120)
    assert process.returncode == 1 and "verify=wrong" in said


def refused_in_one_line(family: str, arguments: list[str]) -> str:
    got = subprocess.run([build.program(family), *arguments], capture_output=True, text=True, timeout=120, check=False)
    assert got.returncode == 2 and len(got.stderr.splitlines()) == 1 and "would be right" in got.stderr
    return got.stderr
