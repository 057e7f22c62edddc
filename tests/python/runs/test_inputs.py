# SPDX-License-Identifier: BSD-3-Clause
"""What a point is made from: each part has a digest of its own, and a changed file is noticed under an unchanged command line."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from moscope import workloads
from moscope.cli import Shared
from moscope.config import Count, load_machine
from moscope.config.machine import replace as with_other
from moscope.errors import UserError
from moscope.guest import initramfs, kernel, packages, rootimage
from moscope.runs import inputs, job, options
from moscope.runs import point as measured
from moscope.runs.options import Plan, Point

MakePlan = Callable[..., Plan]
MACHINE = ("from moscope.config import Count, replace\nfrom small import machine as small\n"
           "machine = replace(small, outstanding_misses=Count({}))\n")

LINUX = "\x7fELF Linux version 6.1.0 "  # what an ELF kernel of Linux is known by


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """A kernel, a protocol's library and a program that can be changed, and an initial file system of the program alone."""
    found = {name: tmp_path / name for name in ("vmlinuz", "library.so", "program")}
    for name, path in found.items():
        path.write_text(name)
    found["vmlinuz"].write_text(LINUX + "vmlinuz")
    detailed = inputs.engine.detailed

    def build(chosen: kernel.Kernel, say: Any, extra: dict[str, Path]) -> initramfs.Initramfs:
        return initramfs.Initramfs(extra["program"], packages.digest_of(extra["program"]))

    monkeypatch.setattr(inputs.initramfs, "build", build)
    monkeypatch.setattr(inputs.engine, "detailed", lambda machine, say: {**detailed(machine, say), "library": str(found["library.so"])})
    return found


def digests(files: dict[str, Path], point: Point, machine: str = "small") -> dict[str, str]:
    gatherer = inputs.Gatherer(load_machine(machine), {"program": files["program"]}, print)
    return gatherer.of(replace(point, kernel=str(files["vmlinuz"]))).digests()


@pytest.mark.parametrize(("file", "what"), [("vmlinuz", "kernel"), ("library.so", "protocol"), ("program", "programs")])
def test_a_file_that_is_made_again_changes_its_digest_and_no_other(files: dict[str, Path], point: Point, file: str, what: str) -> None:
    before = digests(files, point)
    assert digests(files, point) == before and before.keys() == inputs.WORDS.keys() - {"engine"}
    files[file].write_text(LINUX + "made again")
    after = digests(files, point)
    assert {k for k in after if after[k] != before[k]} == {what}


def test_a_file_that_is_not_a_linux_kernel_is_refused_before_a_point_starts(files: dict[str, Path], point: Point) -> None:
    for content in (b"text", Path("/bin/true").read_bytes()):
        files["vmlinuz"].write_bytes(content)
        with pytest.raises(UserError) as error:
            digests(files, point)
        assert str(error.value) == f"--kernel: {files['vmlinuz']}: is not a Linux kernel: expected a bzImage or an ELF vmlinux"


