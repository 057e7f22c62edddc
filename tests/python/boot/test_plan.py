# SPDX-License-Identifier: BSD-3-Clause
"""Options that cannot be, each refused before anything runs; what a checkpoint brings along."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moscope import cli, jsonio
from moscope.boot import engine, plan
from moscope.cli import Shared
from moscope.config import load_machine
from moscope.config.load import configs_dir
from moscope.errors import UserError
from moscope.guest import packages
from moscope.schema.units import Size

SHARED = Shared()


def refusal(tmp_path: Path, shared: Shared = SHARED, **given: Any) -> str:
    with pytest.raises(UserError) as caught:
        plan.make(replace(shared, out=tmp_path / "out"), plan.Options(**given))
    return str(caught.value)


def test_only_a_linux_kernel_is_said_to_lack_modules(tmp_path: Path, image: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = replace(SHARED, out=tmp_path / "out"), plan.Options(kernel=str(image))
    assert plan.make(*wanted).remarks == [], "a file of another kind"
    monkeypatch.setattr(plan.kernel, "release_of", lambda path: "6.1.0-mine")
    assert plan.make(*wanted).remarks == [f"no modules of {image} were found: the kernel must have all drivers of the guest built in"]


def test_more_chips_than_guests_run_on_are_refused_by_the_option_that_gives_them(tmp_path: Path) -> None:
    shared = replace(SHARED, machine="small", sets=["chips=16", "topology=ring"])
    assert refusal(tmp_path, shared) == "--set chips=16: chips: 16: expected 1 to 8 on a machine that runs guests"


def test_an_impossible_value_is_refused_under_the_name_of_its_option(tmp_path: Path, image: Path) -> None:
    kernel = str(image)
    assert refusal(tmp_path, kernel=kernel, cores=49) == "--cores: 49: expected 1 to 48 for opteron48"
    assert refusal(tmp_path, kernel=kernel, cores=0).startswith("--cores: 0: expected 1 to 48")
    assert refusal(tmp_path, kernel=kernel, memory_per_node="1GB").startswith("--memory-per-node: ")
    assert refusal(tmp_path, kernel=kernel, disk=tmp_path / "no").startswith(f"--disk: {tmp_path / 'no'}: No such file")
    assert refusal(tmp_path, kernel=kernel, disk=tmp_path).endswith(": is a folder: expected a readable file")
    assert refusal(tmp_path, kernel=kernel, script=image, initrd=image).startswith("--script: ")
    assert refusal(tmp_path, kernel=kernel, packages=("ethtool",), initrd=image).startswith("--with: ")
    assert refusal(tmp_path, kernel=kernel, packages=("Not A Package",)).startswith("--with: Not A Package: ")
    assert refusal(tmp_path, kernel=kernel, checkpoint_at="").startswith("--checkpoint-at: ")
    assert refusal(tmp_path, kernel=kernel, checkpoint_at="\udcff") == "--checkpoint-at: \udcff: is not valid UTF-8: expected UTF-8"
    assert refusal(tmp_path, kernel=kernel, append="a=\udce4").startswith("--append: console=ttyS0 a=\udce4: is not valid UTF-8")
    assert refusal(tmp_path, kernel="distrp").startswith("--kernel: no kernel called")
    assert refusal(tmp_path, kernel="").startswith('--kernel: no kernel called ""')


@pytest.mark.parametrize("option", ["kernel", "initrd", "disk", "script", "resume"])
def test_a_device_and_a_pipe_are_refused_by_their_option(tmp_path: Path, image: Path, option: str) -> None:
    name = "--from" if option == "resume" else f"--{option}"
    kind = str if option == "kernel" else Path
    given = {} if option == "resume" else {"kernel": str(image)}
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path, **given | {option: kind("/dev/zero")}).startswith(f"{name}: /dev/zero: is a device: expected a ")
    assert refusal(tmp_path, **given | {option: kind(tmp_path / "pipe")}).startswith(f"{name}: {tmp_path / 'pipe'}: is a pipe: expected a ")


def test_results_are_not_put_among_other_files(tmp_path: Path, image: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine").touch()
    assert "holds files that moscope did not write" in refusal(tmp_path, kernel=str(image))


def test_a_file_that_the_results_would_replace_is_refused(tmp_path: Path, image: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / jsonio.MARK).touch()
    (out / "machine.ckpt").touch()
    assert refusal(tmp_path, resume=out / "machine.ckpt").startswith(f"--from: {out / 'machine.ckpt'}: lies in the folder {out}, which ")
    assert refusal(tmp_path, kernel=str(image), pcap=out / "frames.pcap").startswith(f"--pcap: {out / 'frames.pcap'}: lies in the folder")
    assert not (out / "frames.pcap").exists()
    (out / "bzImage").write_bytes(image.read_bytes())
    assert refusal(tmp_path, kernel=str(out / "bzImage")).startswith(f"--kernel: {out / 'bzImage'}: lies in the folder {out}, which ")
    (out / "mine.py").write_bytes((configs_dir() / "opteron48.py").read_bytes())
    own = Shared(machine=str(out / "mine.py"))
    assert refusal(tmp_path, own, kernel=str(image)).startswith(f"--machine: {out / 'mine.py'}: lies in the folder {out}, which ")


def test_a_network_card_parameter_needs_a_network_card(tmp_path: Path, image: Path, checkpoint: Path) -> None:
    lossy = Shared(sets=["nic.lost=500000"])
    says = "--set nic.lost=500000: the machine has no network card: expected "
    assert refusal(tmp_path, lossy, kernel=str(image)) == says + "--net, or no nic.*"
    assert refusal(tmp_path, lossy, resume=checkpoint) == says + "a checkpoint of a boot with --net, or no nic.*"
    wanted = plan.make(replace(lossy, out=tmp_path / "out"), plan.Options(kernel=str(image), net=True))
    assert wanted.config["nic"]["lost"] == 500000


def test_a_capture_does_not_replace_an_input(tmp_path: Path, image: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = json.loads(engine.checkpoint_config(checkpoint)) | {"nic": {}}
    monkeypatch.setattr(engine, "checkpoint_config", lambda _: json.dumps(config))
    (tmp_path / "link").symlink_to(image)
    disk = tmp_path / "disk"
    before = image.read_bytes(), disk.read_bytes()
    for pcap, name, given in ((image, "--kernel", {"kernel": str(image)}), (tmp_path / "link", "--kernel", {"kernel": str(image)}),
                              (disk, "--disk", {"kernel": str(image), "disk": disk}), (checkpoint, "--from", {"resume": checkpoint}),
                              (disk, "the checkpoint's disk", {"resume": checkpoint})):
        says = f"--pcap: {pcap}: is the file of {name}, which the capture would replace: expected another file"
        assert refusal(tmp_path, pcap=pcap, **given) == says
    assert (image.read_bytes(), disk.read_bytes()) == before


def test_ready_stands_for_the_line_that_init_prints(tmp_path: Path, image: Path) -> None:
    made = plan.make(Shared(out=tmp_path / "out"), plan.Options(kernel=str(image), checkpoint_at="ready"))
    assert made.checkpoint_at == "moscope: ready" and "moscope: ready" in made.config["markers"]


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkpoint of a machine with a disk."""
    disk = tmp_path / "disk"
    disk.write_bytes(b"root")
    machine = replace(load_machine("opteron48"), memory_per_node=Size("256MiB", "x"))
    config = {**plan.platform(machine), "cores": 6, "seed": 7, "info": {
        "machine": "opteron48", "append": "a", "kernel": {}, "checkpoint_at": "moscope# ",
        "disk": {"file": str(disk), "sha256": packages.digest_of(disk)}}}
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
    assert said == f"{checkpoint}: the checkpoint determines --append, --cores: expected none of these options"
    assert refusal(tmp_path, resume=checkpoint, cores=6) == f"{checkpoint}: the checkpoint determines --cores: expected no --cores"


