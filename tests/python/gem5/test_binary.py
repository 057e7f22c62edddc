# SPDX-License-Identifier: BSD-3-Clause
"""The user's gem5: found, asked what it is, run, and its failures distinguished; with stand-ins for gem5."""

import json
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope.errors import ProtocolError, UserError
from moscope.gem5 import binary, engines
from moscope.gem5.binary import Gem5Died

Fake = Callable[..., Path]
Moscope = Callable[..., subprocess.CompletedProcess[str]]


def test_the_option_takes_precedence_over_the_environment_variable(fake_gem5: Fake, monkeypatch: pytest.MonkeyPatch) -> None:
    path = fake_gem5()
    monkeypatch.setenv("GEM5", "/bin/true")
    assert binary.find(path) == path
    assert binary.find(None) == Path("/bin/true").resolve()


def test_without_a_name_the_error_says_how_to_give_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GEM5", raising=False)
    with pytest.raises(UserError, match="--gem5 PATH, or the environment variable GEM5"):
        binary.find(None)


def test_a_file_that_is_no_program_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("gem5")
    for name in ("notes", "absent"):
        with pytest.raises(UserError, match="is not a program"):
            binary.find(tmp_path / name)


def test_a_program_that_is_no_gem5_is_refused_with_its_words() -> None:
    with pytest.raises(UserError, match="is not gem5"):
        binary.ask(Path("/bin/echo"))


@pytest.mark.parametrize("tells", ["", "no JSON", "{}", "5"])
def test_a_program_whose_answer_is_malformed_is_refused_with_that_answer(tmp_path: Path, tells: str) -> None:
    path = tmp_path / "gem5.opt"
    path.write_text(f"#!/bin/sh\necho 'moscope-gem5: is: {tells}'\n")
    path.chmod(0o755)
    with pytest.raises(UserError, match=f"does not report its version, protocol and x86(.|\n)*moscope-gem5: is:.?{tells}"):
        binary.ask(path)


def test_a_program_that_is_killed_is_reported_with_its_signal(tmp_path: Path) -> None:
    path = tmp_path / "gem5.opt"
    path.write_text("#!/bin/sh\nkill -9 $$\n")
    path.chmod(0o755)
    with pytest.raises(UserError, match=r"does not run \(it ended by signal 9\)"):
        binary.ask(path)


def test_a_script_run_in_gem5_reports_version_protocol_and_x86(fake_gem5: Fake) -> None:
    found = binary.require(fake_gem5(x86=True), "MOESI_HTAssist", x86=True)
    assert (found.version, found.protocol, found.runs_x86) == ("24.0.0.1", "MOESI_HTAssist", True)


def test_another_version_is_refused_by_its_number(fake_gem5: Fake) -> None:
    with pytest.raises(UserError, match=r"is gem5 23\.1\.0\.0: expected version 24"):
        binary.require(fake_gem5(version="23.1.0.0"), "MOESI_HTAssist")


def test_another_protocol_is_refused_and_the_usual_reason_told(fake_gem5: Fake) -> None:
    with pytest.raises(UserError, match="built with the protocol MI_example: expected one built with MOESI_HTAssist.*EXTRAS"):
        binary.require(fake_gem5(protocol="MI_example"), "MOESI_HTAssist")


def test_a_gem5_without_x86_runs_no_programs(fake_gem5: Fake) -> None:
    with pytest.raises(UserError, match="without x86"):
        binary.require(fake_gem5(x86=False), "MOESI_HTAssist", x86=True)


def run(path: Path, folder: Path) -> binary.Ran:
    return binary.run(binary.ask(path), "play_script.py", ["job.json"], folder, ["--debug-flags=X"])


def test_gem5_is_given_output_folder_options_script_and_arguments(fake_gem5: Fake, tmp_path: Path) -> None:
    ran = run(fake_gem5(), tmp_path / "out")
    arguments = json.loads((tmp_path / "out" / "arguments.json").read_text())
    assert arguments[:2] == [f"--outdir={tmp_path / 'out'}", "--debug-flags=X"]
    assert Path(arguments[2]).is_file() and arguments[3:] == ["job.json"]
    assert ran.ending() == ("the script is at its end", 1.5)


