# SPDX-License-Identifier: BSD-3-Clause
"""Memory order on top of the protocols: TSO cores of the tests' own, on data that travels in messages."""

import json
from collections import Counter
from typing import Any

import pytest
from litmus_table import Litmus, load_table, parse_line

from moscope import buildproto
from moscope.protocol.check import WATCHDOG_FS

PROTOCOLS = sorted(buildproto.known_protocols())
TABLE = load_table()


def run(engine: Any, subject: Any, test: Litmus, rounds: int, seed: int) -> dict[str, Any]:
    request = test.request(subject.machine["cores"], rounds, seed)
    answer = engine.run_litmus(subject.text, str(subject.protocol.checking()), json.dumps(request), seed=seed,
                               watchdog=WATCHDOG_FS)
    got: dict[str, Any] = json.loads(answer)
    return got


def judge(engine: Any, subject: Any, rounds: int, seeds: range) -> None:
    cores, seen = subject.machine["cores"], Counter[str]()
    complaints = []
    for test in TABLE:
        if not test.fits(cores):
            continue
        for seed in seeds:
            answer = run(engine, subject, test, rounds, seed)
            copies = 1 if test.every else cores // len(test.threads)
            assert answer["runs"] >= rounds and answer["runs"] <= rounds * copies
            complaints += [text for text in [test.complaint(answer, cores)] if text]
            seen[test.name] += test.count(answer, cores)
    complaints += [f"{t.name}: {t.outcome} never came out" for t in TABLE
                   if t.verdict == "seen" and t.fits(cores) and not seen[t.name]]
    assert not complaints, "\n".join(complaints)


@pytest.mark.parametrize("cores", [2, 4, 48])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_forbidden_outcome_and_store_buffering_shows(engine: Any, subject: Any, protocol: str, cores: int) -> None:
    judge(engine, subject(protocol, cores), rounds={2: 1500, 4: 800, 48: 60}[cores], seeds=range(1, 2))


def test_no_forbidden_outcome_where_the_filter_is_off(engine: Any, subject: Any) -> None:
    off = subject("MOESI_HTAssist", 12, sets=("probe_filter.enabled=false",))
    judge(engine, off, rounds=100, seeds=range(1, 2))


@pytest.mark.long
@pytest.mark.parametrize("cores", [2, 3, 6, 16, 48])
@pytest.mark.parametrize("caches", ["tiny", "machine"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_forbidden_outcome_in_many_runs(engine: Any, subject: Any, protocol: str, caches: str, cores: int) -> None:
    judge(engine, subject(protocol, cores, caches=caches), rounds=max(300, 12000 // cores), seeds=range(1, 4))


def test_a_forbidden_outcome_is_noticed() -> None:
    test = parse_line("MP | x=1; y=1 | r0=y; r1=x | never r0=1 r1=0")
    good = {"runs": 3, "outcomes": [{"values": [1, 1, 1, 1], "count": 3}]}
    bad = {"runs": 3, "outcomes": [{"values": [1, 1, 1, 1], "count": 2}, {"values": [1, 0, 1, 1], "count": 1}]}
    assert not test.complaint(good, 2)
    assert "came out 1 times" in test.complaint(bad, 2)


def test_a_lost_increment_is_noticed() -> None:
    test = parse_line("INC | every: x+=1; x+=1 | always x=2N")
    assert not test.complaint({"runs": 1, "outcomes": [{"values": [12], "count": 1}]}, 6)
    assert "missed 1 times" in test.complaint({"runs": 1, "outcomes": [{"values": [11], "count": 1}]}, 6)


def test_outcomes_depend_on_the_seed_only(engine: Any, subject: Any) -> None:
    test = next(t for t in TABLE if t.name == "SB")
    a, b, c = (run(engine, subject("MSI", 8), test, 50, seed) for seed in (1, 1, 2))
    assert a == b
    assert a != c
