# SPDX-License-Identifier: BSD-3-Clause
"""The fold of a history equals the engine's own state, at random moments of random scripts."""

import random
from collections.abc import Callable
from typing import Any

import pytest

from moscope.stepping.fold import fold
from moscope.stepping.history import history, states_at
from moscope.stepping.spec import Added, Spec
from moscope.stepping.subject import prepared

MOMENTS = 10
OPS = ["ld", "st", "rmw", "if"]


def random_script(rng: random.Random, cores: int, nodes: int, ops: list[str]) -> str:
    """Up to twelve accesses to lines that lie in the same sets of every cache, some of them at the same time."""
    text = ""
    for _ in range(rng.randint(4, 12)):
        line = 0x10000 + rng.choice([0, 0, 0, 64, 1 << 22, 2 << 22, 3 << 22, 5 << 22]) + 8 * rng.randrange(8)
        node = rng.randrange(nodes)
        text += f"c{rng.randrange(cores)} {rng.choice(ops)} {(node << 33) + line:#x}{rng.choice([' | ', '; '])}"
    return text.rstrip(" |;")


def compare(document: dict[str, Any], look: dict[str, Any], start: dict[str, Any]) -> None:
    folded = fold(document["changes"], look["at"])
    at_first = {(h["controller"], h["line"]): h for h in start["held"]}
    for held in look["held"]:
        key = (held["controller"], held["line"])
        entry = folded["entry"].get(key, at_first[key])
        assert (entry["state"], entry["fields"]) == (held["state"], held["fields"]), (look["at"], key)
        assert folded["tbe"].get(key) == held["tbe"], (look["at"], key)
        assert folded["ways"].get(key, {}) == held["ways"], (look["at"], key)
    for line in look["bytes"]:
        data = folded["bytes"].get(line["line"], (bytearray(64), []))[0]
        assert data.hex() == line["bytes"], (look["at"], line["line"])


def moments_of(document: dict[str, Any], rng: random.Random) -> list[int]:
    changed = [c["at"] for c in document["changes"]]
    return sorted({0, *(rng.choice(changed) - rng.randint(0, 1) for _ in range(MOMENTS // 2)),
                   *(rng.randrange(max(changed) + 10**6) for _ in range(MOMENTS // 2))} - {-1})


def check_truth(spec: Spec, rng: random.Random) -> None:
    subject = prepared(spec)[0]
    document = history(subject, spec)
    moments = moments_of(document, rng)
    looks = states_at(subject, spec, moments)
    assert [look["at"] for look in looks] == moments
    for look in looks:
        compare(document, look, looks[0])


@pytest.mark.parametrize("sets", [(), ("probe_filter.enabled=false",), ("protocol=MSI",)], ids=["filter", "broadcast", "MSI"])
@pytest.mark.parametrize("seed", range(7))
def test_the_fold_is_the_engines_state(seed: int, sets: tuple[str, ...]) -> None:
    rng = random.Random(seed)
    check_truth(Spec(random_script(rng, 12, 2, OPS if "protocol=MSI" in sets else [*OPS, "flush"]), "opteron48", sets=sets), rng)


@pytest.mark.parametrize("protocol", ["MOESI_HTAssist", "MSI"])
@pytest.mark.parametrize("seed", range(5))
def test_the_fold_of_a_script_with_moments_sizes_delays_and_devices_is_the_engines_state(
        seed: int, protocol: str, timed_script: Callable[[random.Random, str], str]) -> None:
    rng = random.Random(seed)
    script = timed_script(rng, protocol)
    added = (Added(rng.randrange(10**9), 3, "st", "A@n0+8:8"),)
    check_truth(Spec(script, "opteron48", sets=(f"protocol={protocol}",)), rng)
    check_truth(Spec(script, "opteron48", sets=(f"protocol={protocol}",), added=added), rng)


def test_a_line_has_its_state_in_whichever_array_it_lies() -> None:
    """Fetched into the L1I, or evicted from the L1D into the L2: three lines of one set of two ways."""
    spec = Spec("c0 if A@n0; c1 ld 0x10000; c1 ld 0x20000; c1 ld 0x30000", "opteron48")
    subject = prepared(spec)[0]
    end = max(a["done"] for a in history(subject, spec)["trace"]["accesses"])
    (look,) = states_at(subject, spec, [end + 10**6])
    held = [(way, h["state"]) for h in look["held"] if h["controller"].startswith("L1Cache") for way in h["ways"]]
    assert {way for way, _ in held} == {"L1Icache", "L1Dcache", "L2cache"}
    assert all(state != "I" for _, state in held), held


def test_a_delay_of_the_script_delays_its_message_alone() -> None:
    plain, late = (history(prepared(spec)[0], spec)["trace"] for spec in (
        Spec("c0 st A@n0; c6 st A@n0 at 10ns"), Spec("c0 st A@n0; c6 st A@n0 at 10ns Data>L1Cache-6+40ns")))
    taken = [[a["done"] for a in trace["accesses"]] for trace in (plain, late)]
    assert taken[1] == [taken[0][0], taken[0][1] + 40_000_000]


def test_a_device_that_writes_is_named_in_the_bytes() -> None:
    spec = Spec("c0 st A@n0; d0 st A@n0+8:16; c6 ld A@n0+8")
    document = history(prepared(spec)[0], spec)
    written = [c for c in document["changes"] if c["kind"] == "bytes"]
    assert [(c["controller"].split("-")[0], c["offset"], len(c["bytes"]) // 2, c["access"]) for c in written] == [
        ("L1Cache", 0, 8, 0), ("DMA", 8, 16, 1)]
    assert [a["value_of"] for a in document["trace"]["accesses"]] == [None, None, 1]


def test_a_replaced_line_is_named() -> None:
    spec = Spec("; ".join(f"c0 ld {0x10000 + (n << 22):#x}" for n in range(6)), "opteron48")
    ways = [c for c in history(prepared(spec)[0], spec)["changes"] if c["kind"] == "way" and c["array"] == "probeFilter" and c["way"]]
    assert [c["replaced"] for c in ways] == [None, None, None, None, "0x10000", f"{0x10000 + (1 << 22):#x}"]


def test_looking_changes_nothing() -> None:
    spec = Spec("c0 st A@n0; c6 ld A@n0 | c7 st A@n0; c0 rmw A@n0", "small")
    subject = prepared(spec)[0]
    before = history(subject, spec)
    states_at(subject, spec, list(range(0, 10**9, 10**7)))
    assert history(subject, spec) == before
