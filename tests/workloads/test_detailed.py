# SPDX-License-Identifier: BSD-3-Clause
"""Known truths in detailed mode, on four cores of one chip: which line costs, who fights over it, and of what class."""

import json
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from moscope import workloads
from moscope.naming import rows
from moscope.workloads import build

FS_PER_MS = 10**12
Measured = tuple[dict[str, Any], workloads.Results]


@pytest.fixture(scope="module")
def measured(booted: Callable[..., Any]) -> Callable[..., Measured]:
    """Attribution of a region without its first moments, and what the workload said."""

    def run(name: str, operations: int, *more: str, cores: int = 4, threads: int = 0, mask: str = "", model: str = "blocking") -> Measured:
        w, guest = workloads.find(name), booted(detailed=True, cores=cores, timing=(f"core.model={model}",))
        command = w.command(threads or cores, "--operations", str(operations), *more)
        guest.type(f"taskset {mask} {command}" if mask else command)
        guest.wait_for("workbegin")
        system = guest.system
        system.enter_detailed()
        # Threads leave their barrier, caches fill.
        system.step_until(system.stats()["ticks"] + FS_PER_MS // 10, 60_000)
        system.reset_stats()
        guest.wait_for("workend")
        stats = json.loads(system.stats_json())
        while not system.leave_detailed(200):
            pass
        guest.wait_for("moscope# ")
        system.keep_attribution()
        assert system.kept_attribution_rows() == system.attribution_rows()
        return {**stats["attribution"], "lines": lines_of(system.attribution_rows())}, workloads.Results.of(guest.console, w.family)

    return run


def lines_of(packed: rows.PackedRows) -> list[dict[str, Any]]:
    """The engine's rows of lines, those with the most waiting first, each with its pairs and its number of transfers from chip to chip."""
    lines, pairs, transfers = rows.unpacked(packed)
    found: list[dict[str, Any]] = [
        {**{name: int(line[name]) for name in ("line", "va", "stall", "spin", "spin_iterations", "transfers")}, "pairs": [], "sent": 0,
         "classes": {c: {"stall": int(line["class_stall"][k]), "count": int(line["class_count"][k])} for k, c in enumerate(rows.CLASSES)}}
        for line in lines]
    for pair in pairs:
        found[pair["line"]]["pairs"].append({name: int(pair[name]) for name in ("writer", "waiter", "stall", "spin", "count")})
    for transfer in transfers:
        found[transfer["line"]]["sent"] += int(transfer["count"])
    for line in found:
        line["pairs"].sort(key=lambda pair: -pair["stall"] - pair["spin"])
    return sorted(found, key=lambda line: -line["stall"] - line["spin"])


def symbol(family: str, name: str) -> range:
    """The addresses of a variable or function."""
    for line in subprocess.run(["nm", "-S", build.program(family)], capture_output=True, text=True, check=True).stdout.splitlines():
        words = line.split()
        if words[-1] == name:
            return range(int(words[0], 16), int(words[0], 16) + int(words[1], 16))
    raise AssertionError(f"{family} has no {name}")


def total(attribution: dict[str, Any]) -> int:
    return sum(c["stall"] for c in attribution["classes"].values())


def warm(attribution: dict[str, Any]) -> int:
    """Exposed stall without cold misses: a timer interrupt may fall into the region, whose code and data are in no cache."""
    return int(attribution["exposed"] - attribution["classes"]["cold"]["stall"])


def test_the_stall_of_all_classes_is_all_that_is_exposed(measured: Callable[..., Measured]) -> None:
    attribution, _ = measured("falseshare", 20000)
    assert total(attribution) == attribution["exposed"]
    assert all(sum(c["stall"] for c in line["classes"].values()) == line["stall"] for line in attribution["lines"])


def test_a_shared_counter_is_the_line_that_costs_and_its_functions_write_it_and_wait(measured: Callable[..., Measured]) -> None:
    attribution, got = measured("counter", 8000)
    line = attribution["lines"][0]
    assert got.right and line["stall"] > 0.95 * warm(attribution)
    assert line["va"] in symbol("counter", "shared_counter")
    assert line["classes"]["true_sharing"]["stall"] > 0.95 * line["stall"]
    functions = [symbol("counter", "shared_acquire"), symbol("counter", "shared_release")]
    pair = line["pairs"][0]
    assert any(pair["writer"] in f for f in functions) and any(pair["waiter"] in f for f in functions)


def test_a_sloppy_counter_takes_the_stall_away(measured: Callable[..., Measured]) -> None:
    shared, _ = measured("counter", 8000)
    sloppy, got = measured("counter-sloppy", 60000)
    assert got.right and warm(sloppy) < 0.1 * warm(shared)


def test_packed_words_are_classed_as_false_sharing_and_padded_ones_have_none(measured: Callable[..., Measured]) -> None:
    packed, got = measured("falseshare", 20000)
    line = packed["lines"][0]
    assert got.right and line["va"] in symbol("falseshare", "packed_counters")
    assert line["classes"]["false_sharing"]["stall"] > 0.95 * line["stall"] > 0.8 * warm(packed)
    # A core that has lost the line gets it, with what others wrote beside its own word; one that still has it requests only permission.
    sent = line["sent"]
    count = {kind: of_class["count"] for kind, of_class in line["classes"].items()}
    # A core that requested only permission still gets the line if another core took it meanwhile and has not written it. How often
    # depends on how the cores interleave: with two versions of the program, for less than 0.2 % and for 3.6 % of the lines sent.
    assert 0 <= sent - count["false_sharing"] <= sent / 20 and sum(count.values()) == line["transfers"], (count, sent)
    assert count["upgrade"] > 100 and count["false_sharing"] + count["upgrade"] > 0.99 * line["transfers"]
    padded, got = measured("falseshare-padded", 60000)
    words = symbol("falseshare", "padded_counters")
    assert got.right and not [x for x in padded["lines"] if x["va"] in words and x["classes"]["false_sharing"]["count"]]
    assert warm(padded) < 0.1 * warm(packed)


def test_waiting_for_a_ticket_lock_is_on_the_locks_line(measured: Callable[..., Measured]) -> None:
    attribution, got = measured("ticketlock", 600)
    line, section = attribution["lines"][:2]
    assert got.right and line["va"] in symbol("ticketlock", "ticket_lock")
    assert line["stall"] > 0.7 * warm(attribution) and line["classes"]["true_sharing"]["count"] > 600
    # What the section writes goes with the lock: the next locked operation waits for it in the store buffer.
    assert section["va"] in symbol("ticketlock", "section") and section["classes"]["upgrade"]["stall"] > 0.5 * section["stall"]
    assert line["stall"] + section["stall"] > 0.95 * warm(attribution)


def test_spin_iterations_belong_to_the_lock_for_a_ticket_lock_and_to_each_waiters_line_for_an_mcs_lock(
        measured: Callable[..., Measured]) -> None:
    ticket, _ = measured("ticketlock", 600)
    line = ticket["lines"][0]
    assert line["va"] in symbol("ticketlock", "ticket_lock") and line["spin"] > 0.95 * ticket["spin"] > 0 and line["spin_iterations"] > 600
    pair = max(line["pairs"], key=lambda p: p["spin"])
    functions = [symbol("ticketlock", "ticket_acquire"), symbol("ticketlock", "ticket_release")]
    assert pair["waiter"] in functions[0] and any(pair["writer"] in f for f in functions)
    mcs, _ = measured("ticketlock-mcs", 600)
    own = [one for one in mcs["lines"] if one["spin"] > 0.1 * mcs["spin"]]
    assert len(own) == 4 and sum(one["spin"] for one in own) > 0.95 * mcs["spin"]
    waiting = [symbol("ticketlock", name) for name in ("mcs_acquire", "mcs_release")]
    assert all(any(pair["waiter"] in f for f in waiting) for one in own for pair in one["pairs"] if pair["spin"])
    for attribution in (ticket, mcs):
        assert sum(one["spin"] for one in attribution["lines"]) == attribution["spin"]
        assert sum(pair["spin"] for one in attribution["lines"] for pair in one["pairs"]) == attribution["spin"]


def test_protocol_and_topology_change_the_guests_times_but_not_what_it_does_and_prints(booted: Callable[..., Any]) -> None:
    """From the same prompt, on four cores of four chips: detailed mode from the region's beginning until the results have been shown."""
    w = workloads.find("counter")
    seen_with: dict[tuple[str, ...], tuple[str, int, int]] = {}
    for timing in ((), ("protocol=MSI",), ("topology=straight_ladder",)):
        guest = booted(detailed=True, sets=("cores_per_chip=1",), timing=timing)
        guest.type(w.command(4, "--operations", "1500"))
        guest.wait_for("workbegin")
        begun = guest.system.stats()["ticks"]
        guest.system.enter_detailed()
        guest.wait_for("workend")
        guest.wait_for("moscope# ")
        seen_with[timing] = guest.console, guest.operations(), guest.system.stats()["ticks"] - begun
        got = workloads.Results.of(guest.console, "counter")
        assert got.right and got.values["operations"] == 6000
    consoles, operations, ticks = (set(column) for column in zip(*seen_with.values(), strict=True))
    assert len(consoles) == 1 and operations == {6000} and len(ticks) == 3, seen_with


@pytest.mark.long
def test_with_48_cores_a_ticket_locks_hand_off_grows_with_the_waiters_and_an_mcs_locks_with_distance_alone(
        measured: Callable[..., Measured]) -> None:
    """500 to 4000 cycles are published for the ticket lock. Of 48 waiters, some follow one of their own chip, as six of one chip do, and
    the others one of another chip, as eight of eight chips do."""

    def hand_off(name: str, operations: int, **few: Any) -> float:
        _, got = measured(name, operations, cores=48, **few)
        assert got.right
        return got.values["handoff_cycles"]

    near = hand_off("ticketlock-mcs", 200, threads=6, mask="3f")
    spread = {"threads": 8, "mask": "41041041041"}
    ticket = hand_off("ticketlock", 60, **spread), hand_off("ticketlock", 60)
    mcs = hand_off("ticketlock-mcs", 200, **spread), hand_off("ticketlock-mcs", 100)
    assert 500 < ticket[1] < 4000 and ticket[1] > 1.25 * ticket[0]
    assert 0.85 * near < mcs[1] < 1.15 * mcs[0] and 1.5 * near < mcs[0] and mcs[1] < ticket[1]


@pytest.mark.parametrize("name, operations, cycles", [("chase-l1", 40, 3), ("chase-l2", 100, 14), ("chase-l3", 100, 28), ("chase", 30, 122),
                                                      ("chase-1hop", 30, 249), ("chase-2hops", 20, 376), ("chase-3hops", 20, 503)])
def test_a_chase_takes_the_papers_latencies(measured: Callable[..., Measured], name: str, operations: int, cycles: int) -> None:
    """249 and 376 are derived, the others published (the machine's description has the sources)."""
    _, got = measured(name, operations, model="out_of_order")
    assert got.right and got.values["median"] == pytest.approx(cycles, rel=0.05)
