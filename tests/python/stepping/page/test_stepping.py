# SPDX-License-Identifier: BSD-3-Clause
"""The page in Chromium: what it shows at a position, and how it moves between positions."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moscope.stepping.page import html

RACE = "c0 ld A@n0 | c1 st A@n0 | c13 st B@n3; c6 rmw A@n0 | c7 ld A@n0; c0 ld B@n3; c42 st A@n0"
KINDS = ["transition", "message", "access", "invalidation", "moment"]
Document = dict[str, Any]


@pytest.fixture
def race(open_page: Callable[..., Any], history_of: Callable[[str], Document]) -> Any:
    return open_page(history_of(RACE))


def states_after(trace: Document, count: int) -> dict[str, dict[str, str]]:
    """States of the lines after that many transitions, from the trace alone."""
    states: dict[str, dict[str, str]] = {}
    for i, t in enumerate(trace["transitions"]):
        line = states.setdefault(t["address"], {})
        if i < count:
            line[t["controller"]] = t["next"]
        else:
            line.setdefault(t["controller"], t["state"])
    return states


def test_the_state_at_each_position_is_that_of_the_transitions_so_far(race: Any, history_of: Callable[[str], Document]) -> None:
    trace = history_of(RACE)["trace"]
    shown = race.evaluate("Array.from({length: moscope.length + 1}, (_, k) => (moscope.seek(k), moscope.state()))")
    assert [s["transitions"] for s in shown] == sorted(s["transitions"] for s in shown)
    assert shown[-1]["transitions"] == len(trace["transitions"])
    assert all(s["states"] == states_after(trace, s["transitions"]) for s in shown)
    assert not shown[-1]["flight"] and not shown[-1]["pending"]


def test_random_steps_forth_and_back_end_where_a_straight_run_ends(race: Any) -> None:
    draw = random.Random(7)
    steps = [[draw.choice(KINDS), draw.choice([1, -1])] for _ in range(150)]
    k, text = race.evaluate("steps => { for (const [kind, dir] of steps) moscope.step(kind, dir);"
                            " return [moscope.state().k, JSON.stringify(moscope.state())]; }", steps)
    straight = race.evaluate("k => { moscope.seek(0); for (let i = 1; i <= k; i += 1) moscope.seek(i);"
                             " return JSON.stringify(moscope.state()); }", k)
    assert text == straight


def test_without_javascript_the_page_says_that_it_needs_it(
        browser: Any, history_of: Callable[[str], Document], tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(html(history_of(RACE)), encoding="utf-8")
    page = browser.new_page(java_script_enabled=False)
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator("body").inner_text().startswith("This page shows nothing without JavaScript")
    page.close()


def test_a_step_back_returns_to_the_position_before(race: Any) -> None:
    for kind in ("transition", "access", "invalidation"):
        race.evaluate("moscope.seek(0)")
        went = race.evaluate("kind => { const way = [0]; while (moscope.step(kind, 1)) way.push(moscope.state().k); return way; }", kind)
        back = race.evaluate("kind => { const way = [moscope.state().k]; while (moscope.step(kind, -1)) way.push(moscope.state().k);"
                             " return way; }", kind)
        assert len(went) > 1
        assert back[:len(went) - 1] == went[:0:-1]


def test_the_tables_row_shows_the_state_before_and_after(race: Any) -> None:
    race.keyboard.press("t")
    changed = race.locator("#state tr.changed")
    assert changed.count() == 1
    assert changed.inner_text().split()[:6] == ["core", "0", "L1Cache-0", "I", "→", "IS"]
