# SPDX-License-Identifier: BSD-3-Clause
"""Cores that run ahead of the event queue change nothing: statistics are those of a lookahead of zero, bit for bit."""

import json
from typing import Any

import pytest

from moscope import buildproto
from moscope.protocol.check import WATCHDOG_FS

PROTOCOLS = sorted(buildproto.known_protocols())


def mix(engine: Any, subject: Any, checking: bool, zero_lookahead: bool, seed: int = 1, steps: int = 600, threads: int = 0,
        **request: int) -> Any:
    library = subject.protocol.checking() if checking else subject.protocol.timing
    return json.loads(engine.run_mix(subject.text, str(library), json.dumps({"steps": steps, "seed": seed, **request}),
                                     seed=seed, zero_lookahead=zero_lookahead, watchdog=WATCHDOG_FS, threads=threads))


@pytest.mark.parametrize("caches", ["tiny", "machine"])
@pytest.mark.parametrize("checking", [False, True], ids=["timing", "checking"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_lookahead_of_zero_gives_the_same_statistics(engine: Any, subject: Any, protocol: str, checking: bool,
                                                     caches: str) -> None:
    machine = subject(protocol, 48, caches=caches, jitter=None)
    ahead, zero = (mix(engine, machine, checking, z) for z in (False, True))
    assert ahead["statistics"] == zero["statistics"]
    assert ahead["finished_fs"] == zero["finished_fs"]
    assert ahead["hashes"] == zero["hashes"]
    hits = sum(core["inline_hits"] for core in ahead["statistics"]["cores"])
    others = sum(core["accesses"] for core in ahead["statistics"]["cores"])
    assert hits > (48 * 100 if caches == "machine" else 48 * 10) and others > 48 * 50  # the mix has both


@pytest.mark.parametrize("seed", range(1, 4))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_no_core_runs_beyond_the_arrival_of_an_invalidation_in_a_router(engine: Any, subject: Any, protocol: str, seed: int) -> None:
    """A few lines that two chips read and write: with MSI invalidations come over the link, and are nearer than any controller."""
    machine = subject(protocol, 12, caches="machine", jitter=None)
    ahead, zero = (mix(engine, machine, True, z, seed, 2000, shared_bytes=256) for z in (False, True))
    assert ahead == zero


@pytest.mark.parametrize("checking", [False, True], ids=["timing", "checking"])
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_chips_side_by_side_on_several_threads_change_nothing(engine: Any, subject: Any, protocol: str, checking: bool) -> None:
    machine = subject(protocol, 48, caches="machine", jitter=None)
    one_queue = mix(engine, machine, checking, False)
    for threads in (1, 2, 3, 8):
        assert mix(engine, machine, checking, False, threads=threads) == one_queue
    assert mix(engine, machine, checking, True, threads=2) == one_queue


def test_networks_without_links_or_with_random_delays_run_on_one_thread_only(engine: Any, subject: Any) -> None:
    from moscope.errors import UserError

    for other, says in ((subject("MSI", 12, network="ideal"), "without links"), (subject("MSI", 12), "random delays")):
        with pytest.raises(UserError, match=f"threads: .*{says}"):
            mix(engine, other, True, False, threads=2)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_same_seed_gives_the_same_run_and_another_seed_another(engine: Any, subject: Any, protocol: str) -> None:
    machine = subject(protocol, 12)
    a, b, c = (mix(engine, machine, True, False, seed) for seed in (5, 5, 6))
    assert a == b
    assert a["hashes"] != c["hashes"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_messages_without_data_change_no_timing(engine: Any, subject: Any, protocol: str) -> None:
    machine = subject(protocol, 12)
    timing, checking = (mix(engine, machine, checks, False) for checks in (False, True))
    assert timing["statistics"] == checking["statistics"]
    assert timing["hashes"] == checking["hashes"]


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1, 6))
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_lookahead_of_zero_gives_the_same_statistics_in_long_runs(engine: Any, subject: Any, protocol: str,
                                                                  seed: int) -> None:
    machine = subject(protocol, 48, caches="machine", jitter=None)
    ahead, zero = (mix(engine, machine, False, z, seed, steps=20_000) for z in (False, True))
    assert ahead == zero
