# SPDX-License-Identifier: BSD-3-Clause
"""The virtio disk and entropy devices under Linux's own drivers, by message and by wire, and over a checkpoint."""

import hashlib
import random
from pathlib import Path
from typing import Any

import pytest
from conftest import in_order
from table import GUEST

from moscope.boot import plan, result, run
from moscope.cli import Shared
from moscope.guest import kernel

SECTORS = 4001


def image(folder: Path) -> tuple[Path, bytes]:
    content = random.Random(7).randbytes(512 * SECTORS)
    path = folder / "disk.img"
    path.write_bytes(content)
    return path, content


def after_writes(content: bytes) -> bytes:
    """What guest/disk.sh leaves."""
    disk = bytearray(content)
    disk[77000:377000] = bytes(300000)
    disk[200 * 4096:250 * 4096] = disk[10 * 4096:60 * 4096]
    return bytes(disk)


def booted(out: Path, **options: Any) -> tuple[dict[str, Any], str]:
    planned = plan.make(Shared(out=out, json=True), plan.Options(**options))
    outcome, document, log = run.run(planned)
    assert result.exit_code(planned, outcome) == 0, log[-3000:].decode(errors="replace")
    return document, log.decode(errors="replace")


@pytest.mark.parametrize("append, messages, wires", [
    pytest.param("", 4, 0, id="messages"),
    pytest.param("pci=nomsi", 0, 2, id="wires", marks=pytest.mark.long),
])
def test_the_disk_reads_and_writes_and_its_file_stays(append: str, messages: int, wires: int, distro: kernel.Kernel,
                                                      tmp_path: Path) -> None:
    path, content = image(tmp_path)
    _, console = booted(tmp_path / "out", cores=1, memory_per_node="256MiB", disk=path, append=append,
                        script=GUEST / "disk.sh")
    assert not in_order(console, (
        f"sectors {SECTORS}", f"read {hashlib.md5(content).hexdigest()}",
        f"written {hashlib.md5(after_writes(content)).hexdigest()}", "entropy 256",
        f"messages {messages}", f"wires {wires}", "end",
    ))
    assert path.read_bytes() == content


@pytest.mark.long
def test_pages_written_to_the_disk_are_in_a_checkpoint(distro: kernel.Kernel, tmp_path: Path) -> None:
    path, content = image(tmp_path)
    whole, console = booted(tmp_path / "whole", cores=2, memory_per_node="256MiB", disk=path, script=GUEST / "disk.sh",
                            checkpoint_at=f"read {hashlib.md5(content).hexdigest()}")
    rest, tail = booted(tmp_path / "rest", disk=path, resume=Path(whole["checkpoint"]))
    assert console.endswith(tail)
    assert not in_order(tail, (f"written {hashlib.md5(after_writes(content)).hexdigest()}", "end"))
    assert rest["instructions_per_core"] == whole["instructions_per_core"]
