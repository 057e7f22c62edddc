# SPDX-License-Identifier: BSD-3-Clause
"""The parallel build in the guest, from the command line to the checked results."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from moscope import workloads
from moscope.guest import initramfs

Moscope = Callable[..., Any]


def measured(moscope: Moscope, *arguments: str) -> dict[str, Any]:
    got = moscope("run", "--windows", "1", "--json", "--out", "out", *arguments, timeout=3600)
    assert got.returncode == 0, got.stderr
    (point,) = json.loads(got.stdout)["points"]
    return dict(point)


def test_builds_in_the_guest_count_their_files_and_end_after_as_many_as_wanted(booted: Callable[[], Any]) -> None:
    guest = booted()
    guest.type(workloads.find("gmake").command(4, "--operations", "5", "--files", "12", "--compute", "1"))
    guest.wait_for("workbegin")
    guest.wait_for("workend")
    guest.wait_for(initramfs.PROMPT)
    got = workloads.Results.of(guest.console, "gmake")
    assert got.right and got.values["operations"] == guest.operations() == 20 and got.values["builds"] == 2


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
