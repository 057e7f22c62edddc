# SPDX-License-Identifier: BSD-3-Clause
"""Each workload in a guest of four cores, functional mode: it marks its region and its operations, and is right."""

from collections.abc import Callable
from typing import Any

import pytest

from moscope import workloads
from moscope.guest import initramfs

# Less work for each operation than by default.
SMALLER = {"chase": ("--size", "1MiB"), "pedsort": ("--file", "512", "--table", "32KiB", "--fold", "1"),
           "metis": ("--input", "16KiB")}
BOUNDED = [w.name for w in workloads.every() if w.family not in ("exim", "gmake") and not (w.launcher or w.steering)]


@pytest.mark.parametrize("name", BOUNDED)
def test_a_workload_marks_its_region_and_counts_its_operations(booted: Callable[[], Any], name: str) -> None:
    w, guest = workloads.find(name), booted()
    more = SMALLER.get(w.family, ())
    guest.type(w.command(4, "--operations", "200", *more))
    guest.wait_for("workbegin")
    before = guest.operations()
    guest.wait_for("workend")
    cores = 1 if w.most_cores == 1 or "quarter" in name else 4
    assert guest.operations() - before == 200 * cores
    guest.wait_for(initramfs.PROMPT)
    got = workloads.Results.of(guest.console, w.family)
    assert got.right and got.values["operations"] == 200 * cores
    if w.family == "chase":
        assert got.values["huge_kib"] >= 1024


def test_ctrl_c_stops_a_workload_which_then_checks_itself(booted: Callable[[], Any]) -> None:
    w, guest = workloads.find("ticketlock"), booted()
    guest.type(w.command(4))
    guest.wait_for("workbegin")
    guest.system.step(300)
    guest.system.console_input(workloads.registry.STOP)
    guest.wait_for(initramfs.PROMPT)
    got = workloads.Results.of(guest.console, w.family)
    assert got.right and got.values["operations"] == guest.operations()


def test_mail_flows_in_the_guest_until_ctrl_c_and_every_message_arrives(booted: Callable[[], Any]) -> None:
    w, guest = workloads.find("exim"), booted()
    guest.type(w.command(4))
    guest.wait_for("workbegin")
    before = guest.operations()
    assert before >= sum(range(1, 9))  # each of the eight clients has had its first connection
    while guest.operations() < before + 40:
        guest.system.step(100)
    guest.system.console_input(workloads.registry.STOP)
    guest.wait_for(initramfs.PROMPT)
    got = workloads.Results.of(guest.console, "exim")
    assert got.right and got.values["clients"] == 8 and got.values["operations"] == guest.operations()


def test_mail_ends_by_itself_after_the_given_number_of_messages(booted: Callable[[], Any]) -> None:
    w, guest = workloads.find("exim"), booted()
    guest.type(w.command(4, "--operations", "8"))
    guest.wait_for("workbegin")
    guest.wait_for("workend")
    guest.wait_for(initramfs.PROMPT)
    got = workloads.Results.of(guest.console, "exim")
    assert got.right and got.values["operations"] == 4 * 8 == guest.operations()