def test_a_gem5_that_dies_is_reported_with_its_last_lines(fake_gem5: Fake, tmp_path: Path) -> None:
    says = "\n".join(f"line {n}" for n in range(100)) + "\nfatal: out of memory"
    with pytest.raises(Gem5Died) as error:
        run(fake_gem5(says=says, code=1), tmp_path / "out")
    assert "fatal: out of memory" in str(error.value) and "line 99" in str(error.value) and "line 1\n" not in str(error.value)
    assert error.value.exit_code == 5


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGKILL])
def test_a_gem5_that_a_signal_ends_is_reported_with_its_last_lines(fake_gem5: Fake, tmp_path: Path, number: int) -> None:
    with pytest.raises(Gem5Died, match=f"by signal {number}; its last lines:\n  what it said last"):
        run(fake_gem5(says="what it said last\n--- BEGIN LIBC BACKTRACE ---\nmain", code=-number), tmp_path / "out")


@pytest.mark.parametrize("said, code", [
    ("src/mem/dram.cc:690: fatal: no such rank\nMemory Usage: 1 KBytes", 5),
    ("src/base/x.cc:1: panic: condition c occurred: bad\nProgram aborted at tick 7", 5),
    ("Sequencer.cc:242: panic: Possible Deadlock detected. Aborting!\nProgram aborted at tick 7", 3),
])
def test_commands_end_with_the_code_of_what_went_wrong_on_gem5(moscope: Moscope, fake_gem5: Fake, said: str, code: int) -> None:
    path = fake_gem5(says=said, code=-signal.SIGABRT)
    for command in (["crosscheck", "--accesses", "5"], ["latency", "--engine", "gem5"]):
        got = moscope(*command, "--machine", "small", "--gem5", str(path))
        assert got.returncode == code and said.splitlines()[0] in got.stderr and "Traceback" not in got.stderr


def test_a_protocol_that_breaks_on_gem5_is_a_protocol_error(fake_gem5: Fake, tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="Invalid transition"):
        run(fake_gem5(says="panic: Invalid transition\nMemory Usage: 1 KBytes", code=6), tmp_path / "out")


def test_what_our_scripts_say_to_the_user_is_a_user_error(fake_gem5: Fake, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="gem5.opt: no ScriptPlayer in this gem5"):
        run(fake_gem5(says="moscope-gem5: no ScriptPlayer in this gem5: another", code=1), tmp_path / "out")


def test_an_exit_before_the_end_of_the_script_is_a_failure(fake_gem5: Fake, tmp_path: Path) -> None:
    with pytest.raises(Gem5Died, match="did not reach the end"):
        run(fake_gem5(says="Exiting"), tmp_path / "out").ending()


@pytest.mark.parametrize("command", [["latency", "--engine", "gem5"], ["crosscheck"]])
def test_commands_without_a_gem5_say_what_is_missing(moscope: Moscope, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.delenv("GEM5", raising=False)
    got = moscope(*command, "--machine", "small")
    assert got.returncode == 2 and "GEM5" in got.stderr and "Traceback" not in got.stderr


def test_an_unknown_engine_is_answered_with_the_known_ones(moscope: Moscope) -> None:
    got = moscope("latency", "--engine", "gem")
    assert got.returncode == 2 and "gem5" in got.stderr
    got = moscope("latency", "--engine", "x")
    assert got.returncode == 2 and got.stderr == '--engine: no engine called "x": expected one of embedded, gem5\n'


@pytest.mark.parametrize("name", ["embedded", "moscope"])  # the second is the former name
def test_the_embedded_engine_can_be_named(name: str) -> None:
    assert not engines.is_gem5(name, None)


@pytest.mark.parametrize("command", [["latency"], ["protocol", "check"], ["run"]])
def test_help_lists_the_engines_by_the_names_that_are_accepted(moscope: Moscope, command: list[str]) -> None:
    assert "embedded|gem5" in moscope(*command, "--help").stdout


def test_naming_a_gem5_for_the_embedded_engine_is_a_mistake(moscope: Moscope, fake_gem5: Fake) -> None:
    got = moscope("latency", "--machine", "small", "--gem5", str(fake_gem5()))
    assert got.returncode == 2 and "--engine gem5" in got.stderr


def test_bandwidths_are_not_measured_on_gem5(moscope: Moscope, fake_gem5: Fake) -> None:
    got = moscope("latency", "--machine", "small", "--engine", "gem5", "--gem5", str(fake_gem5()), "--bandwidth")
    assert got.returncode == 2 and "--bandwidth" in got.stderr
