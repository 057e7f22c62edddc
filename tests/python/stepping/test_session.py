# SPDX-License-Identifier: BSD-3-Clause
"""A session: added accesses and delayed messages change what follows, and nothing before."""

from dataclasses import replace
from typing import Any

import pytest

from moscope.errors import UserError
from moscope.stepping.fold import fold
from moscope.stepping.history import history
from moscope.stepping.spec import Added, Delay, Spec
from moscope.stepping.subject import prepared

SPEC = Spec("c0 ld A@n0; c6 st A@n0 | c7 ld A@n0; c0 rmw A@n0; c1 ld B@n1", "small")


TIMED = Spec("c0 ld A@n0; c6 st A@n0:4 at 30ns | c7 ld A@n0 at 1ns; c0 rmw A@n0 Data>L1Cache-0+40ns; d0 st B@n1; c1 ld B@n1", "small")


def happened(document: dict[str, Any], until: int) -> dict[str, Any]:
    """All that a page shows of the time up to a moment."""
    trace = document["trace"]
    known = {(c["controller"], c["line"]) for c in document["changes"] if 0 < c["at"] <= until}
    return {
        "transitions": [t for t in trace["transitions"] if t["at"] <= until],
        "changes": [c for c in document["changes"] if c["at"] <= until and (c["at"] > 0 or (c["controller"], c["line"]) in known)],
        "sent": [(m["id"], m["type"], m["from"], m["sent"], m["fields"]) for m in trace["messages"] if m["sent"] <= until],
        "arrived": [(m["id"], d) for m in trace["messages"] for d in m["deliveries"] if d["at"] <= until],
        "hops": [(m["id"], h) for m in trace["messages"] for h in m["hops"] if h["arrive"] <= until],
    }


@pytest.fixture(scope="module")
def first() -> dict[str, Any]:
    return history(prepared(SPEC)[0], SPEC)


def moments(document: dict[str, Any]) -> list[int]:
    """Ten, between the first access and past the last."""
    end = max(a["done"] for a in document["trace"]["accesses"])
    return [end * n // 9 + 1000 for n in range(10)]


@pytest.mark.parametrize("spec", [SPEC, TIMED], ids=["plain", "timed"])
def test_forks_at_ten_moments_keep_what_happened_before(spec: Spec) -> None:
    subject = prepared(spec)[0]
    first = history(subject, spec)
    for number, at in enumerate(moments(first)):
        added = Added(at, number % 8, ("st", "ld", "rmw", "flush")[number % 4], "A@n0")
        forked = history(subject, replace(spec, added=(added,)))
        assert happened(forked, at) == happened(first, at)
        access = forked["trace"]["accesses"][-1]
        assert (access["core"], access["op"]) == (added.core, added.op)
        assert at < access["issued"] <= at + 416_667


@pytest.mark.parametrize("begin", [SPEC, TIMED], ids=["plain", "timed"])
def test_accesses_added_one_by_one_end_as_a_run_with_all_of_them(begin: Spec) -> None:
    subject, spec = prepared(begin)[0], begin
    first = history(subject, spec)
    steps = []
    for number, at in enumerate(moments(first)):
        spec = replace(spec, added=(*spec.added, Added(at, (5 * number) % 8, "st" if number % 2 else "ld", "B@n1")))
        steps.append(history(subject, spec))
    fresh = history(prepared(spec)[0], spec)
    assert fresh == steps[-1]
    for earlier, at in zip(steps, moments(first)[1:], strict=False):
        assert fold(earlier["changes"], at)["bytes"] == fold(fresh["changes"], at)["bytes"]
        assert happened(earlier, at) == happened(fresh, at)


@pytest.mark.parametrize("spec", [replace(SPEC, protocol="MOESI_HTAssist"), replace(SPEC, protocol="MSI"), TIMED],
                         ids=["MOESI_HTAssist", "MSI", "timed"])
def test_a_delayed_message_arrives_later_and_nothing_before_changes(spec: Spec) -> None:
    subject = prepared(spec)[0]
    first = history(subject, spec)
    flying = [m for m in first["trace"]["messages"] if m["network"] and m["hops"]]
    for m in flying[::4]:
        at, extra = m["hops"][0]["depart"], 50_000_000
        after = history(subject, replace(spec, delays=(Delay(m["id"], extra, at),)))
        assert happened(after, at) == happened(first, at)
        late = {d["to"]: d["at"] for d in after["trace"]["messages"][m["id"]]["deliveries"]}
        assert all(late[d["to"]] == d["at"] + (extra if d["at"] > at else 0) for d in m["deliveries"])


def test_a_message_that_is_delayed_again_arrives_later_still_and_nothing_before_changes(first: dict[str, Any]) -> None:
    subject = prepared(SPEC)[0]
    data = next(m for m in first["trace"]["messages"] if m["data"] and m["hops"])
    arrives, = (d["at"] for d in data["deliveries"])
    once = replace(SPEC, delays=(Delay(data["id"], 10**8, data["hops"][0]["depart"]),))
    at = arrives + 10**7  # it would have arrived without the first delay
    twice = replace(once, delays=(*once.delays, Delay(data["id"], 5 * 10**7, at)))
    assert happened(history(subject, twice), at) == happened(history(subject, once), at)
    assert [d["at"] for d in history(subject, twice)["trace"]["messages"][data["id"]]["deliveries"]] == [arrives + 15 * 10**7]


def test_the_segments_of_a_delayed_access_still_add_up_and_it_takes_longer(first: dict[str, Any]) -> None:
    data = next(m for m in first["trace"]["messages"] if m["data"] and m["hops"])
    later = history(prepared(SPEC)[0], replace(SPEC, delays=(Delay(data["id"], 10_000_000),)))
    assert later["trace"]["accesses"][data["access"]]["latency_fs"] >= first["trace"]["accesses"][data["access"]]["latency_fs"] + 10**7


@pytest.mark.parametrize("message, text", [(0, "own request"), (10**6, "no such message")])
def test_what_cannot_be_delayed_is_refused(message: int, text: str) -> None:
    with pytest.raises(UserError, match=text):
        history(prepared(SPEC)[0], replace(SPEC, delays=(Delay(message, 1),)))
