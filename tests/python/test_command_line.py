# SPDX-License-Identifier: BSD-3-Clause
"""The command line as scripts see it: exit codes, what goes to which stream, answers to names that are not known."""

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from moscope import bootstrap, cli, commands, errors, jsonio, paths


def write_command(folder: Path, name: str, body: str) -> None:
    (folder / f"{name}.py").write_text(f"from moscope.cli import command\n\n@command\ndef f(shared):\n    {body}\n")


@pytest.fixture
def extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder whose modules are commands, for the time of a test."""
    monkeypatch.setattr(commands, "__path__", [*commands.__path__, str(tmp_path)])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if name.startswith("moscope.commands."):
            del sys.modules[name]


@pytest.mark.parametrize("body, code, text", [
    ("return 0", 0, ""),
    ("return 1", 1, ""),
    ("from moscope.errors import UserError; raise UserError('m.py: bad: good')", 2, "m.py: bad: good\n"),
    ("from moscope.errors import ProtocolError; raise ProtocolError('L1 S Inv')", 3, "moscope: protocol error: L1 S Inv\n"),
    ("from moscope.errors import GuestDied; raise GuestDied('panic')", 4, "moscope: the guest died: panic\n"),
    ("from moscope.errors import SimulatorBug; raise SimulatorBug('x')", 5, "moscope: simulator bug: x\n"),
    ("raise KeyboardInterrupt", 130, "moscope: interrupted\n"),
    ("import signal; signal.raise_signal(signal.SIGTERM)", 130, "moscope: interrupted\n"),
    ("raise OSError(28, 'No space left on device', 'out/a')", 2, "out/a: No space left on device: expected free space for the "
     "results (--out, standard output, the cache)\n"),
])
def test_each_kind_of_end_has_its_exit_code(extra: Path, capfd: pytest.CaptureFixture[str], body: str, code: int,
                                            text: str) -> None:
    write_command(extra, "probe", body)
    assert cli.main(["probe"]) == code
    assert capfd.readouterr() == ("", text)


def test_a_folder_of_commands_that_python_does_not_find_is_refused_by_the_file_that_it_lacks(
        extra: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (extra / "no_group").mkdir()
    write_command(extra / "no_group", "probe", "pass")
    assert cli.main(["no-group", "probe"]) == errors.UserError.exit_code
    assert capfd.readouterr().err == (f"{extra}/no_group/__init__.py: no such file: expected one whose docstring is the help of the group "
                                      "no-group (docs/extending/command.md)\n")


def interrupted_already() -> None:
    """In a process that begins: an interruption waits, as it does for a start that has not come as far as to answer it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # a shell's background job ignores interruptions, and so would its children
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize("command, said", [
    ((str(paths.root() / "moscope"), "isa"), "moscope: interrupted; the next start continues from here\n"),
    (("-P", "-m", "moscope", "isa"), "moscope: interrupted\n"),
])
def test_an_interruption_of_the_start_is_answered_without_a_traceback(command: tuple[str, ...], said: str) -> None:
    got = subprocess.run([sys.executable, *command], capture_output=True, text=True, check=False, env=bootstrap.clean_environment(),
                         preexec_fn=interrupted_already)
    assert (got.returncode, got.stdout, got.stderr) == (130, "", said)


def test_interruptions_wait_while_python_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    def execve(*_: object) -> None:
        raise SystemExit(signal.SIGINT in signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT}))

    monkeypatch.setattr(os, "execve", execve)
    with pytest.raises(SystemExit, match="True"):
        bootstrap.front_end(sys.executable, [])
    launcher = (paths.root() / "moscope").read_text(encoding="utf-8")
    assert launcher.index("SIG_BLOCK") < launcher.index("from moscope")


def test_a_terminal_that_closes_is_an_interruption_and_nothing_is_said_to_it(extra: Path) -> None:
    # Not pause(): a signal just before it would never be seen.
    write_command(extra, "probe", "import os, time; os.write(1, b'waits'); [time.sleep(0.05) for _ in range(1200)]")
    pid, terminal = pty.fork()
    if pid == 0:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
        os._exit(cli.main(["probe"]))
    seen = b""
    while b"waits" not in seen:
        seen += os.read(terminal, 100)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == errors.INTERRUPTED


