# SPDX-License-Identifier: BSD-3-Clause
"""`moscope run --engine gem5 --kernel` with a stand-in for gem5 that leaves a statistics file and a console of our own,
and with the gem5 that GEM5 names, where it has x86."""

import gzip
import json
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope import jsonio
from moscope.config import load_machine
from moscope.errors import UserError
from moscope.gem5 import binary, firmware, full_system
from moscope.guest.kernel import Kernel

Fake = Callable[..., Path]
Moscope = Callable[..., subprocess.CompletedProcess[str]]
BOOTED = "moscope-gem5: progress: at 0.010 s, 5 instructions in 1.0 s\nmoscope-gem5: region: begins: 90.0 s, 123 instructions\n"
MEASURED = (f"{BOOTED}moscope-gem5: region: window begins\nmoscope-gem5: region: operations: 3000\n"
            "moscope-gem5: region: processor: 3.5 s\nmoscope-gem5: ended: simulate() limit reached: 4.000 s")
STATS = """
---------- Begin Simulation Statistics ----------
simTicks                                 100000000000                       # Number of ticks simulated (Tick)
system.boot_cpu0.commitStats0.numInsts         777777                       # of the boot, and none of the window's
system.cpu0.commitStats0.numInsts               60000                       # committed
system.cpu1.commitStats0.numInsts               12000                       # committed
system.cpu0.exec_context.thread_0.notIdleFraction     1.000000                       # not idle
system.cpu1.exec_context.thread_0.notIdleFraction     0.500000                       # not idle

---------- End Simulation Statistics   ----------
"""


def elf_kernel(folder: Path) -> Path:
    """An ELF file with one segment of 4 KiB at 16 MiB, which no real gem5 is asked to run."""
    header = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01", 2, 62, 1, 0x1000000, 64, 0, 0, 64, 56, 1, 64, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, 0x1000000, 0x1000000, 120, 4096, 4096)
    path = folder / "vmlinux"
    path.write_bytes(header + segment)
    return path


def left_by_gem5(folder: Path, console: str = "moscope: ready\n") -> Path:
    folder.mkdir()
    (folder / "stats.txt").write_text(STATS)
    (folder / "system.pc.com_1.device").write_text(console)
    return folder


def run(moscope: Moscope, gem5: Path, kernel: Path | str, *options: str, cores: str = "2") -> subprocess.CompletedProcess[str]:
    return moscope("run", "--engine", "gem5", "--gem5", str(gem5), "--machine", "small", "--workload", "counter",
                   "--cores", cores, "--kernel", str(kernel), "--json", *options)


def test_a_window_on_gem5_with_a_kernel_is_an_ordinary_point(moscope: Moscope, fake_gem5: Fake, tmp_path: Path) -> None:
    gem5 = fake_gem5(x86=True, says=MEASURED, files=left_by_gem5(tmp_path / "files"))
    kernel = elf_kernel(tmp_path)
    got = run(moscope, gem5, kernel, "--window", "100us")
    assert got.returncode == 0, got.stderr
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    point = document["points"][0]
    assert (point["instructions"], point["ops"], point["window_ms"], point["host_s"], point["host_cpu_s"]) == (72000, 3000, 0.1, 4.0, 3.5)
    assert point["kernel"] == str(kernel) and point["kernel_image"]["name"] == "vmlinux" and point["kernel_share"] is None
    assert sum(point["cycles"].values()) == pytest.approx(1) and point["cycles"]["idle"] == pytest.approx(0.25)
    (folder,) = (tmp_path / "moscope-out/run-gem5/points").iterdir()
    assert folder.name.startswith("counter-gem5-") and folder.name.endswith("vmlinux-2")
    assert (folder / "console.txt").read_text() == "moscope: ready\n"
    arguments = json.loads((folder / "arguments.json").read_text())
    assert Path(arguments[1]).name == "boot_kernel.py"


def test_gem5_is_given_the_whole_machine_and_the_cores_in_use(moscope: Moscope, fake_gem5: Fake, tmp_path: Path) -> None:
    gem5 = fake_gem5(x86=True, says=MEASURED, files=left_by_gem5(tmp_path / "files"))
    assert run(moscope, gem5, elf_kernel(tmp_path), "--window", "100us", cores="3").returncode == 0
    (folder,) = (tmp_path / "moscope-out/run-gem5/points").iterdir()
    job = json.loads((folder / "job.json").read_text())
    assert job["cores"] == 3 < job["machine"]["cores"] and job["window_fs"] == 10**11
    # What a kernel would otherwise find out by counting: 2.4 GHz, 250 ticks a second.
    assert {"console=ttyS0", "tsc_early_khz=2400000", "lpj=9600000", "tsc=reliable", "no_timer_check",
            "cpu_init_udelay=0"} <= set(job["command_line"].split())
    tables, fields, initrd = job["loads"]
    assert tables["address"] == firmware.TABLES and fields["address"] == job["boot_parameters"] + 0x210
    assert 0x1001000 <= initrd["address"] < job["machine"]["address_map"][0]["bytes"]
    assert all(node["base"] + node["bytes"] <= firmware.HOLE or node["base"] >= firmware.FOUR_GIB
               for node in job["machine"]["address_map"])


