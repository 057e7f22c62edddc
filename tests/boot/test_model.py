# SPDX-License-Identifier: BSD-3-Clause
"""Linux on the model: the boots of table.py, through the command that people use."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import chosen, in_order
from findings import Expected, Findings, faults
from table import BOOTS, Boot

from moscope import jsonio
from moscope.boot import plan, result, run
from moscope.cli import Shared
from moscope.config import Machine
from moscope.config.units import Size
from moscope.guest import kernel, rootimage


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
def test_a_boot_of_the_table(boot: Boot, opteron48: Machine, distro: kernel.Kernel, programs: dict[str, Path],
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


def test_two_runs_are_equal_to_the_byte_and_the_instruction(distro: kernel.Kernel, programs: dict[str, Path],
                                                            tmp_path: Path) -> None:
    first, second = (booted(named("compute"), tmp_path / n, programs, cores=2) for n in ("a", "b"))
    assert first[1] == second[1] and not in_order(first[1], named("compute").shows)
    assert first[0]["instructions_per_core"] == second[0]["instructions_per_core"]


def test_a_run_from_a_checkpoint_equals_the_one_that_went_on(distro: kernel.Kernel, programs: dict[str, Path],
                                                             tmp_path: Path) -> None:
    whole, console = booted(named("compute"), tmp_path / "whole", programs, cores=2, checkpoint_at="ready")
    planned = plan.make(Shared(out=tmp_path / "rest", json=True), plan.Options(resume=Path(whole["checkpoint"])))
    outcome, rest, log = run.run(planned)
    assert outcome.ended == "poweroff" and console.endswith(log.decode(errors="replace"))
    assert rest["instructions_per_core"] == whole["instructions_per_core"]
    assert rest["kernel"] == whole["kernel"]
    assert json.loads((tmp_path / "rest/boot.json").read_text()) == rest


def test_a_kernel_without_a_root_panics_and_says_so(distro: kernel.Kernel, tmp_path: Path) -> None:
    empty = tmp_path / "initrd"
    empty.write_bytes(bytes(512))
    options = plan.Options(cores=1, memory_per_node="256MiB", initrd=empty)
    planned = plan.make(Shared(out=tmp_path / "out", json=True), options)
    outcome, document, log = run.run(planned)
    assert outcome.ended == "panic" and result.exit_code(planned, outcome) == 4
    assert b"Kernel panic - not syncing" in log and Path(document["registers"]).read_text()
