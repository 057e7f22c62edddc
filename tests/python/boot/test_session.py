# SPDX-License-Identifier: BSD-3-Clause
"""Runs against a guest of the test's own: what is typed when, checkpoints, every way to end, what is left behind."""

import io
import json
import os
import pty
from collections.abc import Callable, Generator
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from moscope import cli, jsonio
from moscope.boot import console, plan, result, run, session

Fake = Callable[[Any], list[Any]]
Script = Generator[str, str, dict[str, Any]]
POWEROFF = {"state": "poweroff"}


def planned(out: Path, **changes: Any) -> plan.Plan:
    config = {"chips": 8, "cores": 48, "seed": 1, "memory_per_node": 1 << 30, "markers": ["moscope# ", plan.PANIC],
              "info": {"machine": "opteron48", "append": "console=ttyS0",
                       "kernel": {"name": "distro", "release": "6.1", "sha256": "0" * 64, "origin": "x"}}}
    wanted = plan.Plan(config, out, **changes)
    if wanted.checkpoint_at and wanted.checkpoint_at not in config["markers"]:
        config["markers"].append(wanted.checkpoint_at)
    return wanted


def shell(commands: list[str]) -> Script:
    """Boots, then answers each line with what it was; an end of input powers off."""
    yield "Linux\r\nmoscope: ready\r\n"
    typed = yield "moscope# "
    while typed != "\x04":
        commands.append(typed)
        typed = yield f"ran {typed.strip()}\r\nmoscope# " if typed else ""
    return POWEROFF


def died(wanted: plan.Plan, outcome: session.Outcome, log: bytes) -> str:
    death = result.death(wanted, outcome, log)
    return death.report() if death else ""


def test_lines_are_typed_one_at_each_prompt_and_then_the_input_ends(fake: Fake, tmp_path: Path) -> None:
    commands: list[str] = []
    made = fake(lambda: shell(commands))
    outcome, document, log = run.run(planned(tmp_path / "out", typed=["nproc", "uname"]))
    assert made[0].typed == ["nproc\n", "uname\n", "\x04"] and commands == ["nproc\n", "uname\n"]
    assert outcome.ended == "poweroff" and document["ok"]
    assert (tmp_path / "out" / "console.txt").read_bytes() == log
    assert log.decode().endswith("ran uname\r\nmoscope# ")


@pytest.mark.parametrize("cut", range(5))
def test_the_lines_of_one_command_are_typed_at_the_shells_second_prompt(fake: Fake, tmp_path: Path, cut: int) -> None:
    """Behind a prompt, the shell asks for the cursor's place, of which the engine may have seen a part."""
    part, rest = "\x1b[6n"[:cut], "\x1b[6n"[cut:]

    def looping() -> Script:
        typed = yield f"moscope# {part}"
        while typed not in ("done\n", "\x04"):
            typed = yield f"{rest}{typed.strip()}\r\n> {part}"
        yield f"{rest}done\r\n1\r\n2\r\n> not a prompt\r\n> "  # of a program
        while (yield "moscope# ") != "\x04":
            pass
        return POWEROFF

    made = fake(looping)
    lines = ["for i in 1 2", "do", "echo $i", "done", "uname"]
    outcome, _, _ = run.run(planned(tmp_path / "out").with_lines(lines))
    assert outcome.ended == "poweroff" and made[0].typed == [*(f"{line}\n" for line in lines), "\x04"]


@pytest.mark.parametrize("prompt", ["moscope# ", "> "], ids=["a shell that a line started", "a command without its end"])
def test_the_end_of_the_input_is_typed_until_the_guests_shell_ends(fake: Fake, tmp_path: Path, prompt: str) -> None:
    def inner() -> Script:
        typed = yield "moscope# "
        assert (yield f"{typed.strip()}\r\n{prompt}") == "\x04"
        assert (yield "\r\nmoscope# ") == "\x04"
        return POWEROFF

    made = fake(inner)
    assert run.run(planned(tmp_path / "out").with_lines(["sh"]))[0].ended == "poweroff"
    assert made[0].typed == ["sh\n", "\x04", "\x04"]


def test_the_document_fits_its_schema_and_names_the_files(fake: Fake, tmp_path: Path) -> None:
    fake(lambda: shell([]))
    _, document, _ = run.run(planned(tmp_path / "out"))
    jsonio.validate(document)
    assert (document["cores"], document["nodes"], document["kernel"]["sha256"]) == (48, 8, "0" * 64)
    assert document["instructions"] == sum(document["instructions_per_core"]) > 0
    assert json.loads((tmp_path / "out/boot.json").read_text()) == document
    assert Path(document["console"]).is_file()


