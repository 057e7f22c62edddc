# SPDX-License-Identifier: BSD-3-Clause
"""The project's kernel in each of its settings and its variants, on QEMU and on the model: it boots, reports its setting,
and survives stress tests of the files and mappings whose locks, counts and lists the settings change. Needs a build in the cache
(`moscope kernel build`, `moscope kernel build --variant NAME`)."""

import re
import shutil
from pathlib import Path

import pytest
from conftest import in_order
from table import GUEST
from test_qemu import node_cores

from moscope.boot import plan, result, run
from moscope.boot.plan import COMMAND_LINE
from moscope.cli import Shared
from moscope.config import Machine
from moscope.guest import initramfs, kernel, kernel_build, kernel_config, kernel_names, kernel_source, qemu
from moscope.workloads import build

pytestmark = pytest.mark.long
SETTINGS = ("upstream", "stock", "pk", *(f"stock+{n}" for n in kernel_names.numbers()), *(f"pk-{n}" for n in kernel_names.numbers()))
SHOWS = ("maps right", "threads right", r"moscope: vfsfix operations=\d+ wrong=0 verify=ok",
         r"moscope: netfix operations=\d+ wrong=0 verify=ok", "ports right", "unmounted", "empty", "nothing lost", "quiet")
# What a kernel says of itself when something is wrong: its own checks, KASAN's and lockdep's.
REPORT = re.compile(r"\] (?:WARNING|BUG|INFO: (?:possible|suspicious|inconsistent|trying|lockdep)|Oops|KASAN"
                    r"|.*(?:lock debugging|Bad page|KASAN:))")
# What shows that a variant is what its name says.
SIGNS = {"checked": (r".*kasan: KernelAddressSanitizer initialized.*", r".*Lock dependency validator: .*", r" *debug_locks: +1"),
         "queued": (), "split": ()}
on_qemu = pytest.mark.skipif(shutil.which(qemu.PROGRAM) is None, reason="QEMU is not installed")


def image_of(variant: str) -> Path:
    built = kernel_build.kept(kernel_build.key_of(kernel_source.debian(print), variant))
    if built is None:
        option = f" --variant {variant}" if variant else ""
        pytest.skip(f"this kernel is not built: `moscope kernel build{option}` does it")
    return built.image


@pytest.fixture(scope="module")
def built() -> Path:
    return image_of("")


def stormers(programs: dict[str, Path]) -> dict[str, Path]:
    """The stress tests that storms.sh starts."""
    ours = {name: programs[name] for name in ("maps", "threads", "ports")}
    return ours | {name: build.program(name) for name in ("vfsfix", "netfix")}


def stormed(image: Path, setting: str, machine: Machine, programs: dict[str, Path]) -> str:
    """The console of the stress tests on six cores of QEMU."""
    started = initramfs.build(kernel.from_file(image), print, GUEST / "storms.sh", stormers(programs))
    guest = qemu.Guest(image, started.path, f"{COMMAND_LINE} {kernel_names.PARAMETER}={setting}", node_cores(machine, 6),
                       [[10 + 6 * h for h in row] for row in machine.hops()], 512 << 20)
    finished = qemu.run(guest, 1200)
    assert finished.status == 0, finished.console[-3000:]
    return finished.console


def right(console: str, setting: str) -> None:
    assert f"moscope.fix: {setting}" in console
    assert not in_order(console, (*SHOWS, f"fix {re.escape(setting)}")), console[-3000:]
    assert not [line for line in console.splitlines() if REPORT.search(line)]


@on_qemu
@pytest.mark.parametrize("setting", SETTINGS)
def test_each_setting_survives_stress_tests_on_qemu(setting: str, built: Path, opteron48: Machine, programs: dict[str, Path]) -> None:
    right(stormed(built, setting, opteron48, programs), setting)


@on_qemu
@pytest.mark.parametrize("setting", ["stock", "pk", "upstream", "pk-2", "stock+6,7"])
@pytest.mark.parametrize("variant", kernel_config.variants())
def test_each_variant_survives_stress_tests_on_qemu(variant: str, setting: str, opteron48: Machine, programs: dict[str, Path]) -> None:
    console = stormed(image_of(variant), setting, opteron48, programs)
    right(console, setting)
    assert not in_order(console, SIGNS[variant])


@pytest.mark.parametrize("setting", ["stock", "pk"])
@pytest.mark.parametrize("variant", ["", *kernel_config.variants()])
def test_each_variant_survives_stress_tests_on_the_model(variant: str, setting: str, programs: dict[str, Path], tmp_path: Path) -> None:
    options = plan.Options(kernel=str(image_of(variant)), append=f"{kernel_names.PARAMETER}={setting}", cores=4, script=GUEST / "storms.sh",
                           memory_per_node="128MiB", programs=stormers(programs))
    planned = plan.make(Shared(out=tmp_path / "out", json=True), options)
    outcome, _, log = run.run(planned)
    console = log.decode(errors="replace").replace("\r", "")
    assert result.exit_code(planned, outcome) == 0, (outcome, console[-3000:])
    right(console, setting)
    assert not in_order(console, SIGNS.get(variant, ()))


@pytest.mark.parametrize("line", [
    "[    9.1] BUG: KASAN: use-after-free in dput+0x10/0x20", "[    9.1] WARNING: possible circular locking dependency detected",
    "[    9.1] WARNING: CPU: 3 PID: 1 at fs/dcache.c:1 f+0x1/0x2", "[    9.1] BUG: Bad page state in process maps  pfn:01234",
    "[    9.1] INFO: lockdep is turned off.", "[    9.1] BUG: sleeping function called from invalid context at fs/dcache.c:900",
])
def test_a_report_of_the_kernel_is_seen(line: str) -> None:
    assert REPORT.search(line)
    assert not REPORT.search("[    0.0] kasan: KernelAddressSanitizer initialized")


@on_qemu
@pytest.mark.parametrize("setting", ["stock-7", "pk+7", "pk-", "stock+17", "stok"])
def test_a_setting_that_makes_no_sense_ends_the_boot(setting: str, built: Path, opteron48: Machine) -> None:
    image = initramfs.build(kernel.from_file(built), print, GUEST / "storms.sh")
    guest = qemu.Guest(built, image.path, f"{COMMAND_LINE} panic=-1 {kernel_names.PARAMETER}={setting}", node_cores(opteron48, 1),
                       [[10 + 6 * h for h in row] for row in opteron48.hops()], 512 << 20)
    assert "would be right" in qemu.run(guest, 120).console
