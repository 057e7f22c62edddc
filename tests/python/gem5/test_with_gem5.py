# SPDX-License-Identifier: BSD-3-Clause
"""What the two engines have to agree in, with the gem5 that the environment variable GEM5 names."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope import jsonio
from moscope.gem5 import binary

Moscope = Callable[..., subprocess.CompletedProcess[str]]
HOUR = 3600.0


def asked(moscope: Moscope, *arguments: str, timeout: float = 600) -> dict[str, Any]:
    got = moscope(*arguments, "--json", timeout=timeout)
    assert got.returncode == 0, got.stderr + got.stdout[-4000:]
    document: dict[str, Any] = json.loads(got.stdout)
    jsonio.validate(document)
    return document


FILTER = pytest.mark.parametrize("filter_on", [True, False], ids=["filter", "broadcast"])


def random_test(moscope: Moscope, gem5: Path, cores: int, loads: int, filter_on: bool, timeout: float = 600) -> dict[str, Any]:
    return asked(moscope, "protocol", "check", "MOESI_HTAssist", "--engine", "gem5", "--gem5", str(gem5), "--cores", str(cores),
                 "--ops", str(loads), "--set", f"probe_filter.enabled={str(filter_on).lower()}", timeout=timeout)


@FILTER
def test_gem5s_random_tester_finds_nothing(moscope: Moscope, gem5: Path, filter_on: bool) -> None:
    document = random_test(moscope, gem5, 4, 2000, filter_on)
    assert document["ok"] and document["ops"] == 2000 and document["reached"] > 100


@pytest.mark.long
@FILTER
@pytest.mark.parametrize("cores", [1, 4, 16, 48])
def test_gem5s_random_tester_finds_nothing_in_100_000_loads(moscope: Moscope, gem5: Path, cores: int, filter_on: bool) -> None:
    assert random_test(moscope, gem5, cores, 100_000, filter_on, HOUR)["ok"]


@pytest.mark.parametrize("machine", ["small", pytest.param("opteron48", marks=pytest.mark.long)])
def test_latencies_of_the_ladder_are_within_5_percent(moscope: Moscope, gem5: Path, machine: str) -> None:
    here = asked(moscope, "latency", "--machine", machine)["rows"]
    there = asked(moscope, "latency", "--machine", machine, "--engine", "gem5", "--gem5", str(gem5), "--out", "there", timeout=HOUR)["rows"]
    assert [r["name"] for r in here] == [r["name"] for r in there]
    for ours, theirs in zip(here, there, strict=True):
        assert theirs["measured"] == pytest.approx(ours["measured"], rel=0.05), ours["name"]


def crosscheck(moscope: Moscope, gem5: Path, *options: str, timeout: float = 600) -> dict[str, Any]:
    return asked(moscope, "crosscheck", "--gem5", str(gem5), *options, timeout=timeout)


@pytest.mark.parametrize("script", [
    "c0 ld A@n0; c1 ld A@n0; c2 st A@n0; c0 ld A@n0; c2 flush A@n0; c3 if A@n0",
    "c0 st A@n1; c4 rmw A@n1; c7 st A@n1; c0 rmw A@n1; c1 ld B@n3; c1 st B@n3; c6 ld B@n3",
])
def test_scripted_accesses_do_the_same_on_both_engines(moscope: Moscope, gem5: Path, script: str) -> None:
    document = crosscheck(moscope, gem5, "--machine", "small", "--script", script)
    assert document["transitions_equal"] and document["states_equal"] and document["messages_equal"]


@FILTER
def test_random_accesses_one_at_a_time_do_the_same(moscope: Moscope, gem5: Path, filter_on: bool) -> None:
    document = crosscheck(moscope, gem5, "--machine", "small", "--accesses", "3000", "--set",
                          f"probe_filter.enabled={str(filter_on).lower()}")
    assert document["transitions_equal"] and document["states_equal"] and document["messages_equal"]


def test_random_accesses_at_the_same_time_keep_the_invariants_on_both(moscope: Moscope, gem5: Path) -> None:
    document = crosscheck(moscope, gem5, "--machine", "small", "--accesses", "3000", "--together")
    assert document["ok"] and not document["invariants"]["gem5"] and not document["invariants"]["moscope"]


@pytest.mark.long
@pytest.mark.parametrize("machine", ["small", "opteron48"])
def test_100_000_accesses_one_at_a_time_do_the_same(moscope: Moscope, gem5: Path, machine: str) -> None:
    document = crosscheck(moscope, gem5, "--machine", machine, timeout=HOUR)
    assert document["accesses"] == 100_000 and document["transitions_equal"] and document["states_equal"]


@pytest.fixture(scope="session", params=range(4))
def of_gem5(request: pytest.FixtureRequest) -> tuple[Path, Path]:
    """A binary of those that GEM5_OTHER names (`:` between them), each built with a protocol of gem5's own, and that protocol's file."""
    paths, folder = os.environ.get("GEM5_OTHER", "").split(":"), os.environ.get("GEM5_PROTOCOLS")
    if not folder or request.param >= len(paths) or not paths[request.param]:
        pytest.skip("needs gem5 with another protocol: GEM5_OTHER names binaries, GEM5_PROTOCOLS gem5's folder of protocols")
    path = Path(paths[request.param])
    return path, Path(folder) / f"{binary.ask(path).protocol}.slicc"


@pytest.mark.parametrize("machine, accesses", [("small", "3000"), pytest.param("small", "100000", marks=pytest.mark.long),
                                               pytest.param("opteron48", "100000", marks=pytest.mark.long)])
def test_a_protocol_of_gem5s_own_does_the_same_on_both_engines(moscope: Moscope, of_gem5: tuple[Path, Path], machine: str,
                                                               accesses: str) -> None:
    path, protocol = of_gem5
    document = crosscheck(moscope, path, "--machine", machine, "--accesses", accesses, "--set", f"protocol={protocol}", timeout=HOUR)
    assert document["transitions_equal"] and document["states_equal"] and document["messages_equal"]
    assert document["transitions"]["gem5"] > int(accesses) and not any(document["invariants"].values())
