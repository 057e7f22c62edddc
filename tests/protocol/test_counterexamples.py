# SPDX-License-Identifier: BSD-3-Clause
"""Counterexamples: each seeded fault's failure shrinks to a few accesses, a script file repeats it, and a protocol without faults has
none."""

import json
import random
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mutations import ALL, MOESI, Mutation

import moscope as package
from moscope import _engine, buildproto, errors
from moscope.protocol import counterexample
from moscope.protocol.counterexample import record
from moscope.protocol.counterexample.replay import FIRST_DEVICE, Candidate, Delay, Outcome, Played, Player
from moscope.protocol.counterexample.shrink import Shrinker, minimal
from moscope.protocol.counterexample.write import Origin, script_text, title

CORES = 16
OPS = 250_000
MOST_ACCESSES = 10
MOST_SECONDS = 120
# Of both protocols: wrong values, requests without an answer, and messages that find no transition.
SHRUNK = ("msi-lost-ack", "msi-wrong-next-state", "msi-stale-data", "msi-kept-copy", "msi-missing-sharer", "msi-forgotten-unblock",
          "lost-ack", "wrong-next-state", "missing-invalidate", "upgrade-without-invalidation", "missing-filter-update",
          "forgotten-unblock", "silent-dirty-line")
SHORT = ("msi-kept-copy",)


@pytest.mark.parametrize("mutation", [pytest.param(m, id=m.name, marks=[] if m.name in SHORT else [pytest.mark.long]) for m in ALL])
def test_a_seeded_fault_has_a_script_that_repeats_it_with_at_most_ten_accesses_for_those_listed(
        mutation: Mutation, subject: Any, mutant: Callable[[Mutation], Path]) -> None:
    broken = subject(mutation.protocol, CORES, sets=mutation.sets).with_library(mutant(mutation))
    began = time.monotonic()
    found = counterexample.find(broken, OPS, 1, MOST_SECONDS)
    seconds = time.monotonic() - began
    assert found, f"{mutation.name}: {mutation.what}: no failure repeats"
    shrunk, recorded = found
    c = shrunk.candidate
    node = int(broken.machine["address_map"][0]["bytes"])
    print(f"{mutation.name}: {shrunk.outcome.kind}: {len(c.accesses)} of {recorded} accesses, {shrunk.replays} replays, {seconds:.1f} s: "
          f"{script_text(c, node) if c.hashed is None else 'delays by hash'}")
    assert shrunk.outcome.kind and c.hashed is None
    if mutation.name in SHRUNK:
        assert len(c.accesses) <= MOST_ACCESSES and seconds <= MOST_SECONDS


def test_at_least_twelve_seeded_faults_are_held_to_ten_accesses() -> None:
    assert len(SHRUNK) >= 12 and set(SHRUNK) <= {m.name for m in ALL} and set(SHRUNK) & {m.name for m in MOESI}