def test_the_document_tells_the_instructions_of_its_run_from_those_before_its_checkpoint(tmp_path: Path) -> None:
    outcome = session.Outcome(ended="poweroff", instructions=500, executed=200, host_s=2.0)
    document = result.document(planned(tmp_path / "out"), outcome)
    jsonio.validate(document)
    assert (document["instructions"], document["executed"], document["mips"]) == (500, 200, pytest.approx(1e-4, abs=1e-3))


def test_the_summary_after_a_checkpoint_has_the_runs_own_time_and_the_time_since_power_on() -> None:
    outcome = session.Outcome(instructions=5_000_000, executed=2_000_000, host_s=2.0, ticks=4566 * 10**12)
    assert outcome.done == "2,000,000 instructions, 1.0 MIPS, 4.566 s simulated"
    outcome.begun = 4000 * 10**12
    assert outcome.done == "2,000,000 instructions, 1.0 MIPS, 0.566 s simulated, 4.566 s since power-on"


def test_a_checkpoint_is_taken_once_where_the_marker_shows_and_the_run_goes_on(fake: Fake, tmp_path: Path) -> None:
    made = fake(lambda: shell([]))
    outcome, document, _ = run.run(planned(tmp_path / "out", checkpoint_at="moscope# ", typed=["a", "b"]))
    assert [step for _, step in made[0].saved] == [2]
    assert outcome.ended == "poweroff" and Path(document["checkpoint"]).read_text() == "checkpoint"


def test_a_checkpoint_is_taken_once_where_a_program_sets_the_marker(fake: Fake, tmp_path: Path) -> None:
    def program() -> Generator[dict[str, Any], str, dict[str, Any]]:
        for name in ("workbegin", "checkpoint", "checkpoint"):
            yield {"state": "marker", "detail": name}
        return POWEROFF

    made = fake(program)
    outcome, _, _ = run.run(planned(tmp_path / "out", checkpoint_at="checkpoint"))
    assert outcome.checkpoint_taken and [step for _, step in made[0].saved] == [2]


def test_a_checkpoint_whose_marker_never_shows_is_a_failure(fake: Fake, tmp_path: Path) -> None:
    fake(lambda: shell([]))
    wanted = planned(tmp_path / "out", checkpoint_at="login:")
    outcome, document, _ = run.run(wanted)
    assert result.exit_code(wanted, outcome) == 1 and not document["ok"] and "checkpoint" not in document
    assert result.remarks(wanted, outcome) == ['--checkpoint-at: the console never showed "login:"']


def test_a_resumed_shell_is_asked_for_its_prompt(fake: Fake, tmp_path: Path) -> None:
    def resumed() -> Script:
        typed = yield ""
        while typed != "\x04":
            typed = yield "moscope# " if typed else ""
        return POWEROFF

    made = fake(resumed)
    run.run(planned(tmp_path / "out", resume=tmp_path / "m.ckpt", typed=["ls"]))
    assert made[0].restored == [str(tmp_path / "m.ckpt")]
    assert made[0].typed == ["\n", "ls\n", "\x04"]


def test_a_resumed_guest_gets_input_only_if_its_checkpoint_was_taken_at_a_prompt(fake: Fake, tmp_path: Path) -> None:
    def waiting() -> Script:
        typed = yield ""
        return POWEROFF if typed == "" else {"state": "exit", "status": 9}

    made = fake(waiting)
    assert run.run(planned(tmp_path / "out", resume=tmp_path / "m.ckpt", at_prompt=True))[0].ended == "exit"
    assert made[0].typed == ["\x04"]
    made = fake(waiting)
    assert run.run(planned(tmp_path / "out", resume=tmp_path / "m.ckpt"))[0].ended == "poweroff"
    assert made[0].typed == []  # in the middle of something: nothing that the run before did not get


def test_a_script_on_a_resumed_machine_is_typed_whole(tmp_path: Path) -> None:
    import base64

    script = tmp_path / "script"
    script.write_text("echo one\n" * 100)
    lines = plan.script_lines(script)
    sent = "".join(line.split()[2] for line in lines if line.startswith("printf"))
    assert base64.b64decode(sent) == script.read_bytes()
    assert lines[-1] == "exit" and "script ended with status" in lines[-2] and all(len(line) < 1000 for line in lines)


