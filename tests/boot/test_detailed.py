# SPDX-License-Identifier: BSD-3-Clause
"""Detailed mode under Linux: every access of every core through caches, protocol, links and DRAM."""

import hashlib
import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from moscope import _engine, buildproto, jsonio
from moscope.boot import plan
from moscope.cli import Shared
from moscope.config import elaborate, load_machine
from moscope.config.machine import replace
from moscope.runs import link_load, over_time
from moscope.runs.guest import Guest
from moscope.runs.link_load import LinkLoad
from moscope.runs.over_time import OverTime
from moscope.schema.pipeline import MODELS
from moscope.schema.units import Size

MS = 10**12
BEGIN, SPINNING, MODIFYING = "moscope: busy now", "moscope: spinning", "moscope: modifying"
BUSY = f"""
n=$(nproc); i=0
while [ $i -lt $n ]; do (while :; do cat /proc/self/status >/dev/shm/f$i; rm /dev/shm/f$i; done) & i=$((i+1)); done
echo "{BEGIN}"
sleep 0.02
echo "still there"
"""


def configured(script: Path, cores: int, out: Path, programs: dict[str, Path] | None = None, net: bool = False,
               prefetchers: bool = False, **detailed: Any) -> dict[str, Any]:
    memory = "128MiB"
    machine = replace(load_machine("opteron48"), memory_per_node=Size(memory, "test")).validate()
    options = plan.Options(cores=cores, memory_per_node=memory, script=script, programs=programs or {}, net=net)
    config: dict[str, Any] = plan.make(Shared(out=out, json=True), options).config
    built = buildproto.ensure_protocol(str(machine.protocol))
    interface = json.loads(built.interface.read_text(encoding="utf-8"))
    config["markers"] = [BEGIN, SPINNING, MODIFYING, "moscope: ready"]
    config["detailed"] = {"machine": elaborate(machine, interface, runs_guest=prefetchers), "library": str(built.timing), **detailed}
    return config


def until(step: Callable[[], dict[str, Any]], *states: str) -> dict[str, Any]:
    while True:
        end = step()
        if end["state"] != "running":
            assert end["state"] in states, end
            return end


def until_said(system: Any, text: str) -> str:
    """What the console shows, up to a line that matches; without the guest's shutdown, which takes longer than most programs."""
    said, state = "", "running"
    while not re.search(f"{text}.*\n", said):
        assert state in ("running", "marker"), said[-2000:]
        state = system.step(50)["state"]
        said += system.console_output().decode()
    return said


def leave(system: Any) -> None:
    while not system.leave_detailed(200):
        pass


def at_marker(folder: Path, text: str, marker: str, programs: dict[str, Path] | None = None, cores: int = 4,
              net: bool = False) -> Callable[..., Any]:
    """A machine whose script has come to the marker, as often as wanted."""
    script = folder / "script.sh"
    script.write_text(text, encoding="utf-8")
    config = configured(script, cores, folder / "out", programs, net)
    system = _engine.System(json.dumps(config))
    while until(lambda: system.step(200), "marker")["detail"] != marker:
        pass
    system.save(str(folder / "at"))

    def restored(**detailed: Any) -> Any:
        again = dict(config, restore=True, detailed={**config["detailed"], **detailed})
        system = _engine.System(json.dumps(again))
        system.restore(str(folder / "at"))
        return system

    return restored