def test_accesses_that_did_not_end_count_as_accesses_of_the_run(subject: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = {"ops": 0, "protocol_error": "no size", "record": {"first": 7, "accesses": [[0, 0, 0, 8, 0]]}}
    monkeypatch.setattr(_engine, "run_random_test", lambda *_, **__: json.dumps(answer))
    monkeypatch.setattr(Player, "play", lambda *_: Outcome("error"))
    found = record.find(subject("MSI", 2), 10, 1, time.monotonic() + 60)
    assert found and found.ops == 8


def _random_accesses(rng: random.Random, machine: dict[str, Any], count: int, devices: bool) -> tuple[Played, ...]:
    bases = [node["base"] for node in machine["address_map"]][:2]
    made = []
    at = 0
    for i in range(count):
        at += rng.randrange(40_000_000)
        line = rng.choice(bases) + 0x10000 + 64 * rng.randrange(6)
        device = devices and rng.random() < 0.1
        kinds = ("ld", "st") if device else ("ld", "ld", "st", "rmw", "if", *(("flush", "nt", "ldu") if devices else ()))
        op = rng.choice(kinds)
        whole = op == "flush" or (op == "nt" and rng.random() < 0.5)
        agent = FIRST_DEVICE if device else rng.randrange(int(machine["cores"]))
        made.append(Played(i, agent, op, line if whole else line + 8 * rng.randrange(3), 64 if whole else 8, at))
    return tuple(made)


@pytest.mark.parametrize("protocol", ["MSI", "MOESI_HTAssist"])
def test_no_replay_of_a_protocol_without_faults_fails(protocol: str, subject: Any) -> None:
    healthy = subject(protocol, 8)
    player = Player(healthy)
    for seed in range(20):
        accesses = _random_accesses(random.Random(seed), healthy.machine, 200, protocol != "MSI")
        for c in (Candidate(accesses, hashed=(seed, 40_000_000)), Candidate(accesses[::3], one_by_one=True), Candidate(accesses[::2])):
            outcome = player.play(c)
            assert not outcome.kind, f"seed {seed}: {outcome.text}"


def test_a_search_that_finds_no_script_in_time_says_so(subject: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "old.toml").touch()
    monkeypatch.setattr(record, "find", lambda *_: None)
    for name in ("new.toml", "old.toml"):
        origin = Origin("MSI", "small", (), 2, "tiny", 1)
        assert counterexample.make(subject("MSI", 2), origin, 10, 1, 3, tmp_path / name, say=said.append) is None
    none = "no script was written: none that repeats the failure was found within 3 s"
    assert said == [none, f"{none}; {tmp_path / 'old.toml'} is from an earlier run"]


def test_only_a_missing_transition_is_called_no_answer_to_a_message() -> None:
    assert title(Outcome("error", "no transition: machine L1Cache-0, state M")) == "the protocol has no answer to a message"
    assert title(Outcome("error", "a TBE for this line is allocated already (machine L1Cache-0)")) == "a protocol error"


def test_a_minimal_failing_part_is_found_in_few_attempts() -> None:
    wanted = {3, 17, 64}
    tried = []

    def fails(some: Any) -> bool:
        tried.append(len(some))
        return wanted <= set(some)

    assert minimal(range(100), fails) == sorted(wanted)
    assert len(tried) < 150


class _Rule:
    """A player whose replays fail where a rule says so."""

    node_bytes, first_edge, played = 1 << 30, 0, 0

    def __init__(self, fails: Callable[[Candidate], bool]) -> None:
        self.rule = fails

    def play(self, c: Candidate) -> Outcome:
        return Outcome("value" if self.rule(c) else "", answer={"accesses": []})


def _shrunk(fails: Callable[[Candidate], bool]) -> Candidate:
    """What remains of three accesses with three delays and times, as a path of `protocol verify` has them."""
    us = 1_000_000_000
    accesses = tuple(Played(i, i, op, 0x10000, 8, 5 * us * i) for i, op in enumerate(("ld", "st", "ld")))
    delays = tuple(Delay(i, "GetS", "Directory-0", 0, 15 * us) for i in range(3))
    player: Any = _Rule(fails)
    return Shrinker(player, "value", time.monotonic() + 20).shrink(Candidate(accesses, delays=delays)).candidate


def test_listed_delays_of_a_path_are_left_out_and_shortened() -> None:
    def fails(c: Candidate) -> bool:
        of_load = [d.fs for d in c.delays if c.accesses[d.access].number == 0]
        stores = [a.at for a in c.accesses if a.number == 1]
        return bool(of_load and stores) and of_load[0] > stores[0] + 700_000_000 and stores[0] >= 30_000_000

    found = _shrunk(fails)
    assert script_text(found, 1 << 30) == "c0 ld A@n0 GetS>Directory-0+1000ns | c1 st A@n0 at 50ns"


def test_a_few_accesses_that_fail_in_another_order_one_by_one_need_no_delays() -> None:
    def fails(c: Candidate) -> bool:
        order = [a.number for a in c.accesses]
        return {0, 1} <= set(order) and (order.index(1) < order.index(0) if c.one_by_one else bool(c.delays))

    assert script_text(_shrunk(fails), 1 << 30) == "c1 st A@n0; c0 ld A@n0"


def wrong_next_state(folder: Path) -> Path:
    """A copy of MSI with a fault."""
    for path in buildproto.known_protocols()["MSI"].parent.glob("MSI*"):
        shutil.copy(path, folder)
    next(m for m in ALL if m.name == "msi-wrong-next-state").apply(folder)
    return folder / "MSI.slicc"


def test_in_python_a_failed_check_is_a_result_with_violations_and_a_script(tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    found = package.check(wrong_next_state(tmp_path), cores=8, caches="tiny", ops=20_000, counterexample=file, progress=False)
    assert not found.ok and found.violations and found.document["counterexample"]["file"] == str(file)
    assert found.violations[0].splitlines()[0] in found._repr_html_()
    replayed = package.trace(str(file)).document
    assert replayed["violations"] or replayed["protocol_error"]


def test_a_failed_check_writes_a_script_that_trace_replays_with_the_same_exit_code(moscope: Callable[..., Any], tmp_path: Path) -> None:
    wrong_next_state(tmp_path)
    got = moscope("protocol", "check", "MSI.slicc", "--ops", "20000", "--cores", "8", "--caches", "tiny", "--json", timeout=500)
    document = json.loads(got.stdout)
    found = document["counterexample"]
    assert not document["ok"] and found["accesses"] <= MOST_ACCESSES, got.stderr
    assert f"moscope trace {found['file']}" in got.stderr and found["script"] in got.stderr
    replayed = moscope("trace", found["file"], timeout=500)
    assert replayed.returncode == got.returncode != errors.OK, replayed.stderr
    assert "wrong: " in replayed.stdout
