# SPDX-License-Identifier: BSD-3-Clause
"""The parallel build in the guest, from the command line to the checked results."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from moscope import workloads
from moscope.cli import Shared
from moscope.guest import initramfs
from moscope.runs import options
from moscope.runs.windows import FS_PER_MS

Moscope = Callable[..., Any]


def measured(moscope: Moscope, *arguments: str) -> dict[str, Any]:
    got = moscope("run", "--windows", "1", "--json", "--out", "out", *arguments, timeout=3600)
    assert got.returncode == 0, got.stderr
    (point,) = json.loads(got.stdout)["points"]
    return dict(point)


def built(guest: Any, *arguments: str) -> workloads.Results:
    guest.type(workloads.find("gmake").command(4, *arguments, "--compute", "1"))
    guest.wait_for("workbegin")
    guest.wait_for("workend")
    guest.wait_for(initramfs.PROMPT)
    got = workloads.Results.of(guest.console, "gmake")
    assert got.right and got.values["operations"] == guest.operations()
    return got


def test_builds_in_the_guest_count_their_files_and_end_after_as_many_as_wanted(booted: Callable[[], Any]) -> None:
    values = built(booted(), "--operations", "5", "--files", "12").values
    assert values["compiled"] == 20 and values["operations"] == 20 * 16 and values["builds"] == 2


def test_a_file_that_takes_a_quarter_longer_has_a_quarter_more_operations(booted: Callable[[], Any]) -> None:
    values = built(booted(), "--operations", "4", "--files", "16").values
    assert values["compiled"] == 16 and values["operations"] == 16 * 16 + 4


@pytest.mark.parametrize("short", [False, True])
def test_the_windows_of_a_build_cover_a_whole_one_on_many_cores(short: bool) -> None:
    wanted = {"window": options.SHORT} if short else {}
    points = options.make(Shared(quiet=True), options.Options("gmake", cores="1,12,24,48", **wanted)).points
    assert {p.windows for p in points} == {10}
    core_ms = {p.cores: p.cores * p.windows * p.window / FS_PER_MS for p in points}
    assert all(core_ms[n] >= 900 for n in (12, 24, 48)), "a build takes about 0.65 s of one core, a third more on 48"
    assert core_ms[1] == pytest.approx(500 / 3 if short else 500, rel=1e-3)
    assert {p.windows for p in options.make(Shared(quiet=True), options.Options("gmake", cores="1", windows=2)).points} == {2}


@pytest.mark.long
@pytest.mark.parametrize("cores", ["1", "4"])
@pytest.mark.parametrize("kernel", ["stock", "pk", "distro"])
def test_what_the_linker_makes_depends_on_every_file_and_is_right(kernel: str, cores: str, moscope: Moscope) -> None:
    point = measured(moscope, "--workload", "gmake", "--kernel", kernel, "--cores", cores)
    assert point["verified"] and point["ops"] > 0


@pytest.mark.long
def test_the_kernel_has_the_papers_share_of_a_build_on_one_core(moscope: Moscope) -> None:
    point = measured(moscope, "--workload", "gmake", "--kernel", "stock", "--cores", "1")
    assert 0.036 < point["kernel_share"] < 0.116