@pytest.mark.parametrize("shared", [
    Shared(seed=7, given=frozenset({"seed"})),
    Shared(given=frozenset({"machine"})),
    Shared(sets=["dram.channels=1"]),  # which no boot depends on
    Shared(sets=["memory_per_node=256MiB"]),
    Shared(),
], ids=["seed", "machine", "protocol", "memory", "nothing"])
def test_seed_and_machine_of_a_checkpoint_may_be_said_again(tmp_path: Path, checkpoint: Path, shared: Shared) -> None:
    made = plan.make(replace(shared, out=tmp_path / "out"), plan.Options(resume=checkpoint))
    assert made.config["seed"] == 7 and made.config["memory_per_node"] == 256 << 20


def test_another_seed_or_machine_beside_a_checkpoint_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    # 1 is the default, but here the user has asked for it.
    said = refusal(tmp_path, Shared(seed=1, given=frozenset({"seed"})), resume=checkpoint)
    assert said == f"--seed: 1: {checkpoint} continues with its own seed, 7: expected that seed, or no --seed"
    said = refusal(tmp_path, Shared(machine="opteron48_straight", given=frozenset({"machine"})), resume=checkpoint)
    assert said.startswith(f"--machine opteron48_straight: {checkpoint} is from another machine, opteron48 (differs: hops)")
    # Nothing that a boot depends on differs, but the results would name a machine that the user did not mean.
    renamed = tmp_path / "mine.py"
    renamed.write_text((configs_dir() / "opteron48.py").read_text().replace('name="opteron48"', 'name="mine"'))
    said = refusal(tmp_path, Shared(machine=str(renamed), given=frozenset({"machine"})), resume=checkpoint)
    assert "is from another machine, opteron48: " in said
    said = refusal(tmp_path, Shared(sets=["topology=straight_ladder"]), resume=checkpoint)
    assert said.startswith("--set topology=straight_ladder: ") and "(differs: hops)" in said
    assert "(differs: memory_per_node)" in refusal(tmp_path, Shared(sets=["memory_per_node=1GiB"]), resume=checkpoint)


