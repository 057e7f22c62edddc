# SPDX-License-Identifier: BSD-3-Clause
"""Leaving detailed mode: what the guest does in the meantime is not lost."""

import struct
from pathlib import Path
from typing import Any

import pytest

from moscope.boot import plan
from moscope.config import load_machine
from moscope.runs import engine

# cli; mov ecx, 20000; again: dec ecx; jnz again; mov al, 3; mov dx, 0xf4; out dx, al; hlt: it leaves the simulator with status 3.
CODE = bytes.fromhex("fa" "b9204e0000" "49" "75fd" "b003" "66baf400" "ee" "f4")
# cli; mov al, 0x34; out 0x43, al; mov al, 0; out 0x40, al; out 0x40, al; hlt: it waits for ever beside a timer that runs.
HOPELESS = bytes.fromhex("fa" "b034" "e643" "b000" "e640" "e640" "f4")
# After the same delay, it writes code for core 6 to 8000h (mov al, 3; mov dx, 0xf4; out dx, al; hlt), sends it a start-up interrupt
# to there through its local APIC, and halts for ever.
STARTING = bytes.fromhex("fa" "b9204e0000" "49" "75fd" "c70500800000b003baf4" "c7050480000000eef4f4" "c7051003e0fe00000008"
                         "c7050003e0fe08460000" "f4")
# mov ecx, 1500; again: dec ecx; jnz again; m5 checkpoint, which is a marker; jmp to itself.
MARKING = bytes.fromhex("b9dc050000" "49" "75fd" "0f044300" "ebfe")
AT, ALIGNED, US = 0x10_0000, 0x1000, 10**9


def guest(file: Path, code: bytes) -> Path:
    """A Multiboot kernel (Multiboot Specification 0.6.96, section 3.1) as an ELF file with one segment."""
    head = struct.pack("<3I", 0x1BADB002, 0, 0x1_0000_0000 - 0x1BADB002)
    text = head + code
    header = struct.pack("<16sHHIIIIIHHHHHH", b"\x7fELF\x01\x01\x01", 2, 3, 1, AT + len(head), 52, 0, 0, 52, 32, 1, 0, 0, 0)
    segment = struct.pack("<8I", 1, ALIGNED, AT, AT, len(text), len(text), 5, ALIGNED)
    image = bytearray(ALIGNED)
    image[:84], image[84:84 + len(head)] = header + segment, head
    file.write_bytes(bytes(image) + text)
    return file


def created(folder: Path, code: bytes, cores: int = 1, restore: bool = False) -> Any:
    machine = load_machine("opteron48", ["memory_per_node=64MiB"])
    detailed = {**engine.detailed(machine, print), "transactions": "", "attribution": False, "stacks": False}
    return engine.create({**plan.platform(machine), "cores": cores, "seed": 1, "restore": restore, "append": "", "info": {},
                            "kernel": str(guest(folder / "guest.elf", code)), "initrd": "", "disk": "", "disk_read_only": False,
                            "markers": [], "detailed": detailed})


def begun(folder: Path, code: bytes, cores: int = 1) -> Any:
    system = created(folder, code, cores)
    system.step_until(1, 1000)
    system.enter_detailed()
    return system


def test_an_exit_while_the_cores_leave_detailed_mode_is_returned_by_the_next_step(tmp_path: Path) -> None:
    ended = {"state": "exit", "detail": "exit port", "status": 3}
    alone = begun(tmp_path, CODE)
    assert alone.step_until(10**12, 60_000) == ended
    end = int(alone.counts()["ticks"])
    for before in range(0, 40_000_000, 2_000_000):  # femtoseconds
        system = begun(tmp_path, CODE)
        if system.step_until(end - before, 60_000)["state"] == "time":
            while not system.leave_detailed(60_000):
                pass
            assert system.step(60_000) == ended, before


def test_cores_that_wait_with_interrupts_off_are_a_hang_though_a_timer_runs(tmp_path: Path) -> None:
    assert begun(tmp_path, HOPELESS).step_until(10**13, 60_000) == {
        "state": "hang", "detail": "all cores wait with interrupts off", "status": 0}


def test_cores_to_which_an_interrupt_is_under_way_are_no_hang(tmp_path: Path) -> None:
    ended = {"state": "exit", "detail": "exit port", "status": 3}
    alone = begun(tmp_path, STARTING, 7)
    assert alone.step_until(10**13, 60_000) == ended
    end = int(alone.counts()["ticks"])
    system = begun(tmp_path, STARTING, 7)
    for at in range(end - 500_000_000, end + 10_000_000, 4_000_000):  # femtoseconds: some steps end while it travels
        if (step := system.step_until(at, 60_000))["state"] != "time":
            break
    assert step == ended


@pytest.mark.parametrize("state", ["time", "marker"])
def test_a_checkpoint_after_detailed_mode_goes_on_as_the_machine_that_wrote_it(state: str, tmp_path: Path) -> None:
    """Also beyond the watchdog's limit of 1 ms, and where a marker has ended the last step of detailed mode early."""
    wrote, restored = begun(tmp_path, MARKING), created(tmp_path, MARKING, restore=True)
    assert wrote.step_until(15 * US if state == "marker" else US, 60_000)["state"] == state
    while not wrote.leave_detailed(60_000):
        pass
    wrote.save(str(tmp_path / "checkpoint"))
    restored.restore(str(tmp_path / "checkpoint"))
    for beyond in (20 * US, 1200 * US):
        for name, system in (("wrote", wrote), ("restored", restored)):
            while system.step_until(beyond, 60_000)["state"] != "time":
                pass
            system.save(str(tmp_path / name))
        assert (tmp_path / "wrote").read_bytes() == (tmp_path / "restored").read_bytes()