def test_an_edited_machine_file_changes_the_machines_digest(files: dict[str, Path], point: Point, tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(MACHINE.format(8))
    before = digests(files, point, str(mine))
    mine.write_text(MACHINE.format(4))
    after = digests(files, point, str(mine))
    assert {k for k in after if after[k] != before[k]} == {"machine"}
    mine.write_text(MACHINE.format(8) + "# a remark\n")
    assert digests(files, point, str(mine)) == before


def test_points_of_two_kernels_and_two_memories_are_told_apart(files: dict[str, Path], point: Point, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_text(LINUX + "another kernel")
    gatherer = inputs.Gatherer(load_machine("small"), {"program": files["program"]}, print)
    one, two, three = (gatherer.of(replace(point, kernel=str(k), memory_per_node=m)).digests()
                       for k, m in ((files["vmlinuz"], "512MiB"), (other, "512MiB"), (files["vmlinuz"], "256MiB")))
    assert one["kernel"] != two["kernel"] and one["machine"] == two["machine"] != three["machine"]


def test_a_point_is_not_measured_with_what_changed_since_the_run_began(files: dict[str, Path], plan: MakePlan) -> None:
    made = plan(2)
    gathered = inputs.Gatherer(made.machine, {"program": files["program"]}, print).of(replace(made.points[0], kernel=str(files["vmlinuz"])))
    wanted = job.job(made, made.points[0], Path("somewhere"), gathered.digests())
    assert measured.checked(wanted, gathered) == gathered.digests() == measured.checked(replace(wanted, inputs=None), gathered)
    files["library.so"].write_text("made again")
    with pytest.raises(UserError, match=r"inputs have changed since it began \(another protocol\): expected the same command again"):
        measured.checked(wanted, gathered)
    machine = with_other(made.machine, outstanding_misses=Count(1))
    assert "another description of the machine" in inputs.differences(wanted.inputs or {}, inputs.Inputs(
        machine, gathered.kernel, gathered.image, inputs.engine.detailed(machine, print)).digests())


def test_a_point_boots_from_the_root_image_that_its_script_completed(
        files: dict[str, Path], point: Point, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rootimage, "find", lambda say, included, script: rootimage.RootImage(Path(script), "-".join((*included, script))))
    gatherer = inputs.Gatherer(load_machine("small"), {"program": files["program"]}, print)
    wanted = replace(point, kernel=str(files["vmlinuz"]), packages="one,two")
    disks = [gatherer.of(one).disk for one in (wanted, replace(wanted, image="made"), replace(wanted, packages=None))]
    assert [disk and disk.sha256 for disk in disks] == ["one-two-", "one-two-made", None]


def test_a_card_that_chooses_queues_by_port_gives_a_services_first_port_to_the_first_core(shared: Shared) -> None:
    def nic(name: str, *sets: str) -> dict[str, Any]:
        made = options.make(replace(shared, sets=list(sets)), options.Options(workload=name, cores="2"), build=False)
        found = inputs.Gatherer(made.machine, {}, print)._nic(made.machine, made.points[0])
        assert found is not None
        return found

    served = [w for w in workloads.every() if w.steering == "fixed-port" and w.launcher]
    assert {w.name for w in served} >= {"apache", "memcached"}
    for work in served:
        assert f"--port {nic(work.name)['first_port']} " in work.command(2)
    assert nic("apache", "nic.first_port=8001")["first_port"] == 8001
    assert nic("apache", "nic.steering=rss")["first_port"] == nic("apache-one")["first_port"] == 11211


def test_a_machine_files_steering_and_first_port_precede_those_of_the_workload(shared: Shared, tmp_path: Path) -> None:
    def nic(given: str) -> tuple[str, int]:
        path = tmp_path / "mine.py"
        path.write_text("from opteron48 import machine as base\nfrom moscope.config import *\n"
                        f"machine = replace(base, nic=replace(base.nic, {given}))\n")
        made = options.make(replace(shared, machine=str(path)), options.Options(workload="memcached", cores="2"), build=False)
        found = inputs.Gatherer(made.machine, {}, print)._nic(made.machine, made.points[0])
        assert found is not None
        return found["steering"], found["first_port"]

    port = workloads.find("memcached").first_port
    assert nic("queues=Count(2)") == ("fixed-port", port)
    assert nic("first_port=Count(8001)") == ("fixed-port", 8001)
    assert nic("steering='rss'") == ("rss", 11211)
    assert nic("steering='pin-every-20', first_port=Count(8001)") == ("pin-every-20", 8001)


@pytest.mark.parametrize("chips", [2, 4])
def test_requests_of_a_guest_on_slow_links_may_take_as_long_as_their_steps(chips: int) -> None:
    usual = inputs.engine.detailed(load_machine("small"), print)["watchdog_fs"]
    topology = f"topology={'0-1' if chips == 2 else '0-1 1-2 2-3'}"
    slow = load_machine("small", ["links.latency=1ms", f"chips={chips}", topology])
    assert usual == 10**12  # 1 ms
    assert inputs.engine.detailed(slow, print)["watchdog_fs"] > 2 * (chips - 1) * slow.links.latency.fs