@pytest.mark.parametrize("says, console, code, what", [
    (f"{BOOTED}moscope-gem5: ended: the console shows: ---[ end Kernel panic: 3.0 s", "Kernel panic - not syncing: no init", 4, "no init"),
    ("moscope-gem5: ended: the console shows: moscope: script ended with status : 3.0 s", "sh: counter: not found", 1,
     "counter: not found"),
    (f"{BOOTED}moscope-gem5: ended: the console shows: moscope: script ended with status : 3.0 s", "over", 1, "before its window"),
    ("moscope-gem5: ended: simulate() limit reached: 9.0 s", "Calibrating", 4, "no sign of the workload"),
], ids=["panic", "no-such-program", "ends-in-warm-up", "hangs"])
def test_a_guest_that_does_not_reach_its_window_is_reported_with_its_last_lines(
        moscope: Moscope, fake_gem5: Fake, tmp_path: Path, says: str, console: str, code: int, what: str) -> None:
    gem5 = fake_gem5(x86=True, says=says, files=left_by_gem5(tmp_path / "files", console))
    got = run(moscope, gem5, elf_kernel(tmp_path))
    assert got.returncode == code and what in got.stderr and console.splitlines()[-1] in got.stderr and "Traceback" not in got.stderr
    assert json.loads(got.stdout)["ok"] is False


def test_a_gem5_that_dies_under_a_kernel_leaves_its_log_and_last_lines(moscope: Moscope, fake_gem5: Fake, tmp_path: Path) -> None:
    gem5 = fake_gem5(x86=True, says=f"{BOOTED}src/arch/x86/x.cc:5: panic: Unrecognized instruction", code=-6)
    got = run(moscope, gem5, elf_kernel(tmp_path))
    assert got.returncode == 5 and "Unrecognized instruction" in got.stderr and "signal 6" in got.stderr
    (folder,) = (tmp_path / "moscope-out/run-gem5/points").iterdir()
    assert "Unrecognized instruction" in (folder / "gem5.log").read_text()


def test_an_unknown_kernel_and_a_file_that_is_no_kernel_are_refused(moscope: Moscope, fake_gem5: Fake, tmp_path: Path) -> None:
    gem5 = fake_gem5(x86=True)
    got = run(moscope, gem5, "stok")
    assert got.returncode == 2 and "stock" in got.stderr
    (tmp_path / "notes").write_text("no kernel")
    got = run(moscope, gem5, tmp_path / "notes")
    assert got.returncode == 2 and "is not a kernel image" in got.stderr


def test_memory_of_which_the_first_node_has_too_much_is_refused(moscope: Moscope, fake_gem5: Fake, tmp_path: Path) -> None:
    got = run(moscope, fake_gem5(x86=True), elf_kernel(tmp_path), "--memory-per-node", "4GiB")
    assert got.returncode == 2 and "--memory-per-node" in got.stderr and "at most 2GiB" in got.stderr


def test_kernel_parameters_that_gem5s_loader_has_no_room_for_are_refused() -> None:
    machine = load_machine("small", [])
    longest = full_system.LONGEST_COMMAND_LINE - len(full_system.command_line(machine, "")) - 1
    assert len(full_system.command_line(machine, "x" * longest)) == full_system.LONGEST_COMMAND_LINE
    with pytest.raises(UserError, match="expected at most .* on gem5"):
        full_system.command_line(machine, "x" * (longest + 1))


def test_gem5_is_given_the_elf_kernel_inside_a_bzimage(tmp_path: Path) -> None:
    elf, folder = elf_kernel(tmp_path).read_bytes(), tmp_path / "place"
    folder.mkdir()
    payload = gzip.compress(elf)
    head = bytearray(1024)  # one sector of set-up behind the first
    head[0x1F1], head[0x202:0x206] = 1, b"HdrS"
    struct.pack_into("<H", head, 0x206, 0x20C)
    struct.pack_into("<II", head, 0x248, 0, len(payload))
    (tmp_path / "vmlinuz").write_bytes(bytes(head) + payload)
    made, end = full_system.vmlinux(Kernel("vmlinuz", tmp_path / "vmlinuz", "", "", None, ""), folder)
    assert made.read_bytes() == elf and end == 0x1001000
    with pytest.raises(UserError, match="not a Linux kernel"):
        full_system.vmlinux(Kernel("other", tmp_path / "vmlinuz", "", "", None, "", is_linux=False), folder)


@pytest.mark.long
@pytest.mark.parametrize("cores", [1, 8])
def test_the_projects_kernel_boots_on_gem5_and_a_workload_is_measured(moscope: Moscope, gem5: Path, cores: int, tmp_path: Path) -> None:
    if not binary.ask(gem5).runs_x86:
        pytest.skip("needs a gem5 with x86: the one that GEM5 names has none")
    got = moscope("run", "--engine", "gem5", "--gem5", str(gem5), "--machine", "small", "--workload", "counter", "--cores", str(cores),
                  "--kernel", "stock", "--warmup", "50us", "--window", "200us", "--json", timeout=4 * 3600)
    assert got.returncode == 0, got.stderr
    point = json.loads(got.stdout)["points"][0]
    assert point["ops"] > 100 and point["instructions"] > 1000 * cores
    point = tmp_path / f"moscope-out/run-gem5/points/counter-gem5-stock-{cores}"
    console = (point / "console.txt").read_text(encoding="utf-8", errors="replace")
    assert f"smpboot: Total of {cores} processors activated" in console and f"threads={cores}" in console
