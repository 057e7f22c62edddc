# SPDX-License-Identifier: BSD-3-Clause
"""Prefetchers change when lines come, and nothing else: values and memory order stay right with the one that fetches most, and
results do not depend on how the simulation is carried out."""

from typing import Any

import pytest
from litmus_table import load_table
from test_litmus import run
from test_lookahead import mix

from moscope import buildproto
from moscope.protocol import check as protocol_check

PROTOCOLS = sorted(buildproto.known_protocols())
EAGER = ("l1d_prefetch.policy=next_line", "l1d_prefetch.ahead=4", "l1i_prefetch.policy=next_line", "dram_prefetch.policy=stride")
STRIDES = ("l1d_prefetch.policy=stride", "l1i_prefetch.policy=next_line", "dram_prefetch.policy=stride")


@pytest.mark.parametrize("caches", ["tiny", "machine"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_value_read_was_current(subject: Any, protocol: str, caches: str) -> None:
    answer = protocol_check.random_test(subject(protocol, 12, caches=caches, sets=EAGER), 30_000)
    assert not answer["violations"], "\n".join(answer["violations"])
    assert answer["ops"] == 30_000


def litmus(engine: Any, machine: Any, rounds: int, seed: int) -> None:
    complaints = [test.complaint(run(engine, machine, test, rounds, seed), machine.machine["cores"])
                  for test in load_table() if test.fits(machine.machine["cores"]) and test.verdict != "seen"]
    assert not any(complaints), "\n".join(filter(None, complaints))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_forbidden_outcome(engine: Any, subject: Any, protocol: str) -> None:
    litmus(engine, subject(protocol, 4, sets=EAGER), 200, 1)


@pytest.mark.long
@pytest.mark.parametrize("cores", [2, 12, 48])
@pytest.mark.parametrize("caches", ["tiny", "machine"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_forbidden_outcome_in_many_runs(engine: Any, subject: Any, protocol: str, caches: str, cores: int) -> None:
    for seed in (1, 2, 3):
        litmus(engine, subject(protocol, cores, caches=caches, sets=EAGER), max(300, 12000 // cores), seed)


@pytest.mark.parametrize("sets", [EAGER, STRIDES], ids=["eager", "strides"])
@pytest.mark.parametrize("checking", [False, True], ids=["timing", "checking"])
def test_neither_lookahead_nor_threads_change_a_result(engine: Any, subject: Any, checking: bool, sets: tuple[str, ...]) -> None:
    machine = subject("MOESI_HTAssist", 12, caches="machine", jitter=None, sets=sets)
    ahead = mix(engine, machine, checking, False)
    assert sum(core["prefetch"]["fetched"] for core in ahead["statistics"]["cores"]) > (100 if sets == EAGER else 0)
    assert mix(engine, machine, checking, True) == ahead
    assert mix(engine, machine, checking, False, threads=1) == ahead
    assert mix(engine, machine, checking, False, threads=2) == ahead
