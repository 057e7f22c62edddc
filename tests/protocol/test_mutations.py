# SPDX-License-Identifier: BSD-3-Clause
"""The random tester notices seeded faults within a minute's accesses: as a wrong value, a protocol error, or by the watchdog."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutations import ALL, MOESI, SHORT, Mutation

from moscope import buildproto
from moscope.protocol import check as protocol_check
from moscope.protocol.check import Broken

BUDGET = 3_000_000  # accesses: a minute of them at 50 000 a second, the least that the tester is to make
CORES = 16
OPS = 250_000


def run_until_caught(subject: Any) -> tuple[str, int]:
    """How the fault showed, empty if it did not, and after how many accesses."""
    done = 0
    for seed in range(1, BUDGET // OPS + 1):
        try:
            answer = protocol_check.random_test(subject, OPS, seed)
        except Broken as error:
            return f"protocol error: {str(error).splitlines()[0]}", done + error.answer["ops"]
        done += answer["ops"]
        if answer["violations"]:
            return f"wrong value: {answer['violations'][0]}", done
    return "", done


@pytest.mark.parametrize("mutation", [
    pytest.param(m, id=m.name, marks=[] if m.name in SHORT else [pytest.mark.long]) for m in ALL])
def test_a_seeded_fault_is_caught_within_a_minute(mutation: Mutation, subject: Any, mutant: Callable[[Mutation], Path]) -> None:
    healthy = subject(mutation.protocol, CORES, sets=mutation.sets)
    how, done = run_until_caught(healthy.with_library(mutant(mutation)))
    print(f"{mutation.name} ({mutation.what}): {done:,} accesses: {how}")
    assert how, f"{mutation.name}: {mutation.what}: not noticed in {done:,} accesses"


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
