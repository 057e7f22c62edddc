# SPDX-License-Identifier: BSD-3-Clause
"""The initial file system and the checks themselves, on QEMU: what passes there is asked of the model by
test_model.py. Skipped where QEMU is not installed."""

import shutil
from pathlib import Path

import pytest
from conftest import chosen, in_order
from findings import ANYWHERE, Expected, Findings, faults, healthy_log
from table import BOOTS, Boot

from moscope.boot.plan import COMMAND_LINE
from moscope.config import Machine
from moscope.guest import initramfs, kernel, qemu, rootimage
from moscope.schema.units import Size

pytestmark = pytest.mark.skipif(shutil.which(qemu.PROGRAM) is None, reason="QEMU is not installed")
QUICK = ("linux on 6", "litmus", "compute")


def node_cores(machine: Machine, cores: int) -> list[int]:
    per_chip = int(machine.cores_per_chip)
    return [max(0, min(per_chip, cores - per_chip * node)) for node in range(int(machine.chips))]


def run(boot: Boot, machine: Machine, distro: kernel.Kernel, programs: dict[str, Path]) -> qemu.Finished:
    built = initramfs.build(distro, print, boot.script_path, chosen(boot, programs))
    distances = [[10 + 6 * h for h in row] for row in machine.hops()]
    disk = rootimage.find(print).path if boot.needs_root else None
    # The test checks how much memory each node lacks, so the kernel has to lie on node 0; otherwise its place would be random in each boot.
    guest = qemu.Guest(distro.image, built.path, f"{COMMAND_LINE} nokaslr", node_cores(machine, boot.cores), distances,
                       Size(boot.memory_per_node).bytes, disk)
    return qemu.run(guest, boot.timeout_s)


@pytest.mark.parametrize("boot", [pytest.param(b, id=b.name, marks=[] if b.name in QUICK else [pytest.mark.long])
                                  for b in BOOTS])
def test_a_boot_on_qemu_shows_what_the_model_has_to_show(boot: Boot, opteron48: Machine, distro: kernel.Kernel,
                                                         programs: dict[str, Path]) -> None:
    finished = run(boot, opteron48, distro, programs)
    assert finished.status == 0, finished.console[-3000:]
    assert not in_order(finished.console, boot.shows)
    assert initramfs.SCRIPT_ENDED + "0" in finished.console
    if boot.checks:
        expected = Expected(opteron48, boot.cores, Size(boot.memory_per_node).bytes)
        found = Findings.of(finished.console)
        assert not faults(ANYWHERE, found, expected)
        # The checks can fail: the same boot is no boot of another machine.
        assert len(faults(ANYWHERE, found, Expected(opteron48, boot.cores + 1, expected.memory_per_node * 2))) >= 4


def test_a_line_of_a_program_is_found_where_a_message_of_the_kernel_interrupts_it() -> None:
    console = "md5 e07[    2.977001] tsc: Refined TSC clocksource calibration: 2400 MHz\r\n1f\r\n[    3.000001] end\r\nend\r\n"
    assert not in_order(console, ("md5 e071f", "end")) and in_order(console, ("md5 e07", "end")) == ["md5 e07", "end"]


@pytest.mark.parametrize("line", [
    "[    1.0] WARNING: CPU: 3 PID: 1 at kernel/smp.c:1 f+0x1/0x2", "[    9.1] watchdog: BUG: soft lockup - CPU#1 stuck for 22s!",
    "[   60.0] rcu: INFO: rcu_preempt self-detected stall on CPU", "[    1.0] tsc: Marking TSC unstable due to TSCs unsynchronized",
])
def test_trouble_in_the_log_is_seen(line: str, opteron48: Machine) -> None:
    expected = Expected(opteron48, 1, 1 << 29)
    assert healthy_log(Findings.of(f"[    0.1] Linux version 6.1\n{line}\n"), expected) == [line]
    assert not healthy_log(Findings.of("[    0.1] PCI: if necessary, use \"pci=nocrs\" and report a bug\n"), expected)
