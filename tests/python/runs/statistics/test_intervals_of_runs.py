# SPDX-License-Identifier: BSD-3-Clause
"""What `--until-error` and `compare` state about real runs; minutes to an hour."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Moscope = Callable[..., "subprocess.CompletedProcess[str]"]
REPETITIONS, BAR = 20, 17
NOISY = ("--workload", "pglseek", "--kernel", "distro", "--cores", "4", "--warmup", "500us", "--window", "100us")


def measured(moscope: Moscope, *options: str) -> dict[str, Any]:
    got = moscope("run", *options, "--json", "--quiet", timeout=3600)
    assert got.returncode == 0, got.stderr
    point: dict[str, Any] = json.loads(got.stdout)["points"][0]
    return point


@pytest.mark.long
def test_intervals_hold_the_long_run_mean_in_17_of_20_runs(moscope: Moscope) -> None:
    mean = measured(moscope, *NOISY, "--windows", "600", "--seed", "1000", "--out", "long")["throughput_per_s"]
    held = 0
    for seed in range(1, REPETITIONS + 1):
        point = measured(moscope, *NOISY, "--until-error", "3%", "--windows", "100", "--seed", str(seed), "--out", f"run-{seed}")
        assert point["until_error"]["met"], point["until_error"]
        held += abs(point["throughput_per_s"] - mean) <= point["confidence"]["figures"]["throughput_per_s"]["half_width"]
    assert held >= BAR


@pytest.mark.long
def test_compare_blames_vfsmount_lock_for_the_slower_stock_kernel_and_finds_another_seed_alike(moscope: Moscope, tmp_path: Path) -> None:
    for out, kernel, seed in (("stock", "stock", "1"), ("pk", "pk", "1"), ("again", "stock", "2")):
        measured(moscope, "--workload", "exim", "--kernel", kernel, "--cores", "24", "--seed", seed, "--out", out)

    def compared(a: str, b: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(moscope("compare", str(tmp_path / a), str(tmp_path / b), "--json").stdout)
        return found

    against_pk = compared("stock", "pk")
    assert against_pk["lines"][0]["name"] == "vfsmount_lock" and against_pk["alike"] is False
    assert compared("stock", "again")["alike"] is True