@pytest.mark.parametrize("status, code", [(0, 0), (3, 1)])
def test_the_scripts_status_is_read_from_the_console(fake: Fake, tmp_path: Path, status: int, code: int) -> None:
    def scripted() -> Script:
        yield f"moscope: ready\r\nmoscope: script ended with status {status}\r\n"
        return POWEROFF

    fake(scripted)
    wanted = planned(tmp_path / "out")
    outcome, document, _ = run.run(wanted)
    assert document["script_status"] == status and result.exit_code(wanted, outcome) == code


@pytest.mark.parametrize("state, how", [("poweroff", "the guest powered off"), ("reset", "the guest reset the machine")])
@pytest.mark.parametrize("script", [True, False])
def test_a_guest_that_ends_before_its_script_has_died(fake: Fake, tmp_path: Path, state: str, how: str, script: bool) -> None:
    def ending() -> Script:
        yield "moscope: ready\r\nlast words\r\n"
        return {"state": state}

    fake(ending)
    wanted = planned(tmp_path / "out")
    wanted.config["info"]["script"] = script
    outcome, document, log = run.run(wanted)
    assert (result.exit_code(wanted, outcome), document["ok"], document["ended"]) == (4 if script else 0, not script, state)
    said = f"moscope: the guest died: the script did not end: {how}\n--- the console's last lines\nmoscope: ready\nlast words"
    assert died(wanted, outcome, log) == (said if script else "")


@pytest.mark.parametrize("answer, shown, code", [
    ({"state": "exit", "status": 0}, "", 0), (POWEROFF, "moscope: script ended with status 0\r\n", 0),
    (POWEROFF, "moscope: script ended with status 3\r\n", 1)])
def test_a_script_with_a_status_decides_the_exit_code(fake: Fake, tmp_path: Path, answer: dict[str, Any], shown: str,
                                                      code: int) -> None:
    def ending() -> Script:
        yield f"moscope: ready\r\n{shown}"
        return answer

    fake(ending)
    wanted = planned(tmp_path / "out")
    wanted.config["info"]["script"] = True
    outcome, _, log = run.run(wanted)
    assert result.exit_code(wanted, outcome) == code and not died(wanted, outcome, log)


@pytest.mark.parametrize("state", ["triple_fault", "hang", "panic", "end_of_time"])
def test_a_dead_guest_leaves_its_last_words_and_registers(fake: Fake, tmp_path: Path, state: str) -> None:
    def dying() -> Script:
        yield "\x1b[31mlast\x1b[0m words\r\n"
        return {"state": state, "detail": "core 3"}

    fake(dying)
    wanted = planned(tmp_path / "out")
    outcome, document, log = run.run(wanted)
    jsonio.validate(document)
    assert result.exit_code(wanted, outcome) == 4
    text = died(wanted, outcome, log)
    assert "core 3" in text and "\nlast words\n" in text and "rip ffffffff81000000" in text
    assert Path(document["registers"]).read_text().startswith("rip ")


def test_a_guest_that_reaches_the_end_of_simulated_time_is_not_reported_as_dead(tmp_path: Path) -> None:
    outcome = session.Outcome(ended="end_of_time", detail="simulated time ends after 9000 s", registers="rip 0")
    said = died(planned(tmp_path / "out"), outcome, b"moscope# ")
    assert said.startswith("moscope: the guest was stopped: simulated time ends after 9000 s\n--- the console's last lines\nmoscope# ")


def test_a_kernel_panic_ends_a_run_that_would_go_on_for_ever(fake: Fake, tmp_path: Path) -> None:
    def panicking() -> Script:
        yield "Kernel panic - not syncing: no init\r\n---[ end Kernel panic"
        yield " - not syncing: no init ]---\r\n"
        while True:
            yield ""

    fake(panicking)
    wanted = planned(tmp_path / "out")
    outcome, document, log = run.run(wanted)
    assert outcome.ended == "panic" and document["detail"] == "no init" and log.endswith(b" ]---\r\n")
    assert died(wanted, outcome, log).startswith("moscope: the guest died: kernel panic: no init\n")


PANICKED = "[    1.353350] Kernel panic - not syncing: Attempted to kill init!\r\n"
RESTARTS = "[    1.388293] reboot: Restarting system\r\n"


