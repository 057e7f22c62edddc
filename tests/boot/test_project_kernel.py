# SPDX-License-Identifier: BSD-3-Clause
"""The project's kernel in each of its settings, on QEMU and on the model: it boots, says its setting, and stands
storms on the files whose locks and counts the settings change. Needs a build in the cache (`moscope kernel build`)."""

import shutil

import pytest
from conftest import in_order
from table import GUEST
from test_qemu import node_cores

from moscope.boot.plan import COMMAND_LINE
from moscope.config import Machine
from moscope.guest import initramfs, kernel, kernel_build, kernel_names, kernel_source, qemu

pytestmark = pytest.mark.long
SETTINGS = ("upstream", "stock", "pk", *(f"stock+{n}" for n in kernel_names.numbers()), *(f"pk-{n}" for n in kernel_names.numbers()))
SHOWS = ("unmounted", "empty", "quiet")


@pytest.fixture(scope="module")
def built() -> None:
    if kernel_build.kept(kernel_build.key_of(kernel_source.debian(print))) is None:
        pytest.skip("the project's kernel is not built: `moscope kernel build` does it")


@pytest.mark.skipif(shutil.which(qemu.PROGRAM) is None, reason="QEMU is not installed")
@pytest.mark.parametrize("setting", SETTINGS)
def test_a_setting_stands_storms_on_qemu(setting: str, built: None, opteron48: Machine) -> None:
    chosen = kernel.find(setting, print)
    image = initramfs.build(chosen, print, GUEST / "storms.sh")
    guest = qemu.Guest(chosen.image, image.path, f"{COMMAND_LINE} {chosen.append}", node_cores(opteron48, 6),
                       [[10 + 6 * h for h in row] for row in opteron48.hops()], 512 << 20)
    finished = qemu.run(guest, 600)
    assert finished.status == 0, finished.console[-3000:]
    assert f"moscope.fix: {setting}" in finished.console
    assert not in_order(finished.console, (*SHOWS, f"fix {setting}".replace("+", r"\+"))), finished.console[-3000:]


@pytest.mark.skipif(shutil.which(qemu.PROGRAM) is None, reason="QEMU is not installed")
@pytest.mark.parametrize("setting", ["stock-7", "pk+7", "pk-", "stock+17", "stok"])
def test_a_setting_that_makes_no_sense_ends_the_boot(setting: str, built: None, opteron48: Machine) -> None:
    chosen = kernel.find("upstream", print)
    image = initramfs.build(chosen, print, GUEST / "storms.sh")
    guest = qemu.Guest(chosen.image, image.path, f"{COMMAND_LINE} panic=-1 moscope.fix={setting}", node_cores(opteron48, 1),
                       [[10 + 6 * h for h in row] for row in opteron48.hops()], 512 << 20)
    assert "would be right" in qemu.run(guest, 120).console
