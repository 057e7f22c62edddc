# SPDX-License-Identifier: BSD-3-Clause
"""Shells complete commands, options and their values; completion loads only the modules that it needs."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import cli, commands, completion, paths

Moscope = Callable[..., subprocess.CompletedProcess[str]]


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(paths.import_dir()), **more}


def completed(line: str, shell: str = "fish") -> list[str]:
    """The answers for a line as the shell's script asks for them."""
    words = line.split(" ")
    env = environment(_MOSCOPE_COMPLETE=f"complete_{shell}", _TYPER_COMPLETE_ARGS=line, _TYPER_COMPLETE_FISH_ACTION="get-args")
    if shell == "bash":
        env |= {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    got = subprocess.run([sys.executable, "-P", "-m", "moscope"], env=env, capture_output=True, text=True, check=False)
    assert (got.returncode, got.stderr) == (0, "")
    return [answer.split("\t")[0] for answer in got.stdout.splitlines()]


def test_all_commands_complete() -> None:
    assert set(completed("moscope ")) == set(cli._names_in(commands.__name__))
    assert set(completed("moscope protocol ")) >= {"check", "list", "table"}


@pytest.mark.parametrize("line, some", [
    ("moscope ru", ["run"]),
    ("moscope run --kern", ["--kernel"]),
    ("moscope run --machine opteron48_s", ["opteron48_straight"]),
    ("moscope run --workload counter-s", ["counter-sloppy"]),
    ("moscope run --kernel stock,up", ["stock,upstream"]),
    ("moscope run --detail ", ["table", "full"]),
    ("moscope latency --set links.cl", ["links.clock="]),
    ("moscope protocol check MS", ["MSI"]),
    ("moscope nonsense --x", []),
])
def test_options_and_their_values_complete(line: str, some: list[str]) -> None:
    assert completed(line) == some


@pytest.mark.parametrize("shell", completion.SHELLS)
def test_each_shell_gets_the_same_answers(shell: str) -> None:
    assert "opteron48_broadcast" in " ".join(completed("moscope run --machine opteron48_b", shell))


def test_an_answer_loads_neither_the_engine_nor_large_libraries() -> None:
    code = ("import json, os, sys; from moscope import cli; cli.main([])\n"
            "print(json.dumps([m for m in ('numpy', 'pyarrow', 'matplotlib', 'duckdb', 'moscope._engine') if m in sys.modules]))")
    env = environment(_MOSCOPE_COMPLETE="complete_fish", _TYPER_COMPLETE_ARGS="moscope run --ker", _TYPER_COMPLETE_FISH_ACTION="get-args")
    code = code.replace("cli.main([])", "\ntry: cli.main([])\nexcept SystemExit: pass")
    got = subprocess.run([sys.executable, "-P", "-c", code], env=env, capture_output=True, text=True, check=True)
    assert json.loads(got.stdout.splitlines()[-1]) == []


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """A `moscope` to put on PATH."""
    path = tmp_path / "bin" / "moscope"
    path.parent.mkdir()
    path.write_text(f'#!/bin/sh\nPYTHONPATH={paths.import_dir()} exec {sys.executable} -P -m moscope "$@"\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("called", ["moscope", "./bin/moscope"])
@pytest.mark.parametrize("shell, ask", [
    ("bash", "source {script}; COMP_WORDS=({called} run --kern); COMP_CWORD=2; _moscope_completion {called}; echo ${{COMPREPLY[@]}}"),
    ("fish", "source {script}; complete -C '{called} run --kern'"),
])
def test_the_script_completes_in_its_shell(shell: str, ask: str, called: str, program: Path, tmp_path: Path) -> None:
    if not shutil.which(shell):
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(completion.script(shell))
    env = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    got = subprocess.run([shell, "-c", ask.format(script=script, called=called)], env=env, cwd=tmp_path, capture_output=True, text=True,
                         check=True)
    assert got.stdout.split()[0] == "--kernel"


def test_install_completion_puts_the_script_where_the_shell_reads_it(tmp_path: Path) -> None:
    got = subprocess.run([sys.executable, "-P", "-m", "moscope", "--install-completion", "bash"], env=environment(HOME=str(tmp_path)),
                         capture_output=True, text=True, check=True)
    [script] = (tmp_path / ".bash_completions").iterdir()
    assert str(script) in got.stderr and str(script) in (tmp_path / ".bashrc").read_text()
    assert script.read_text() == completion.script("bash") + "\n"


def test_an_unknown_shell_is_a_user_error(moscope: Moscope) -> None:
    got = moscope("--show-completion", "fsh")
    assert got.returncode == 2 and "expected a known name, such as fish" in got.stderr
