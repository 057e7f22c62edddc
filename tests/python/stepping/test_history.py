# SPDX-License-Identifier: BSD-3-Clause
"""The history of a script holds what its schema says, and its fold is the state that the trace gives."""

from typing import Any

import pytest

from moscope import jsonio
from moscope.stepping import page
from moscope.stepping.fold import fold
from moscope.stepping.history import run
from moscope.stepping.spec import Spec

SCRIPT = "c0 ld A@n0; c1 st A@n0 | c6 ld B@n1; c7 st A@n0; c0 rmw A@n0"


@pytest.fixture(scope="module", params=["MOESI_HTAssist", "MSI"])
def document(request: pytest.FixtureRequest) -> dict[str, Any]:
    return run(Spec(SCRIPT, "small", request.param))


def test_the_document_follows_its_schema(document: dict[str, Any]) -> None:
    jsonio.validate(document)


def test_the_last_entry_of_each_controller_is_the_state_after_its_last_transition(document: dict[str, Any]) -> None:
    last = {(t["controller"], t["address"]): t["next"] for t in document["trace"]["transitions"]}
    assert {key: entry["state"] for key, entry in fold(document["changes"], 1 << 62)["entry"].items()} == last


def test_each_transition_taken_has_its_lines_in_the_sources(document: dict[str, Any]) -> None:
    tables = {m["type"]: {(t["state"], t["event"]): t for t in m["transitions"]} for m in document["protocol"]["machines"]}
    for taken in document["trace"]["transitions"]:
        declared = tables[taken["machine"]][taken["state"], taken["event"]]
        lines = document["protocol"]["sources"][declared["file"]].splitlines()[declared["line"] - 1:declared["last_line"]]
        assert lines[0].strip().startswith("transition(")
        assert taken["event"] in "".join(lines)
        assert all(action in "".join(lines) for action in declared["actions"])


def test_two_thousand_transitions_on_48_cores_fit_into_a_page_of_3_mb() -> None:
    steps = [" | ".join(f"c{(7 * n + 5 * k) % 48} {('st', 'ld', 'rmw')[k % 3]} A@n{n % 2}" for k in range(4)) for n in range(40)]
    big = run(Spec("; ".join(steps)))
    assert len(big["trace"]["transitions"]) >= 2000
    assert len(page.html(big)) < 3_000_000


def test_the_machine_is_drawn_with_all_controllers_that_took_part(document: dict[str, Any]) -> None:
    drawn = {c["name"] for c in document["machine"]["controllers"]}
    assert {c["name"] for c in document["trace"]["controllers"]} <= drawn
    assert drawn == {name for chip in document["machine"]["chips"] for name in chip["controllers"]}
    hops = {frozenset((h["from"], h["to"])) for m in document["trace"]["messages"] for h in m["hops"]}
    assert hops <= {frozenset((link["from"], link["to"])) for link in document["machine"]["links"]}
