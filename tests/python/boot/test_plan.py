# SPDX-License-Identifier: BSD-3-Clause
"""Options that cannot be, each refused before anything runs; what a checkpoint brings along."""

import json
from pathlib import Path
from typing import Any

import pytest

from moscope.boot import engine, plan
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.guest import packages


def refusal(tmp_path: Path, **given: Any) -> str:
    with pytest.raises(UserError) as caught:
        plan.make(Shared(out=tmp_path / "out"), plan.Options(**given))
    return str(caught.value)


def test_what_cannot_be_is_refused_by_its_option(tmp_path: Path, image: Path) -> None:
    kernel = str(image)
    assert refusal(tmp_path, kernel=kernel, cores=49) == "--cores: 49: 1 to 48 would be right for opteron48"
    assert refusal(tmp_path, kernel=kernel, cores=0).startswith("--cores: 0: 1 to 48")
    assert refusal(tmp_path, kernel=kernel, memory_per_node="1GB").startswith("--memory-per-node: ")
    assert refusal(tmp_path, kernel=kernel, disk=tmp_path / "no").startswith(f"--disk: {tmp_path / 'no'}: No such file")
    assert refusal(tmp_path, kernel=kernel, disk=tmp_path).endswith("is a folder: a file would be right")
    assert refusal(tmp_path, kernel=kernel, script=image, initrd=image).startswith("--script: ")
    assert refusal(tmp_path, kernel=kernel, checkpoint_at="").startswith("--checkpoint-at: ")
    assert refusal(tmp_path, kernel="distrp").startswith("--kernel: no kernel called")


def test_results_are_not_put_among_other_files(tmp_path: Path, image: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").touch()
    assert "holds files that are no results" in refusal(tmp_path, kernel=str(image))


def test_ready_stands_for_the_line_that_init_prints(tmp_path: Path, image: Path) -> None:
    made = plan.make(Shared(out=tmp_path / "out"), plan.Options(kernel=str(image), checkpoint_at="ready"))
    assert made.checkpoint_at == "moscope: ready" and "moscope: ready" in made.config["markers"]


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint of a machine with a disk."""
    disk = tmp_path / "disk"
    disk.write_bytes(b"root")
    config = {"chips": 8, "cores": 6, "info": {"append": "a", "kernel": {}, "checkpoint_at": "moscope# ", "disk": {
        "file": str(disk), "sha256": packages.digest_of(disk)}}}
    monkeypatch.setattr(engine, "checkpoint_config", lambda path: json.dumps(config))
    path = tmp_path / "m.ckpt"
    path.touch()
    return path


def test_a_checkpoint_brings_its_machine(tmp_path: Path, checkpoint: Path) -> None:
    made = plan.make(Shared(out=tmp_path / "out"), plan.Options(resume=checkpoint))
    assert made.config["cores"] == 6 and made.config["restore"] and made.resume == checkpoint
    assert made.at_prompt
    assert made.config["disk"] == str(tmp_path / "disk")
    said = refusal(tmp_path, resume=checkpoint, cores=6, append="x")
    assert said == f"{checkpoint}: a checkpoint has its own --append, --cores: leaving them out would be right"


def test_a_disk_that_is_gone_or_changed_since_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    disk = tmp_path / "disk"
    copy = tmp_path / "copy"
    copy.write_bytes(disk.read_bytes())
    disk.write_bytes(b"else")
    assert refusal(tmp_path, resume=checkpoint).startswith(f"{disk}: is not what it was")
    disk.unlink()
    assert "which is gone" in refusal(tmp_path, resume=checkpoint)
    made = plan.make(Shared(out=tmp_path / "out"), plan.Options(resume=checkpoint, disk=copy))
    assert made.config["disk"] == str(copy)
