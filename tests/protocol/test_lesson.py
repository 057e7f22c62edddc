# SPDX-License-Identifier: BSD-3-Clause
"""The exercises of the lesson plan (docs/lesson.md) have the solutions that it gives, and its examples exist. Exercise B and the
tutorial's exercises are in test_tutorials.py."""

import re
from typing import Any

from test_tutorials import messages, trace

from moscope import paths
from moscope.stepping import examples

PAGE = (paths.root() / "docs/lesson.md").read_text(encoding="utf-8")


def cycles(document: dict[str, Any], access: int) -> int:
    return round(document["accesses"][access - 1]["latency_cycles"])


def test_the_examples_of_the_plan_exist() -> None:
    table = PAGE[PAGE.index("| minutes |"):PAGE.index("## Before")]
    named = re.findall(r"`([a-z-]+)`", table)
    assert named and set(named) == set(examples.names())


def test_exercise_a_the_store_of_the_only_user_takes_three_messages_with_msi_and_none_with_moesi() -> None:
    script = "c0 ld A@n0; c0 st A@n0"
    assert [m for m in messages(trace(script, "MSI"), 2) if m not in ("read", "data")] == ["GetM", "Data", "UnblockM"]
    assert messages(trace(script), 2) == []
    assert "**A.** With MSI 3: GetM, Data, UnblockM" in PAGE and "MOESI_HTAssist 0" in PAGE


def test_exercise_c_words_on_two_lines_hit() -> None:
    solution = re.search(r"\*\*C\.\*\* `([^`]+)`", PAGE)
    assert solution
    d = trace(solution[1])
    assert (cycles(d, 3), cycles(d, 4)) == (3, 3)
    assert trace("c0 st A@n0; c6 st B@n0+8; c0 st A@n0; c6 st B@n0+8")["accesses"][3]["latency_cycles"] < 4


def test_exercise_d_a_dirty_line_in_a_cache_is_nearer_than_dram() -> None:
    dirty, memory = cycles(trace("c0 st A@n0; c6 ld A@n0"), 2), cycles(trace("c6 ld A@n0"), 1)
    assert f"{dirty} cycles against {memory}" in PAGE


def test_exercise_e_the_home_broadcasts_to_all_chips_however_few_share() -> None:
    def probed_chips(readers: list[int]) -> int:
        script = "; ".join([*(f"c{c} ld A@n0" for c in readers), "c0 st A@n0"])
        d = trace(script)
        return sum(len(m["deliveries"]) for m in d["messages"]
                   if m["access"] == len(readers) and m["from"].startswith("Directory") and m["type"] == "ProbeInv")

    assert probed_chips([0, 6]) == probed_chips([0, 6, 12, 18, 24, 30]) == 8
