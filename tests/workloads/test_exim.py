# SPDX-License-Identifier: BSD-3-Clause
"""The mail server on the host: every message arrives once, and what is missing or altered is noticed."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from moscope.workloads import Results, build

INNER = "exim"  # the second file system, in the first


@pytest.fixture
def spool(tmp_path: Path) -> Iterator[Path]:
    """A folder that does not exist yet, on tmpfs where the host has one."""
    memory = Path("/dev/shm")
    folder = (memory if os.access(memory, os.W_OK) else tmp_path) / f"moscope-exim-{os.getpid()}"
    yield folder
    remove(folder)


def remove(folder: Path) -> None:
    """Also the file systems that the program, as root, mounts there, and leaves behind if a signal ends it by default. Processes that
    the signal has not reached yet may still make files."""
    until = time.monotonic() + 60
    while folder.exists():
        for mounted in (folder / INNER, folder):
            subprocess.run(["umount", "--lazy", mounted], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", folder], check=False)
        assert time.monotonic() < until


def start(spool: Path, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([build.program("exim"), "--directory", str(spool), *arguments], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def ended(process: "subprocess.Popen[str]") -> tuple[int, Results, str]:
    out, err = process.communicate(timeout=300)
    return process.returncode, Results.of(out, "exim"), err


def wait_for(process: "subprocess.Popen[str]", there: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not there():
        assert time.monotonic() < until and process.poll() is None


def test_each_clients_messages_arrive_over_connections_of_at_most_ten_messages(spool: Path) -> None:
    status, got, err = ended(start(spool, "--clients", "5", "--messages", "23"))
    assert (status, err) == (0, "") and got.right
    # The first connection of client i carries i + 1 messages.
    assert got.values["operations"] == 5 * 23 and got.values["connections"] == 4 + 4 + 3 + 3 + 3
    assert not spool.exists()


def test_there_are_two_clients_for_each_core(spool: Path) -> None:
    status, got, _ = ended(start(spool, "--cores", "3", "--operations", "10"))
    assert status == 0 and got.values["clients"] == 6 and got.values["operations"] == 3 * 10


def test_mail_flows_until_the_interrupt_and_all_that_was_taken_is_there(spool: Path) -> None:
    process = start(spool, "--clients", "4")
    log = spool / INNER / "log/mainlog"
    wait_for(process, lambda: log.is_file() and log.read_text().count("Completed") > 8)
    process.send_signal(signal.SIGINT)
    status, got, err = ended(process)
    assert (status, err) == (0, "") and got.right and got.values["operations"] > 4 and not spool.exists()


def test_an_interrupt_before_anything_is_at_work_ends_it_too(spool: Path) -> None:
    process = start(spool, "--clients", "40")
    wait_for(process, lambda: (spool / INNER / "log").is_dir())
    time.sleep(0.005)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[0] in (0, -signal.SIGTERM)


@pytest.mark.parametrize("file, text, complaint", [
    ("mail/user1", "From user1 x\nc0001 m999999999999\n", "user1"),
    ("log/mainlog", "0 x => user1 Completed\n", "log"),
    ("spool/input/A/left-D", "left", "left over"),
])
def test_a_message_too_many_anywhere_is_noticed(spool: Path, file: str, text: str, complaint: str) -> None:
    process = start(spool, "--clients", "2", "--seconds", "1")
    wait_for(process, lambda: (spool / INNER / "mail/user1").is_file())
    with (spool / INNER / file).open("a") as f:
        f.write(text)
    status, got, err = ended(process)
    assert status == 1 and got.finished and not got.right and complaint in err
    assert not spool.exists()


def test_a_message_that_vanishes_is_noticed(spool: Path) -> None:
    process = start(spool, "--clients", "2", "--seconds", "1")
    box = spool / INNER / "mail/user0"
    wait_for(process, lambda: box.is_file() and box.stat().st_size > 0)
    os.truncate(box, 0)
    status, got, err = ended(process)
    assert status == 1 and not got.right and "user0" in err


def test_a_folder_that_is_there_already_is_left_alone(spool: Path) -> None:
    spool.mkdir()
    (spool / "kept").write_text("kept")
    status, _, err = ended(start(spool, "--clients", "1", "--messages", "1"))
    assert status == 1 and "File exists" in err and (spool / "kept").read_text() == "kept"
    subprocess.run(["rm", "-r", str(spool)], check=True)
