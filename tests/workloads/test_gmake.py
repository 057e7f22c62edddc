# SPDX-License-Identifier: BSD-3-Clause
"""The parallel build in the guest, from the command line to the checked results."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from moscope import workloads
from moscope.cli import Shared
from moscope.errors import UserError
from moscope.guest import initramfs
from moscope.mosbench import main
from moscope.runs import options
from moscope.schema.constants import FS_PER_MS

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


@pytest.mark.parametrize(("window", "error"), [(None, None), (options.SHORT, None), (options.SHORT, main.QUICK_ERROR)])
def test_the_windows_of_a_build_cover_a_whole_one_on_many_cores(window: str | None, error: str | None) -> None:
    given = options.Options(workload="gmake", cores="1,12,24,48", window=window, until_error=error,
                            windows=main.QUICK_WINDOWS if error else None)
    for p in options.make(Shared(quiet=True), given).points:
        assert p.windows * p.window >= min(1300 / p.cores + 14, 400) * FS_PER_MS
        assert p.cycle is not None and p.windows * p.window >= p.cycle


def test_fewer_windows_than_a_build_needs_are_refused_with_a_wanted_error() -> None:
    with pytest.raises(UserError, match=r"--windows: 10: expected 83 or more with --until-error, because the work of gmake repeats every"):
        options.make(Shared(quiet=True), options.Options(workload="gmake", cores="48", window="1ms", windows=10, until_error="5%"))


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