def test_the_command_line_tells_a_seed_that_was_given_from_the_default(tmp_path: Path, checkpoint: Path,
                                                                       capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["boot", "--from", str(checkpoint), "--seed", "1", "--out", str(tmp_path / "out")]) == 2
    assert capfd.readouterr().err.startswith("--seed: 1: ")


def test_a_checkpoint_of_a_resumed_run_remembers_its_own_marker(tmp_path: Path, checkpoint: Path) -> None:
    made = plan.make(Shared(out=tmp_path / "out"), plan.Options(resume=checkpoint, checkpoint_at="ready"))
    assert made.at_prompt and made.config["info"]["checkpoint_at"] == "moscope: ready"


@pytest.mark.parametrize("prompts", [True, False])
def test_a_checkpoint_remembers_whether_its_guest_prompts(tmp_path: Path, checkpoint: Path, monkeypatch: pytest.MonkeyPatch,
                                                          prompts: bool) -> None:
    config = json.loads(engine.checkpoint_config(checkpoint))
    config["info"]["prompts"] = prompts
    monkeypatch.setattr(engine, "checkpoint_config", lambda path: json.dumps(config))
    made = plan.make(Shared(out=tmp_path / "out"), plan.Options(resume=checkpoint))
    assert made.prompts == prompts == made.config["info"]["prompts"], "and so does one of the resumed run"


def test_a_script_is_refused_where_the_checkpoints_machine_runs_one(tmp_path: Path, checkpoint: Path,
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    config = json.loads(engine.checkpoint_config(checkpoint))
    config["info"]["script"] = True
    monkeypatch.setattr(engine, "checkpoint_config", lambda _: json.dumps(config))
    script = tmp_path / "job.sh"
    script.write_text("echo hello\n")
    assert "is from a boot with a script, so no shell is waiting" in refusal(tmp_path, resume=checkpoint, script=script)


def test_a_disk_that_is_gone_or_changed_since_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    disk = tmp_path / "disk"
    copy = tmp_path / "copy"
    copy.write_bytes(disk.read_bytes())
    disk.write_bytes(b"else")
    assert refusal(tmp_path, resume=checkpoint).startswith(f"{disk}: has changed since")
    disk.unlink()
    assert "which is gone" in refusal(tmp_path, resume=checkpoint)
    made = plan.make(Shared(out=tmp_path / "out"), plan.Options(resume=checkpoint, disk=copy))
    assert made.config["disk"] == str(copy)


def test_a_disk_of_a_checkpoint_that_the_results_would_replace_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    out.mkdir()
    (out / jsonio.MARK).touch()
    disk.rename(out / "disk")
    disk.symlink_to(out / "disk")
    assert f"{disk}: lies in the folder {out}, which the results of this run will replace" in refusal(tmp_path, resume=checkpoint)
