# SPDX-License-Identifier: BSD-3-Clause
"""Protocols as gem5 24 ships them, from the folder that the environment variable GEM5_PROTOCOLS names (src/mem/ruby/protocol
of a gem5 tree): they compile unmodified and pass the random test on 16 cores, as they do there: with one home, no devices."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from moscope import buildproto
from moscope.buildproto import BuiltProtocol
from moscope.errors import ProtocolError
from moscope.protocol import check as protocol_check

CORES, OPS = 16, 200_000


@pytest.fixture(scope="session")
def folder() -> Path:
    name = os.environ.get("GEM5_PROTOCOLS")
    if not name:
        pytest.skip("needs gem5's protocols: the environment variable GEM5_PROTOCOLS names no folder")
    return Path(name)


@pytest.fixture(scope="session", params=["MI_example", "MESI_Two_Level", "MESI_Three_Level", "MOESI_hammer", "MOESI_CMP_directory",
                                        "MOESI_CMP_token", "chi/CHI"])
def built(request: pytest.FixtureRequest, folder: Path) -> BuiltProtocol:
    return buildproto.ensure_protocol(str(folder / f"{request.param}.slicc"))


def test_the_protocol_builds_with_warnings_and_without_errors(built: BuiltProtocol) -> None:
    assert ": warning: " in built.warnings and ": error: " not in built.warnings


@pytest.mark.parametrize("seed", [1, 2])
def test_it_passes_the_random_test_with_one_home(built: BuiltProtocol, seed: int) -> None:
    subject = protocol_check.prepare(built, "opteron48", cores=CORES)
    assert subject.homes == 1
    answer = protocol_check.random_test(subject.leave_out(subject.default_left_out()), OPS, seed)
    assert answer["ops"] == OPS and not answer["violations"]
    assert answer["checked_loads"] > OPS / 2


def test_the_protocol_passes_with_eight_homes_but_mi_example_stops(built: BuiltProtocol) -> None:
    """docs/slicc.md, "Stalled forwards", says why one of them stops."""
    subject = protocol_check.prepare(built, "opteron48", cores=CORES, homes=8)
    subject = subject.leave_out(subject.default_left_out())
    if built.name == "MI_example":
        with pytest.raises(ProtocolError, match="no progress"):
            protocol_check.random_test(subject, OPS, 1)
    else:
        assert not protocol_check.random_test(subject, OPS, 1)["violations"]


@pytest.mark.long
@pytest.mark.parametrize("name", ["MESI_Three_Level_HTM", "MOESI_AMD_Base", "Garnet_standalone", "GPU_VIPER"])
def test_the_others_compile_and_end_with_a_verdict(folder: Path, moscope: Callable[..., subprocess.CompletedProcess[str]],
                                                   name: str) -> None:
    """docs/slicc.md, "Results", says which violations three of them have."""
    got = moscope("protocol", "check", str(folder / f"{name}.slicc"), "--ops", str(OPS), "--cores", "4", "--shrink", "0", timeout=600)
    assert got.returncode == 0 if name == "MESI_Three_Level_HTM" else got.returncode in (1, 3), got.stderr
    assert "simulator bug" not in got.stderr and "Traceback" not in got.stderr


@pytest.mark.parametrize("name, states", [("MI_example", 900), ("MESI_Two_Level", 20_000)])
def test_it_holds_in_every_state_of_two_caches(moscope: Callable[..., subprocess.CompletedProcess[str]], folder: Path, name: str,
                                               states: int) -> None:
    """MESI_Two_Level puts requests of a core into a queue of its own, for its prefetcher."""
    got = moscope("protocol", "verify", str(folder / f"{name}.slicc"), "--json", "--shrink", "0", timeout=600)
    assert got.returncode == 0, got.stderr
    document = json.loads(got.stdout)
    assert document["complete"] and document["liveness"] and document["states"] > states