@pytest.mark.parametrize("shown, ended, code", [
    (PANICKED + "[    1.355979] Rebooting in 1 seconds..\r\n", "panic", 4),
    (PANICKED.split("] ")[1], "panic", 4),  # panic=-1, without the kernel's times
    ("the words Kernel panic - not syncing: x\r\n", "reset", 0),
    (PANICKED + RESTARTS, "reset", 0),  # of a file that the guest has shown
])
def test_a_reset_after_a_kernel_panic_is_a_death(fake: Fake, tmp_path: Path, shown: str, ended: str, code: int) -> None:
    def rebooting() -> Script:
        yield shown
        return {"state": "reset", "detail": "the guest reset the machine"}

    fake(rebooting)
    wanted = planned(tmp_path / "out")
    outcome, document, _ = run.run(wanted)
    assert (outcome.ended, result.exit_code(wanted, outcome), document["ok"]) == (ended, code, code == 0)
    assert (document["detail"], "registers" in document) == (
        ("Attempted to kill init!", True) if code else ("the guest reset the machine", False))


def test_an_instruction_that_the_model_lacks_is_a_simulator_bug(fake: Fake, tmp_path: Path) -> None:
    def odd() -> Script:
        yield ""
        return {"state": "unmodelled", "detail": "0f 0f at 1000"}

    fake(odd)
    wanted = planned(tmp_path / "out")
    outcome, document, log = run.run(wanted)
    jsonio.validate(document)
    assert result.exit_code(wanted, outcome) == 5
    assert died(wanted, outcome, log).startswith("moscope: simulator bug: the guest uses a feature that the model lacks: 0f 0f")


def test_an_interrupted_run_keeps_what_it_has(fake: Fake, tmp_path: Path) -> None:
    def interrupted() -> Script:
        yield "so far"
        raise KeyboardInterrupt

    fake(interrupted)
    wanted = planned(tmp_path / "out")
    outcome, document, _ = run.run(wanted)
    assert result.exit_code(wanted, outcome) == 130 and not document["ok"]
    assert (tmp_path / "out/console.txt").read_text() == "so far"


def test_in_a_terminal_keys_go_to_the_guest_and_the_escape_ends_the_run(fake: Fake, tmp_path: Path) -> None:
    parent, child = pty.openpty()
    got: list[str] = []

    def interactive() -> Script:
        os.write(parent, b"ls\r\x03")
        typed = yield "moscope# "
        while True:
            got.append(typed)
            os.write(parent, b"\x1dq")
            typed = yield "files\r\n"

    fake(interactive)
    try:
        terminal = console.Terminal(child, child)
        outcome, document, _ = run.run(planned(tmp_path / "out"), terminal.show, terminal)
        assert outcome.ended == "quit" and document["ok"] and "".join(got).startswith("ls\r\x03")
        shown = b""
        while len(shown) < len(b"moscope# files\r\n"):  # a terminal hands on what it has by then
            shown += os.read(parent, 1000)
        assert shown.startswith(b"moscope# files\r\n")
    finally:
        os.close(parent)
        os.close(child)


@pytest.mark.parametrize("script", [False, True])
def test_an_idle_guest_in_a_terminal_keeps_real_time(fake: Fake, tmp_path: Path, script: bool,
                                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    host_s, waits = [100.0], []

    class Waiting(console.Terminal):
        def raw(self) -> Any:
            return nullcontext()

        def typed(self, patience: float = 0) -> bytes:
            host_s[0] += patience + 1e-4
            waits.append(patience)
            return b"\x1dq" if len(waits) == 100 else b""

    def idle() -> Generator[Any, str, None]:
        for _ in range(50):
            yield "busy\r\n"
        while True:
            yield {"state": "time"}

    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: host_s[0]))
    made = fake(idle)
    wanted = planned(tmp_path / "out")
    wanted.config["info"]["script"] = script
    outcome, _, _ = run.run(wanted, lambda data: None, Waiting())
    if script:
        assert not any(waits)
        return
    assert waits == [0] * 51 + [session.INTERACTIVE_STEP_MS / 1000] * 49
    idle_s = outcome.ticks / 1e15 - 50e-3  # a busy step of the test's guest takes 1 ms
    assert outcome.ended == "quit" and idle_s == pytest.approx(sum(waits[:-1]), rel=0.02) and len(made) == 1


def test_a_guest_does_not_catch_up_after_moscope_was_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    host_s = [100.0]
    monkeypatch.setattr(session, "time", SimpleNamespace(monotonic=lambda: host_s[0]))
    pace = session.Pace()
    host_s[0] += 0.5
    assert pace.passed() == session.FS_PER_S // 2
    host_s[0] += 12 * 3600  # longer than simulated time lasts
    assert pace.passed() == session.FS_PER_S


