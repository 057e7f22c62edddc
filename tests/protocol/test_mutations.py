# SPDX-License-Identifier: BSD-3-Clause
"""The random tester notices seeded faults within a minute: as a wrong value, a protocol error, or by the watchdog."""

import shutil
import time
from pathlib import Path
from typing import Any

import pytest
from mutations import ALL, MOESI, SHORT, Mutation

from moscope import buildproto, paths, protocol_check
from moscope.errors import ProtocolError

SECONDS = 60  # of testing, the build not counted
CORES = 16
OPS = 250_000


def build(mutation: Mutation, folder: Path) -> Path:
    """The checking library of the mutated protocol."""
    source = buildproto.known_protocols()[mutation.protocol].parent
    for path in source.glob(f"{mutation.protocol}*"):
        shutil.copy(path, folder)
    mutation.apply(folder)
    generated, library = folder / "generated", folder / f"{mutation.protocol}.check.so"
    buildproto.generate(folder / f"{mutation.protocol}.slicc", generated)
    buildproto.compile_protocol(generated, library, True, paths.variant(), 2, lambda text: None)
    return library


def run_until_caught(subject: Any) -> tuple[str, int]:
    """How the fault showed, empty if it did not, and after how many accesses about."""
    began, done = time.monotonic(), 0
    for seed in range(1, 1000):
        try:
            answer = protocol_check.random_test(subject, OPS, seed)
        except ProtocolError as error:
            return f"protocol error: {str(error).splitlines()[0]}", done
        done += answer["ops"]
        if answer["violations"]:
            return f"wrong value: {answer['violations'][0]}", done
        if time.monotonic() - began > SECONDS:
            break
    return "", done




@pytest.mark.parametrize("mutation", [
    pytest.param(m, id=m.name, marks=[] if m.name in SHORT else [pytest.mark.long]) for m in ALL])
def test_a_seeded_fault_is_caught_within_a_minute(mutation: Mutation, subject: Any, tmp_path: Path) -> None:
    healthy = subject(mutation.protocol, CORES, sets=mutation.sets)
    library = build(mutation, tmp_path)
    began = time.monotonic()
    how, done = run_until_caught(healthy.with_library(library))
    took = time.monotonic() - began
    print(f"{mutation.name} ({mutation.what}): {took:.1f} s, {done:,} accesses: {how}")
    assert how, f"{mutation.name}: {mutation.what}: not noticed in {done:,} accesses"
    assert took < 2 * SECONDS  # the last run may end late on a busy host


@pytest.mark.parametrize("mutation", ALL, ids=lambda m: m.name)
def test_each_mutation_still_fits_its_protocol(mutation: Mutation, tmp_path: Path) -> None:
    source = buildproto.known_protocols()[mutation.protocol].parent
    for path in source.glob(f"{mutation.protocol}*.sm"):
        shutil.copy(path, tmp_path)
    mutation.apply(tmp_path)


def test_there_are_at_least_ten_for_the_main_protocol() -> None:
    assert len(MOESI) >= 10
    assert len({m.name for m in ALL}) == len(ALL)
    assert set(SHORT) <= {m.name for m in MOESI}
