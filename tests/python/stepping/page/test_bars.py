# SPDX-License-Identifier: BSD-3-Clause
"""Long walks lose nothing, and a long history stays small and quick."""

import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope.stepping.page import html

KINDS = ["transition", "message", "access", "invalidation", "moment"]
LINES = [0, 64, 1 << 22, 2 << 22]
MIB = 1 << 20
Document = dict[str, Any]
Open = Callable[..., Any]


def script(rng: random.Random, accesses: int, cores: int = 48, nodes: int = 3) -> str:
    text = ""
    for _ in range(accesses):
        address = 0x10000 + (rng.randrange(nodes) << 33) + rng.choice(LINES) + 8 * rng.randrange(8)
        text += f"c{rng.randrange(cores)} {rng.choice(['ld', 'st', 'st', 'rmw'])} {address:#x}{rng.choice([' | ', '; '])}"
    return text.rstrip(" |;")


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_five_hundred_random_steps_end_where_a_straight_run_ends(open_page: Open, history_of: Callable[..., Document], seed: int) -> None:
    rng = random.Random(seed)
    page = open_page(history_of(script(rng, 12)))
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
    begun = time.monotonic()
    page = open_page(document)
    opened = time.monotonic() - begun
    took = page.evaluate("""() => {
      const times = [];
      for (let i = 0; i < 300; i += 1) {
        const begun = performance.now();
        if (i % 3) moscope.step(["transition", "message", "access"][Math.floor(i / 3) % 3], i % 2 ? 1 : -1);
        else moscope.seek((i * 7919) % moscope.length);
        document.body.offsetHeight;  // forces the layout
        times.push(performance.now() - begun);
      }
      return times.sort((a, b) => a - b);
    }""")
    print(f"opened in {opened:.2f} s; steps: median {took[150]:.1f} ms, 95 % below {took[285]:.1f} ms, longest {took[-1]:.1f} ms")
    assert opened < 2
    assert took[285] < 50