def test_a_script_is_typed_into_a_resumed_shell_also_in_a_terminal(fake: Fake, tmp_path: Path) -> None:
    class Silent(console.Terminal):
        def raw(self) -> Any:
            return nullcontext()

        def typed(self, patience: float = 0) -> bytes:
            return b""

    def resumed() -> Script:
        for _ in range(100):
            if (yield "moscope# ").endswith("exit\n"):
                break
        return POWEROFF

    made = fake(resumed)
    wanted = planned(tmp_path / "out", resume=tmp_path / "m.ckpt", at_prompt=True, typed=["sh script", "exit"])
    run.run(wanted, lambda data: None, Silent())
    assert made[0].typed == ["sh script\n", "exit\n"]


def endless() -> Script:
    while True:
        yield "more\r\n"


def test_a_reader_that_has_seen_enough_ends_the_run_and_its_results_are_whole(fake: Fake, tmp_path: Path) -> None:
    ours, theirs = os.pipe()
    fake(endless)
    try:
        os.set_blocking(theirs, False)
        os.close(ours)
        outcome, document, log = run.run(planned(tmp_path / "out"), console.Terminal(0, theirs).show)
    finally:
        os.close(theirs)
    assert outcome.ended == "quit" and document["ok"] and log
    assert (tmp_path / "out/console.txt").read_bytes() == log


def test_a_terminal_that_was_hung_up_interrupts_the_run(fake: Fake, tmp_path: Path) -> None:
    parent, child = pty.openpty()

    def interactive() -> Script:
        yield "Linux\r\n"
        os.close(parent)
        yield from endless()

    fake(interactive)
    terminal = console.Terminal(child, child)
    try:
        outcome, document, log = run.run(planned(tmp_path / "out"), terminal.show, terminal)
    finally:
        os.close(child)
    assert outcome.ended == "interrupted" and not document["ok"] and log.startswith(b"Linux\r\nmore")
    assert (tmp_path / "out/boot.json").is_file()


def test_the_command_gives_the_document_alone_on_stdout(fake: Fake, image: Path, tmp_path: Path,
                                                        capfd: pytest.CaptureFixture[str]) -> None:
    made = fake(lambda: shell([]))
    out = tmp_path / "out"
    assert cli.main(["boot", "--json", "--kernel", str(image), "--cores", "2", "--memory-per-node", "256MiB", "--append",
                     "quiet", "--out", str(out)]) == 0
    document = json.loads(capfd.readouterr().out)
    jsonio.validate(document)
    assert document["console"] == str(out / "console.txt") and document["cores"] == 2
    config = made[0].config
    assert config["append"] == "console=ttyS0 quiet" and config["memory_per_node"] == 256 << 20
    assert config["schema"] == "moscope.system/1" and len(config["hops"]) == config["chips"] == 8


def test_the_command_ends_with_4_when_the_guest_died(fake: Fake, image: Path, tmp_path: Path,
                                                     capfd: pytest.CaptureFixture[str]) -> None:
    def dying() -> Script:
        yield "oops\r\n"
        return {"state": "triple_fault"}

    fake(dying)
    assert cli.main(["boot", "--json", "--kernel", str(image), "--out", str(tmp_path / "out")]) == 4
    out, err = capfd.readouterr()
    assert json.loads(out)["ok"] is False
    assert "moscope: the guest died: triple fault" in err and "oops" in err


def test_a_script_that_ends_the_machine_by_the_exit_port(fake: Fake, tmp_path: Path) -> None:
    def exiting() -> Script:
        yield ""
        return {"state": "exit", "status": 7}

    fake(exiting)
    wanted = planned(tmp_path / "out")
    outcome, document, _ = run.run(wanted)
    assert document["exit_status"] == 7 and result.exit_code(wanted, outcome) == 1


def test_the_tail_is_of_the_last_lines() -> None:
    assert session.tail(b"a\r\nb\r\nc", 2) == "b\nc"


@pytest.mark.parametrize(("piped", "lines"), [
    (b"", []), (b"nproc\nexit", ["nproc", "exit"]), (b"a\r\n\nb\n", ["a", "", "b"]), (b"a\rb\n", ["a", "b"]),
    ("echo 'one\f\u2028\x85line'\n".encode(), ["echo 'one\f\u2028\x85line'"]),
])
def test_piped_input_is_divided_at_line_feeds_and_carriage_returns_alone(piped: bytes, lines: list[str]) -> None:
    assert session.piped_lines(io.BytesIO(piped)) == lines