@pytest.fixture(scope="module")
def busy(distro: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    return at_marker(tmp_path_factory.mktemp("busy"), BUSY, BEGIN)


def measured(system: Any, ms: float) -> tuple[dict[str, Any], list[int]]:
    start = system.stats()["ticks"]
    system.enter_detailed()
    system.reset_stats()
    until(lambda: system.step_until(start + int(ms * MS), 200), "time")
    stats = json.loads(system.stats_json())
    for part in ("machine", "attribution"):
        jsonio.validate(stats[part])
    return stats, system.stats()["per_core"]


def load_of_links(system: Any, folder: Path, ms: float) -> list[dict[str, int]]:
    """The rows of links.parquet of a window of detailed time; at least one link carries something in each of its intervals."""
    guest, begin = Guest(system, lambda progress: None), int(system.counts()["ticks"])
    system.reset_stats()
    load = OverTime(guest, begin, [LinkLoad(system)])
    assert load.until_time(begin + int(ms * MS), lambda tick: 0.0)
    load.keep()
    folder.mkdir()
    load.write(folder)
    rows: list[dict[str, int]] = parquet.read_table(folder / link_load.NAME).to_pylist()
    busy = {row["begin"] for row in rows if row["bytes"]}
    assert len(busy) == len({row["begin"] for row in rows}) == over_time.PARTS
    return rows


def test_two_detailed_runs_are_equal_and_so_is_one_without_lookahead(busy: Callable[..., Any]) -> None:
    first = measured(busy(), 0.3)
    assert measured(busy(), 0.3) == first
    assert measured(busy(zero_lookahead=True), 0.3) == first


def test_chips_side_by_side_on_several_threads_change_nothing(distro: Any, tmp_path: Path) -> None:
    """Fourteen cores on three chips, with timers, interrupts between chips, processes that come and go, and the console."""
    busy = at_marker(tmp_path, BUSY, BEGIN, cores=14)
    system = busy()
    first = measured(system, 1.2)
    load = load_of_links(system, tmp_path / "one queue", 0.1)
    for threads in (2, 3):
        system = busy(threads=threads)
        assert measured(system, 1.2) == first
        assert load_of_links(system, tmp_path / str(threads), 0.1) == load
    leave(system)
    until(lambda: system.step(200), "poweroff")
    assert b"still there" in system.console_output()


def test_code_that_one_core_writes_is_what_others_run_next(distro: Any, programs: dict[str, Path], tmp_path: Path) -> None:
    """Cross-modifying code on two chips; which thread runs which chip, and when, changes nothing."""
    modifying = at_marker(tmp_path, "/run/moscope/crossmod 600", MODIFYING, {"crossmod": programs["crossmod"]}, cores=8)
    first = None
    for threads in (1, 2, 0):
        system = modifying(threads=threads)
        stats = measured(system, 0.3)
        first = first or stats
        assert threads == 0 or stats == first  # one event queue drops changed code at once, not at a barrier
        said = until_said(system, "crossmod: (right|WRONG)")
        assert "crossmod: right" in said, said[-2000:]


def test_skipped_spin_iterations_count_as_if_they_had_run(distro: Any, programs: dict[str, Path],
                                                                    tmp_path: Path) -> None:
    spinning = at_marker(tmp_path, "/run/moscope/spin", SPINNING, {"spin": programs["spin"]})
    sleeping = spinning()
    before = sleeping.counts()
    first = measured(sleeping, 0.2)
    counts = sleeping.counts()
    spun, all_ = (counts[k] - before[k] for k in ("spun", "instructions"))
    assert spun > all_ - spun > 1000
    cores, attribution = first[0]["cores"], first[0]["attribution"]
    turned = [sum(core["spin"][k][who] for k in ("busy", "core") for who in ("kernel", "user")) for core in cores]
    assert sum(turned) == attribution["spin"] > 0.5 * sum(core["window"] for core in cores)
    turning = spinning(zero_lookahead=True)
    assert measured(turning, 0.2) == first
    assert turning.counts() == counts


def test_every_tick_of_every_core_is_charged_once(busy: Callable[..., Any]) -> None:
    stats, _ = measured(busy(), 0.3)
    assert len(stats["cores"]) == 4
    memory = 0
    for core in stats["cores"]:
        charges = [core[kind][who] for kind in ("busy", "idle", "core", "memory") for who in ("kernel", "user")]
        assert sum(charges) == core["window"] and min(charges) >= 0
        assert abs(core["window"] - 0.3 * MS) < 0.01 * MS
        memory += sum(core["memory"].values())
    attribution = stats["attribution"]
    # What was still waiting when the window ended has been charged and not reported: at most one access each.
    assert 0 <= memory - attribution["exposed"] < 4 * 10**10
    assert sum(c["stall"] for c in attribution["classes"].values()) <= attribution["exposed"]
    assert {k for k, c in attribution["classes"].items() if c["count"]} >= {"cold", "capacity", "true_sharing"}


def test_the_guest_goes_on_in_functional_mode_and_back(busy: Callable[..., Any]) -> None:
    system = busy()
    measured(system, 0.1)
    leave(system)
    for _ in range(3):
        before = system.stats()["instructions"]
        system.step(50)
        assert system.stats()["instructions"] > before
        start = system.stats()["ticks"]
        system.enter_detailed()
        until(lambda end=start + MS // 20: system.step_until(end, 200), "time")
        assert system.stats()["ticks"] >= start + MS // 20 - MS // 1000
        leave(system)
    until_said(system, "still there")


def with_disk(folder: Path, content: bytes, text: str, cores: int = 2, **detailed: Any) -> Any:
    """A machine with a disk, whose script has begun."""
    disk, script = folder / "disk.img", folder / "disk.sh"
    disk.write_bytes(content)
    script.write_text(f'echo "{BEGIN}"\n{text}', encoding="utf-8")
    config = configured(script, cores, folder / "out", **detailed)
    config["disk"] = str(disk)
    system = _engine.System(json.dumps(config))
    while until(lambda: system.step(200), "marker")["detail"] != BEGIN:
        pass
    system.console_output()
    return system


def test_leaving_waits_for_devices_in_steps_whose_host_time_is_limited(distro: Any, tmp_path: Path) -> None:
    """A long step in the engine returns now and then; otherwise Ctrl-C would have no effect meanwhile."""
    content = random.Random(4).randbytes(1024 * 4096)
    # The guest bypasses the page cache and does nothing else, so that the disk is hardly ever idle. Between windows it proceeds for a
    # simulated time: with a host time, a quick host would finish the reads after a few windows.
    reading = "dd if=/dev/vda of=/dev/null bs=1M iflag=direct 2>/dev/null\n"
    system = with_disk(tmp_path, content, f"{reading * 4}md5sum < /dev/vda\n")
    steps, windows = 0, 0
    while steps < 2:
        system.enter_detailed()
        assert system.step_until(system.stats()["ticks"] + MS // 8, 60_000)["state"] == "time"
        steps, windows = 0, windows + 1
        while not system.leave_detailed(0):
            steps += 1
            assert steps < 100_000
        assert windows < 200 and system.step_until(system.stats()["ticks"] + MS // 100, 60_000)["state"] == "time"
    said = b""
    while (state := system.step(200)["state"]) in ("running", "marker"):
        said += system.console_output()
    said += system.console_output()
    assert state == "poweroff" and hashlib.md5(content).hexdigest().encode() in said


@pytest.mark.parametrize(("cores", "threads"), [(2, 0), (8, 2)])
def test_what_devices_move_goes_through_the_protocol(distro: Any, tmp_path: Path, cores: int, threads: int) -> None:
    content = random.Random(3).randbytes(64 * 4096)
    system = with_disk(tmp_path, content, """md5sum < /dev/vda
dd if=/dev/zero of=/dev/vda bs=4096 count=8 oflag=direct conv=notrunc
echo 3 > /proc/sys/vm/drop_caches
echo "written $(md5sum < /dev/vda)"
echo "entropy $(dd if=/dev/hwrng bs=64 count=2 2>/dev/null | wc -c)"
""", cores, threads=threads)
    system.enter_detailed()
    console = until_said(system, "entropy [0-9]")
    devices = {c["name"]: c["transitions"] for c in json.loads(system.stats_json())["machine"]["controllers"] if "DMA" in c["name"]}
    assert hashlib.md5(content).hexdigest() in console
    assert f"written {hashlib.md5(bytes(8 * 4096) + content[8 * 4096:]).hexdigest()}" in console and "entropy 128" in console, console
    # A line is a transaction: 64 of a page, read twice and written once, beside rings and requests.
    reads, writes = (sum(n for k, n in devices["DMA-0"].items() if what in k) for what in ("Read", "Write"))
    assert writes > 2 * 64 * 64 and reads > 8 * 64, devices
    assert not any(sum(t.values()) for name, t in devices.items() if name != "DMA-0")


@pytest.mark.parametrize(("model", "cores", "threads", "rounds"), [
    ("blocking", 6, 0, 24), ("blocking", 8, 2, 24), ("out_of_order", 6, 0, 6),
    *(pytest.param(model, 48, threads, 24, marks=pytest.mark.long) for model in MODELS for threads in (0, 2)),
    *(pytest.param("out_of_order", cores, 0, rounds, marks=pytest.mark.long) for cores, rounds in ((2, 980), (12, 980), (48, 980)))])
def test_litmus_programs_keep_to_tso_in_detailed_mode(distro: Any, programs: dict[str, Path], tmp_path: Path, model: str,
                                                      cores: int, threads: int, rounds: int) -> None:
    """Its last part has four cores at locked operations on two lines, which have to terminate."""
    script = tmp_path / "litmus.sh"
    script.write_text(f"/run/moscope/litmus {rounds}\n", encoding="utf-8")
    config = configured(script, cores, tmp_path / "out", {"litmus": programs["litmus"]}, threads=threads,
                        prefetchers=model == "out_of_order")
    config["detailed"]["machine"]["core"]["model"] = model
    system = _engine.System(json.dumps(config))
    assert until(lambda: system.step(200), "marker")["detail"] == "moscope: ready"
    system.enter_detailed()
    console = until_said(system, "litmus: (right|WRONG)")
    assert "litmus: right" in console, console[-2000:]
    shown = [line for line in console.splitlines() if line.startswith("SB:")]
    assert shown and not shown[0].startswith("SB: 0 "), console[-2000:]
