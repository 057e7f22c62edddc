# SPDX-License-Identifier: BSD-3-Clause
"""The launcher of services, with a service and a control host of the test's own in a network namespace: what it makes of the counts
that its clients report."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from moscope.workloads import Results, build

# Accepts connections on the service's port.
SERVICE = """
import socket, sys
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1", int(sys.argv[1]))); s.listen()
while True: s.accept()[0].close()
"""
# Ends after the launcher has seen that it is ready.
SHORT_SERVICE = SERVICE.replace("while True: ", "")
# The arguments are the reports, how many of them are asked for until the launcher is stopped, and the launcher's command. The control
# host answers with the first report, then with the next one, and with the last one from then on.
CONTROL = """
import fcntl, os, signal, socket, struct, subprocess, sys
FLAGS, ADDRESS, UP = 0x8914, 0x8916, 0x41
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
fcntl.ioctl(s, FLAGS, struct.pack("16sh", b"lo", UP))
fcntl.ioctl(s, ADDRESS, struct.pack("16sH2s4s8s", b"lo:1", socket.AF_INET, b"", bytes([10, 1, 0, 2]), b""))
s.bind(("10.1.0.2", 7000))
reports, most, command = sys.argv[1].split("|"), int(sys.argv[2]), sys.argv[3:]
launcher = subprocess.Popen(command)
s.settimeout(0.1)
seen = 0
while launcher.poll() is None:
    try:
        text, source = s.recvfrom(2000)
    except TimeoutError:
        continue
    answer = "ok"
    if text.startswith(b"report"):
        answer, seen = reports[0], seen + 1
        reports = reports[1:] or reports
    s.sendto(answer.encode(), source)
    if seen == most:
        launcher.send_signal(signal.SIGTERM)
        seen += 1
sys.exit(launcher.returncode)
"""
PORT = "18347"


@dataclass
class Ended:
    status: int
    results: Results
    errors: str


@pytest.fixture
def launched(tmp_path: Path) -> Iterator[Callable[..., Ended]]:
    alone = ["unshare", "--map-root-user", "--net"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("this user may not make a network namespace")
    (tmp_path / "control.py").write_text(CONTROL)

    def run(reports: list[str], interrupt_at: int = -1, service: str = SERVICE, prepare: str = "true") -> Ended:
        (tmp_path / "service.py").write_text(service)
        launcher = [str(build.program("launcher")), "--name", "mine", "--cores", "1", "--port", PORT, "--processes", "one",
                    "--prepare", prepare, "--each", f"exec {sys.executable} {tmp_path}/service.py %p", "--load", "some clients=1"]
        got = subprocess.run([*alone, sys.executable, str(tmp_path / "control.py"), "|".join(reports), str(interrupt_at), *launcher],
                             capture_output=True, text=True, timeout=300, check=False)
        return Ended(got.returncode, Results.of(got.stdout, "mine"), got.stderr)

    yield run
    end = time.monotonic() + 120
    while subprocess.run(["pgrep", "-f", str(tmp_path / "service.py")], capture_output=True, check=False).stdout:
        assert time.monotonic() < end, "the service runs on"
        time.sleep(0.05)


def test_clients_that_get_wrong_answers_end_the_run_before_it_is_measured(launched: Callable[..., Ended]) -> None:
    got = launched(["ok answers=20 wrong=0", "ok answers=90 wrong=2 errors=2"])
    assert got.status == 1 and got.results.finished and not got.results.right
    assert got.errors == "mine: its clients get wrong answers: answers=90 wrong=2 errors=2\n"


def test_a_wrong_answer_among_the_measured_ones_makes_the_results_wrong(launched: Callable[..., Ended]) -> None:
    got = launched(["ok answers=200 wrong=0", "ok answers=900 wrong=1"], interrupt_at=1)
    assert got.status == 1 and got.results.finished and not got.results.right
    assert got.results.values["answers"] == 900


def test_right_answers_make_right_results(launched: Callable[..., Ended]) -> None:
    got = launched(["ok answers=200 wrong=0", "ok answers=900 wrong=0"], interrupt_at=1)
    assert got.status == 0 and got.results.right and got.results.values["answers"] == 900


def test_a_control_host_that_refuses_ends_the_run_with_its_words(launched: Callable[..., Ended]) -> None:
    got = launched(["no driver is called some"])
    assert got.status == 1 and not got.results.right and got.errors == "mine: no driver is called some\n"


def test_a_process_that_ended_while_others_answered_makes_the_results_wrong(launched: Callable[..., Ended]) -> None:
    got = launched(["ok answers=200 wrong=0", "ok answers=900 wrong=0"], interrupt_at=1, service=SHORT_SERVICE)
    assert got.status == 1 and got.results.finished and not got.results.right
    assert got.errors.startswith("mine: a process of the service ended before it was stopped")


def test_a_command_that_is_too_long_is_refused_and_not_cut_off(launched: Callable[..., Ended]) -> None:
    got = launched(["ok answers=200 wrong=0", "ok answers=900 wrong=0"], interrupt_at=1, prepare=" " * 1100 + "false")
    assert got.status == 1 and not got.results.right and "is too long" in got.errors
