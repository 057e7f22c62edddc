# SPDX-License-Identifier: BSD-3-Clause
"""The page against the engine: its state at random moments is the engine's own; long walks lose nothing; a long history stays small
and quick. The short forms run always, the full ones with --long."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope.stepping.history import history, states_at
from moscope.stepping.page import html
from moscope.stepping.spec import Spec
from moscope.stepping.subject import prepared

KINDS = ["transition", "message", "access", "invalidation", "moment"]
LINES = [0, 64, 1 << 22, 2 << 22]
MIB = 1 << 20
REPEATS = 3  # of a timed step: what else the machine does can only lengthen one, so the shortest counts
Document = dict[str, Any]
Open = Callable[..., Any]
Timed = Callable[[random.Random, str], str]


def script(rng: random.Random, accesses: int, cores: int = 48, nodes: int = 3) -> str:
    text = ""
    for _ in range(accesses):
        address = 0x10000 + (rng.randrange(nodes) << 33) + rng.choice(LINES) + 8 * rng.randrange(8)
        text += f"c{rng.randrange(cores)} {rng.choice(['ld', 'st', 'st', 'rmw'])} {address:#x}{rng.choice([' | ', '; '])}"
    return text.rstrip(" |;")


def check_truth(open_page: Open, seed: int, protocol: str | None, moments: int, timed: Timed | None = None) -> None:
    rng = random.Random(seed)
    spec = Spec(timed(rng, protocol or "MOESI_HTAssist") if timed else script(rng, rng.randint(6, 12)), protocol=protocol)
    subject = prepared(spec)[0]
    document = history(subject, spec)
    end = max(t["at"] for t in document["trace"]["transitions"])
    looks = states_at(subject, spec, sorted({0, *(rng.randrange(end + 10**6) for _ in range(moments))}))
    page = open_page(document)
    start = {(h["controller"], h["line"]): h for h in looks[0]["held"]}
    for look in looks:
        shown = page.evaluate("at => { moscope.seekTime(at); return moscope.state(); }", look["at"])
        for held in look["held"]:
            controller, line = held["controller"], held["line"]
            key = f"{line} {controller}"
            first = start[(controller, line)]
            assert shown["states"].get(line, {}).get(controller, first["state"]) == held["state"], (look["at"], key)
            assert shown["fields"].get(key, first["fields"] if key not in shown["states"].get(line, {}) else "") == held["fields"]
            assert shown["tbes"].get(key) == held["tbe"], (look["at"], key)
            assert shown["ways"].get(key, {}) == held["ways"], (look["at"], key)
        for line in look["bytes"]:
            assert shown["bytes"].get(line["line"], {"data": 64 * "00"})["data"] == line["bytes"], (look["at"], line["line"])


@pytest.mark.parametrize("protocol", [None, "MSI"])
def test_the_pages_state_is_the_engines(open_page: Open, protocol: str | None) -> None:
    check_truth(open_page, 100, protocol, 6)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(2, 8))])
def test_the_pages_state_of_a_script_with_moments_sizes_delays_and_devices_is_the_engines(
        open_page: Open, timed_script: Timed, seed: int) -> None:
    check_truth(open_page, seed, "MSI" if seed % 3 == 0 else None, 10, timed_script)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20))
def test_the_pages_state_is_the_engines_at_ten_moments_of_twenty_scripts(open_page: Open, seed: int) -> None:
    check_truth(open_page, seed, "MSI" if seed % 4 == 3 else None, 10)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("timed", [False, True], ids=["plain", "timed"])
def test_five_hundred_random_steps_end_where_a_straight_run_ends(open_page: Open, history_of: Callable[..., Document], seed: int,
                                                                 timed: bool, timed_script: Timed) -> None:
    rng = random.Random(seed)
    page = open_page(history_of(timed_script(rng, "MOESI_HTAssist") if timed else script(rng, 12)))
    steps = [[rng.choice(KINDS), rng.choice([1, 1, -1])] for _ in range(500)]
    k, text = page.evaluate("steps => { for (const [kind, dir] of steps) moscope.step(kind, dir);"
                            " return [moscope.state().k, JSON.stringify(moscope.state())]; }", steps)
    straight = page.evaluate("k => { moscope.seek(0); for (let i = 1; i <= k; i += 1) moscope.seek(i);"
                             " return JSON.stringify(moscope.state()); }", k)
    assert text == straight


@pytest.mark.long
def test_two_thousand_transitions_of_48_cores_stay_small_and_quick(open_page: Open, history_of: Callable[..., Document],
                                                                    tmp_path: Path) -> None:
    document = history_of(script(random.Random(5), 200))
    assert len(document["trace"]["transitions"]) >= 2000
    assert len(html(document).encode()) < 3 * MIB
    opened = []
    for _ in range(REPEATS):
        begun = time.monotonic()
        page = open_page(document)
        opened.append(time.monotonic() - begun)
    walk = """() => {
      const times = [];
      moscope.seek(0);
      for (let i = 0; i < 300; i += 1) {
        const begun = performance.now();
        if (i % 3) moscope.step(["transition", "message", "access"][Math.floor(i / 3) % 3], i % 2 ? 1 : -1);
        else moscope.seek((i * 7919) % moscope.length);
        document.body.offsetHeight;  // forces the layout
        times.push(performance.now() - begun);
      }
      return times;
    }"""
    walks = [page.evaluate(walk) for _ in range(REPEATS)]
    took = sorted(min(step) for step in zip(*walks, strict=True))
    print(f"opened in {min(opened):.2f} s; steps: median {took[150]:.1f} ms, 95 % below {took[285]:.1f} ms, longest {took[-1]:.1f} ms")
    assert min(opened) < 2
    assert took[-1] < 50
