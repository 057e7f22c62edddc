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


def test_the_windows_of_a_build_cover_a_whole_one_on_many_cores() -> None:
    cores = "1,12,24,48"
    usual = options.make(Shared(quiet=True), options.Options("gmake", cores=cores)).points
    quick = options.Options("gmake", cores=cores, window=options.SHORT, until_error="10%", windows=24)
    short = options.make(Shared(quiet=True), quick).points
    for points in (usual, short):
        assert all(p.cores * p.windows * p.window >= 2000 * FS_PER_MS for p in points if p.cores > 1)
    assert all(p.least and p.windows * p.window >= p.least for p in short) and all(p.least is None for p in usual)


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