@pytest.mark.parametrize("text, says", [
    ("x = 1\ndef f(:\n", "probe.py:2: not Python: invalid syntax: expected a command"),
    ("x = 1\nx.clock\n", "probe.py:2: AttributeError: 'int' object has no attribute 'clock': expected a command"),
])
@pytest.mark.parametrize("command", [["probe"], ["--help"]], ids=" ".join)
def test_a_command_that_cannot_be_imported_is_an_error_of_its_line(extra: Path, capfd: pytest.CaptureFixture[str], command: list[str],
                                                                   text: str, says: str) -> None:
    (extra / "probe.py").write_text(text)
    assert cli.main(command) == 2
    assert says in capfd.readouterr().err


@pytest.mark.parametrize("text", ["x = 1\nx.clock\n", "def f(:\n"])
def test_a_bug_in_a_module_that_a_command_imports_is_no_error_of_the_command(
        extra: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], text: str) -> None:
    inner = tmp_path / "of_moscope"
    inner.mkdir()
    (inner / "broken.py").write_text(text)
    monkeypatch.syspath_prepend(str(inner))
    monkeypatch.setattr(paths, "PACKAGE", inner)
    (extra / "probe.py").write_text("import broken\n")
    assert cli.main(["probe"]) == errors.SimulatorBug.exit_code
    message = capfd.readouterr().err
    assert message.startswith("moscope: simulator bug: ")
    Path(message.rsplit(" ", 1)[1].strip().rstrip(")")).unlink()


