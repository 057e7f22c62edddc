# SPDX-License-Identifier: BSD-3-Clause
"""Builds that are interrupted, and builds that wait for each other."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moscope import bootstrap, groups, locks, paths

# A start that gets a signal while it prepares its environment. It ends with 7 if it goes on.
START = """
import signal, sys
from moscope import bootstrap
signal.signal(signal.SIGHUP, signal.{hang_up})
bootstrap.prepare = lambda _: (signal.raise_signal(signal.{sent}), sys.exit(7))
bootstrap.main(["isa"])
"""

# Ignores SIGINT, and leaves a file when SIGTERM ends it.
DEAF = """
import pathlib, signal, sys, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, lambda *_: (pathlib.Path(sys.argv[1]).touch(), sys.exit()))
print("waiting: for its end", flush=True)
time.sleep(60)
"""


def ended(process: int) -> bool:
    """Whether a process ends within 10 seconds. It closes its pipes, for which its caller waits, a moment before it is gone."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            if Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.01)
    return False


@pytest.mark.usefixtures("heard")
def test_an_interrupted_build_ends_with_all_that_it_has_started(tmp_path: Path) -> None:
    started: list[int] = []

    def say(text: str) -> None:
        started.append(int(text.split()[1]))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # the inner shell becomes the program that it executes last
        bootstrap.run_logged(["sh", "-c", "sh -c 'echo waiting: $$; exec sleep 60'; true"], tmp_path / "log", bootstrap.Relay(say))
    assert ended(*started)


def test_a_build_that_ignores_interruptions_as_below_nohup_ends_politely(tmp_path: Path) -> None:
    def say(text: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        bootstrap.run_logged([sys.executable, "-c", DEAF, str(tmp_path / "ended")], tmp_path / "log", bootstrap.Relay(say))
    assert (tmp_path / "ended").exists()


@pytest.mark.usefixtures("heard")
def test_a_second_interruption_leaves_nothing_running(monkeypatch: pytest.MonkeyPatch) -> None:
    leader = subprocess.Popen(["sh", "-c", "trap '' TERM; echo started; exec sleep 60"], stdout=subprocess.PIPE, start_new_session=True)
    assert leader.stdout and leader.stdout.readline()
    waited, tries = leader.communicate, iter([True])

    def interrupted(timeout: float | None) -> object:
        if next(tries, False):
            signal.raise_signal(signal.SIGHUP)
        return waited(timeout=timeout)

    monkeypatch.setattr(leader, "communicate", interrupted)
    groups.end(leader, signal.SIGTERM, 0.1)
    assert ended(leader.pid) and not list(tries)


@pytest.mark.parametrize(("sent", "hang_up", "code", "said"), [
    ("SIGTERM", "SIG_DFL", 130, "moscope: interrupted; the next start continues from here\n"),
    ("SIGHUP", "SIG_DFL", 130, "moscope: interrupted; the next start continues from here\n"),
    ("SIGHUP", "SIG_IGN", 7, "")])
def test_a_polite_end_interrupts_a_start_unless_nohup_ignores_it(sent: str, hang_up: str, code: int, said: str) -> None:
    got = subprocess.run([sys.executable, "-c", START.format(sent=sent, hang_up=hang_up)], capture_output=True, text=True, check=False,
                         env=bootstrap.clean_environment())
    assert (got.returncode, got.stderr) == (code, said)


def test_a_build_that_waits_for_another_one_says_so(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "build/opt").mkdir(parents=True)
    script = (paths.root() / "SConstruct").read_text(encoding="utf-8")
    (tmp_path / "SConstruct").write_text(script.partition("\nSConsignFile(")[0].replace('"src/python"', f"'{paths.import_dir()}'"))
    command = [sys.executable, "-m", "SCons", "-Q", "-f", str(tmp_path / "SConstruct"), "-C", str(tmp_path)]

    with (tmp_path / "build/opt/.lock").open("w") as lock:
        def say(text: str) -> None:
            said.append(text)
            lock.close()

        assert locks.take(lock, wait=False)
        bootstrap.run_logged(command, tmp_path / "log", bootstrap.Relay(say), bootstrap.clean_environment())
    assert said == ["waiting: another moscope is building in build/opt"]


@pytest.mark.parametrize(("left", "why"), [([], "the first time takes minutes"), ([".sconsign.dblite"], "the last build is not complete")])
def test_only_a_first_build_is_said_to_take_minutes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
                                                    left: list[str], why: str) -> None:
    for name in left:
        (tmp_path / name).touch()
    monkeypatch.setattr(paths, "build_dir", lambda: tmp_path)
    monkeypatch.setattr(bootstrap, "build", lambda *_: None)
    bootstrap.ensure_built(Path("venv"), bootstrap.Voice(quiet=False))
    assert capsys.readouterr().err == f"moscope: building in {tmp_path} ({why})\n"
