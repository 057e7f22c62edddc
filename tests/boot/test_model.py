# SPDX-License-Identifier: BSD-3-Clause
"""Linux on the model: the boots of table.py, through the command that people use."""

import json
import os
import pty
import select
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import chosen, in_order
from findings import Expected, Findings, faults
from table import BOOTS, Boot

from moscope import jsonio
from moscope.boot import engine, plan, result, run
from moscope.cli import Shared
from moscope.config import Machine
from moscope.guest import kernel, rootimage
from moscope.schema.units import Size


def booted(boot: Boot, out: Path, programs: dict[str, Path], **changes: Any) -> tuple[dict[str, Any], str]:
    """Document and console of a boot."""
    disk = rootimage.find(print).path if boot.needs_root else None
    options = plan.Options(cores=boot.cores, memory_per_node=boot.memory_per_node, script=boot.script_path, disk=disk,
                           programs=chosen(boot, programs))
    planned = plan.make(Shared(out=out, json=True), replace(options, **changes))
    outcome, document, log = run.run(planned)
    assert result.exit_code(planned, outcome) == 0, (outcome, log[-3000:].decode(errors="replace"))
    return document, log.decode(errors="replace")


@pytest.mark.parametrize("boot", [pytest.param(b, id=b.name, marks=[pytest.mark.long] if b.long else []) for b in BOOTS])
def test_a_boot_shows_its_texts_and_powers_off(boot: Boot, opteron48: Machine, distro: kernel.Kernel, programs: dict[str, Path],
                                               tmp_path: Path) -> None:
    document, console = booted(boot, tmp_path / "out", programs)
    jsonio.validate(document)
    assert document["ended"] == "poweroff" and document["script_status"] == 0
    assert document["kernel"]["sha256"] == distro.sha256
    assert not in_order(console, boot.shows)
    expected = Expected(opteron48, boot.cores, Size(boot.memory_per_node).bytes)
    assert not faults(list(boot.checks), Findings.of(console), expected)


def named(name: str) -> Boot:
    return next(b for b in BOOTS if b.name == name)


@pytest.fixture(scope="module")
def computed(distro: kernel.Kernel, programs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], str]:
    """Document and console of the boot `compute` on two cores."""
    return booted(named("compute"), tmp_path_factory.mktemp("computed") / "out", programs, cores=2)


def test_two_runs_are_equal_to_the_byte_and_the_instruction(computed: tuple[dict[str, Any], str], programs: dict[str, Path],
                                                            tmp_path: Path) -> None:
    first, second = computed, booted(named("compute"), tmp_path / "again", programs, cores=2)
    assert first[1] == second[1] and not in_order(first[1], named("compute").shows)
    assert first[0]["instructions_per_core"] == second[0]["instructions_per_core"]


def test_a_run_from_a_checkpoint_equals_the_one_that_went_on(computed: tuple[dict[str, Any], str], programs: dict[str, Path],
                                                             tmp_path: Path) -> None:
    """Taking a checkpoint, once or several times, does not change the run."""
    whole, console = computed
    first, same = booted(named("compute"), tmp_path / "first", programs, cores=2, checkpoint_at="ready")
    assert same == console and first["instructions_per_core"] == whole["instructions_per_core"]
    checkpoint = Path(first["checkpoint"])
    for name, marker in (("second", "gzip right"), ("rest", None)):
        options = plan.Options(resume=checkpoint, checkpoint_at=marker)
        outcome, rest, log = run.run(plan.make(Shared(out=tmp_path / name, json=True), options))
        assert outcome.ended == "poweroff" and log and console.endswith(log.decode(errors="replace"))
        assert rest["instructions_per_core"] == whole["instructions_per_core"]
        assert rest["kernel"] == whole["kernel"]
        assert json.loads((tmp_path / name / "boot.json").read_text()) == rest
        checkpoint = tmp_path / name / "machine.ckpt"
    # Each remembers the marker that it was taken at.
    texts = [engine.checkpoint_config(tmp_path / name / "machine.ckpt") for name in ("first", "second")]
    assert [json.loads(text)["info"]["checkpoint_at"] for text in texts] == ["moscope: ready", "gzip right"]


def test_a_kernel_without_a_root_panics_and_says_so(distro: kernel.Kernel, tmp_path: Path) -> None:
    empty = tmp_path / "initrd"
    empty.write_bytes(bytes(512))
    options = plan.Options(cores=1, memory_per_node="256MiB", initrd=empty)
    planned = plan.make(Shared(out=tmp_path / "out", json=True), options)
    outcome, document, log = run.run(planned)
    assert outcome.ended == "panic" and result.exit_code(planned, outcome) == 4
    assert b"Kernel panic - not syncing" in log and Path(document["registers"]).read_text()


@pytest.mark.long
def test_a_machine_larger_than_the_host_takes_host_memory_only_for_pages_that_it_touches(distro: kernel.Kernel, moscope: Any) -> None:
    """64 GB configured; host memory is that of the guest's pages, 15 % and the program itself."""
    got = moscope("boot", "--json", "--memory-per-node", "8GiB", "--script", str(named("compute").script_path), timeout=1200)
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    program = 150 << 20  # 37 MiB before the guest runs; the rest is for the code that it runs, decoded
    assert document["nodes"] * document["memory_per_node"] == 64 << 30
    assert document["host_bytes"] < document["touched_bytes"] * 1.15 + program


def test_a_person_at_a_terminal_gets_a_shell_that_ctrl_c_and_the_escape_work_in(distro: kernel.Kernel, tmp_path: Path,
                                                                               root: Path) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(tmp_path)
        os.environ["PYTHONPATH"] = str(root / "src" / "python")
        arguments = ["boot", "--cores", "1", "--memory-per-node", "256MiB", "--checkpoint-at", "shell", "--out", "out"]
        os.execv(sys.executable, [sys.executable, "-P", "-m", "moscope", *arguments])
    seen = b""

    def wait_for(text: bytes) -> None:
        nonlocal seen
        until = time.monotonic() + 300
        while text not in seen:
            assert time.monotonic() < until, seen[-2000:]
            if select.select([terminal], [], [], 1)[0]:
                seen += os.read(terminal, 4096)
        seen = seen.split(text, 1)[1]

    try:
        wait_for(b"moscope# ")
        os.write(terminal, b"sleep 1000000\r")
        wait_for(b"sleep 1000000")
        time.sleep(1)
        os.write(terminal, b"\x03")
        wait_for(b"moscope# ")
        os.write(terminal, b"echo $((6 * 7))x\r")
        wait_for(b"42x")
        os.write(terminal, b"\x1dq")
        wait_for(b"results in")
        status = os.waitpid(pid, 0)[1]
    finally:
        os.close(terminal)  # which ends a child that is still there
    assert os.waitstatus_to_exitcode(status) == 0
    document = json.loads((tmp_path / "out/boot.json").read_text())
    assert document["ended"] == "quit" and (tmp_path / "out/machine.ckpt").is_file()

    # A script for a machine whose initial file system is fixed is typed into the waiting shell.
    script = tmp_path / "script"
    script.write_text("echo from here; exit 3\n")
    planned = plan.make(Shared(out=tmp_path / "rest", json=True), plan.Options(resume=tmp_path / "out/machine.ckpt", script=script))
    outcome, document, log = run.run(planned)
    assert document["script_status"] == 3 and b"\nfrom here\r\n" in log.replace(b"moscope# ", b"\n")
    assert outcome.ended == "poweroff" and result.exit_code(planned, outcome) == 1