def test_an_unforeseen_exception_is_one_line_and_a_log(extra: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_command(extra, "probe", "return {}['key']")
    assert cli.main(["probe", "--seed", "4"]) == 5
    message = capfd.readouterr().err
    assert message.count("\n") == 1 and "Traceback" not in message
    log = Path(message.rsplit(" ", 1)[1].strip().rstrip(")"))
    assert "moscope probe --seed 4" in log.read_text() and "Traceback" in log.read_text()
    log.unlink()


def test_with_json_stdout_holds_the_object_and_nothing_else(extra: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_command(extra, "probe", "import os; os.write(1, b'from C\\n'); print('said'); shared.result({'a': 1})")
    assert cli.main(["probe", "--json"]) == 0
    out, err = capfd.readouterr()
    assert json.loads(out) == {"a": 1} and out.count("\n") == 1
    assert "from C" in err and "said" in err


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_out_keeps_the_object_of_a_command_that_writes_no_files(extra: Path, tmp_path: Path, form: list[str]) -> None:
    write_command(extra, "probe", "import os; os.chdir('/'); shared.result({'a': shared.seed})")
    out = tmp_path / "kept"
    for seed in ("1", "2"):  # the second takes the place of the first
        assert cli.main(["probe", "--out", os.path.relpath(out), "--seed", seed, *form]) == 0
    assert json.loads((out / "probe.json").read_text()) == {"a": 2}
    assert sorted(p.name for p in out.iterdir()) == [jsonio.MARK, "probe.json"]


def test_out_is_refused_before_any_work_where_it_holds_something_else(extra: Path, tmp_path: Path,
                                                                     capfd: pytest.CaptureFixture[str]) -> None:
    write_command(extra, "probe", "print('worked')")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    assert cli.main(["probe", "--out", str(tmp_path / "mine")]) == errors.UserError.exit_code
    out, err = capfd.readouterr()
    assert out == "" and "expected a new or empty folder" in err


def test_an_empty_out_is_not_the_current_folder(extra: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_command(extra, "probe", "print('worked')")
    assert cli.main(["probe", "--out", ""]) == errors.UserError.exit_code
    assert tuple(capfd.readouterr()) == ("", "--out: is empty: expected a folder\n")


def test_an_argument_that_is_not_utf8_is_a_user_error(extra: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_command(extra, "probe", "print('worked')")
    assert cli.main(["probe", "--out", os.fsdecode(b"o\xff")]) == errors.UserError.exit_code
    out, err = capfd.readouterr()
    assert out == "" and err.endswith(": is not valid UTF-8: expected an argument in UTF-8\n")


def test_a_command_that_fills_the_folder_itself_keeps_no_object(extra: Path, tmp_path: Path) -> None:
    (extra / "probe.py").write_text("from moscope.cli import command\n\n@command(fills_out=True)\ndef f(shared):\n"
                                    "    shared.result({'a': 1})\n")
    assert cli.main(["probe", "--json", "--out", str(tmp_path / "kept")]) == 0
    assert not (tmp_path / "kept").exists()


FOLDER = Path(commands.__path__[0])
MODULES = {p.relative_to(FOLDER).with_suffix("").parts: p for p in sorted(FOLDER.rglob("*.py")) if p.stem != "__init__"}
COMMANDS = [" ".join(parts).replace("_", "-") for parts in MODULES]
FILL_OUT = {" ".join(parts).replace("_", "-") for parts, path in MODULES.items() if "@command(fills_out=True" in path.read_text()}


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_out_will_hold(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert cli.main([*name.split(), "--help"]) == 0
    said = " ".join(capfd.readouterr().out.split())
    assert ("the JSON object as " + name.replace(" ", "-") + ".json" in said) == (name not in FILL_OUT)
    assert "Folder for the results" in said


def test_the_commands_of_the_contracts_exist_and_those_with_folders_of_results_fill_them() -> None:
    assert {"run", "boot", "latency", "protocol check", "trace", "bench memory", "kernel list", "workload list", "test"} <= set(COMMANDS)
    assert {"ablate", "boot", "crosscheck", "latency", "run", "trace", "protocol table"} <= FILL_OUT


def test_protocol_list_with_out_writes_the_object_that_json_prints(moscope, tmp_path: Path) -> None:
    printed, kept = moscope("protocol", "list", "--json"), moscope("protocol", "list", "--out", "kept")
    assert kept.returncode == printed.returncode == 0, kept.stderr
    assert "MSI" in kept.stdout
    assert json.loads((tmp_path / "kept" / "protocol-list.json").read_text()) == json.loads(printed.stdout)


UNUSED = ["compare", "docs", "export", "kernel build", "kernel config", "kernel list", "protocol build", "protocol list", "protocol table",
          "report", "test", "what-if", "workload build", "workload list"]


@pytest.mark.parametrize("name", UNUSED)
def test_the_help_of_a_command_without_a_machine_of_its_own_says_that_options_have_no_effect(name: str,
                                                                                           capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*name.split(), "--help"]) == 0
    assert capfd.readouterr().out.count("No effect on this command.") == 3


def test_an_option_without_effect_is_accepted_with_a_remark(extra: Path, capfd: pytest.CaptureFixture[str]) -> None:
    body = "from moscope.cli import SIMULATED, command\n\n@command(unused=SIMULATED)\ndef f(shared):\n    shared.result({})\n"
    (extra / "probe.py").write_text(body)
    assert cli.main(["probe", "--set", "dram.channels=1", "--seed", "1", "--json"]) == 0
    assert capfd.readouterr() == ("{}\n", "--set: has no effect on moscope probe\n--seed: has no effect on moscope probe\n")
    assert cli.main(["probe", "--machine", "small", "--quiet"]) == 0
    assert cli.main(["probe"]) == 0
    assert capfd.readouterr() == ("", "")


def test_every_command_takes_the_shared_options(extra: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_command(extra, "probe", "print(shared.machine, shared.sets, shared.seed, shared.out, shared.quiet)")
    assert cli.main(["probe"]) == 0
    assert cli.main(["probe", "--machine", "small", "--set", "a=1", "--set", "b=2", "--seed", "7", "--out", "o",
                     "--quiet"]) == 0
    assert capfd.readouterr().out == "opteron48 [] 1 None False\nsmall ['a=1', 'b=2'] 7 o True\n"


@pytest.mark.parametrize("arguments, expected", [
    (["protcol"], 'moscope: no command called "protcol": expected a known name, such as protocol'),
    (["protocol", "lst"], 'moscope protocol: no command called "lst": expected a known name, such as list'),
    (["protocol", "list", "--jsn"], 'moscope protocol list: no option called "--jsn": expected a known name, such as --json or --set'),
    (["protocol", "build", "MSJ"], 'protocol: no protocol called "MSJ": expected a known name, such as MSI'),
])
def test_an_unknown_name_is_answered_with_the_nearest(capfd: pytest.CaptureFixture[str], arguments: list[str],
                                                      expected: str) -> None:
    assert cli.main(arguments) == errors.UserError.exit_code
    assert capfd.readouterr() == ("", expected + "\n")


def test_of_many_names_a_message_gives_those_that_contain_the_wanted_one_or_the_first() -> None:
    many = [f"program:variable_{n}" for n in range(200)]
    assert str(errors.unknown_name("--line", "name", "e_17", many)).endswith("such as program:variable_17 or program:variable_170 or "
                                                                             "program:variable_171")
    assert str(errors.unknown_name("--line", "name", "zzz", many)).count("program:") == errors.MOST_NAMES
    hot = ("program:stats", "program:lock")
    assert "names: program:stats, program:lock, program:variable_0, " in str(errors.unknown_name("--line", "name", "zzz", many, first=hot))
    assert str(errors.unknown_name("--line", "name", "stat", ["program:state"], first=hot)).endswith("such as program:stats")


@pytest.mark.parametrize("arguments, said", [
    (["protocol", "list", "--seed", "x"], "--seed: x: expected a whole number"),
    (["run", "--windows", "1.5"], "--windows: 1.5: expected a whole number"),
    (["protocol", "check", "MSI", "--ops", "1e9"], "--ops: 1e9: expected a whole number"),
    (["test", "--jobs", "0"], "--jobs: 0: expected 1 or more"), (["kernel", "build", "-j", "0"], "--jobs: 0: expected 1 or more"),
    (["test", "--jobs", f"{2**70}"], f"--jobs: {2**70}: expected 1000 or less"),
    (["protocol", "check", "MSI", "--ops", f"{2**64}"], f"--ops: {2**64}: expected {10**18} or less"),
    (["protocol", "check", "MSI", "--shrink", f"{10**400}"], f"--shrink: {10**400}: expected 0 to {10**9} seconds"),
    (["run", "--windows", "9" * 5000], f"--windows: {'9' * 40}: expected a whole number with fewer digits"),
])
def test_a_value_that_is_no_number_or_out_of_range_is_named(capfd: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert cli.main(arguments) == errors.UserError.exit_code
    assert capfd.readouterr() == ("", said + "\n")


@pytest.mark.parametrize("arguments", [["protocol", "build"], ["test", "--jobs"]])
def test_a_usage_error_is_one_line_that_points_to_help(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert cli.main(arguments) == errors.UserError.exit_code
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and "--help" in err


def test_a_selection_that_is_no_expression_is_a_user_error(moscope) -> None:
    got = moscope("test", "--quiet", "linux on 6")
    assert got.returncode == errors.UserError.exit_code, got.stderr
    assert '"linux on 6" selects no tests' in got.stderr and "Traceback" not in got.stderr


def test_help_and_an_empty_command_line_say_what_there_is(capfd: pytest.CaptureFixture[str]) -> None:
    for arguments in ([], ["--help"], ["protocol"], ["protocol", "--help"]):
        assert cli.main(arguments) == 0
        assert "protocol" in capfd.readouterr().out


@pytest.mark.parametrize("installed", [False, True])
def test_the_list_of_commands_mentions_build_in_a_checkout_alone(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
                                                                 installed: bool) -> None:
    monkeypatch.setattr(paths, "installed", lambda: installed)
    assert cli.main(["--help"]) == 0
    assert ("moscope build --help" in " ".join(capfd.readouterr().out.split())) == (not installed)


def test_the_front_end_runs_as_a_process_and_its_output_fits_its_schema(moscope) -> None:
    got = moscope("protocol", "list", "--json")
    assert got.returncode == 0, got.stderr
    listed = json.loads(got.stdout)
    jsonio.validate(listed)
    assert "MSI" in [p["name"] for p in listed["protocols"]]


@pytest.mark.parametrize("arguments", [["protocol", "list"], ["--help"], ["run", "--help"]])
def test_a_reader_that_has_seen_enough_is_no_failure(root: Path, arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        got = subprocess.run([sys.executable, "-P", "-m", "moscope", *arguments], stdout=writer, text=True,
                             stderr=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(root / "src" / "python")},
                             check=False, timeout=120)
    finally:
        os.close(writer)
    assert (got.returncode, got.stderr) == (0, "")


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_a_reader_that_has_seen_enough_changes_no_exit_code(extra: Path, capfd: pytest.CaptureFixture[str], options: list[str]) -> None:
    write_command(extra, "probe", "import os; r, w = os.pipe(); os.close(r); os.dup2(w, shared.result_fd); "
                  "shared.answer({'schema': 'x'}, lambda: os.write(1, b'found')); return 1")
    assert cli.main(["probe", *options]) == errors.FOUND
    assert capfd.readouterr().err == ""


def test_a_pipe_that_broke_elsewhere_is_a_failure(extra: Path, capfd: pytest.CaptureFixture[str]) -> None:
    write_command(extra, "probe", "import os; r, w = os.pipe(); os.close(r); os.write(w, b'for a process that has ended')")
    assert cli.main(["probe"]) == errors.SimulatorBug.exit_code
    out, err = capfd.readouterr()
    assert out == "" and err.startswith("moscope: simulator bug: BrokenPipeError: ")
    Path(err.rsplit(" ", 1)[1].strip().rstrip(")")).unlink()


@pytest.mark.parametrize("arguments", [["trace", "c0 ld A@n0", "--svg"], ["trace", "c0 ld A@n0", "--out"], ["report"], ["step", "--run"],
                                       ["boot", "--script"], ["protocol", "table"], ["workload", "build"]])
def test_a_path_that_is_too_long_is_a_user_error(capfd: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert cli.main([*arguments, f"./{'n' * 300}.slicc"]) == errors.UserError.exit_code
    out, err = capfd.readouterr()
    assert out == "" and "File name too long: expected " in err


def in_a_process(root: Path, prepared: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The launcher after the statement `prepared` in its process; its standard output and error are pipes before."""
    code = f"import os, sys; {prepared}; os.execv(sys.argv[1], sys.argv[1:])"
    return subprocess.run([sys.executable, "-c", code, str(root / "moscope"), *arguments], capture_output=True, text=True, check=False,
                          timeout=300)


def test_the_command_completes_if_nothing_reads_its_stderr(root: Path, tmp_path: Path) -> None:
    deaf = "r, w = os.pipe(); os.close(r); os.dup2(w, 2)"
    got = in_a_process(root, f"os.chdir({str(tmp_path)!r}); {deaf}", "latency", "--machine", "small", "--json")
    assert got.returncode == 0 and json.loads(got.stdout)["schema"] == "moscope.latency/1"


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_standard_stream_is_no_failure(root: Path, closed: int) -> None:
    got = in_a_process(root, f"os.close({closed})", "protocol", "list", *(["--json"] if closed != 1 else []))
    assert got.returncode == 0, got.stderr
    assert got.stderr == "" and (closed == 1 or json.loads(got.stdout)["schema"] == "moscope.protocols/1")
    assert in_a_process(root, f"os.close({closed})", "protocol", "lst").returncode == errors.UserError.exit_code


def test_a_closed_standard_output_takes_no_json_result(root: Path) -> None:
    got = in_a_process(root, "os.close(1)", "protocol", "list", "--json")
    assert (got.returncode, got.stderr) == (2, "standard output: is closed: expected an open one, for the result of --json\n")


@pytest.mark.parametrize("seed", ["-1", "100000000000000000000000", str(cli.MOST_SEED + 1)])
@pytest.mark.parametrize("command", [["latency"], ["trace", "c0 ld A@n0"], ["run"], ["boot"], ["protocol", "check", "MSI"],
                                     ["bench", "memory"]])
def test_a_seed_beyond_what_the_engine_counts_is_a_user_error(capfd: pytest.CaptureFixture[str], command: list[str], seed: str) -> None:
    assert cli.main([*command, "--seed", seed]) == 2
    assert capfd.readouterr() == ("", f"--seed: {seed}: expected 0 to {cli.MOST_SEED}\n")


@pytest.mark.parametrize("seed", ["0", str(cli.MOST_SEED)])
def test_every_seed_that_is_accepted_runs(capfd: pytest.CaptureFixture[str], seed: str) -> None:
    assert cli.main(["trace", "c0 ld A@n0", "--seed", seed, "--quiet"]) == 0
