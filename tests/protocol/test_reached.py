# SPDX-License-Identifier: BSD-3-Clause
"""docs/warts.md lists the declared transitions that random testing has not reached: they exist, and are all there are."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from moscope import buildproto, paths
from moscope.protocol import check as protocol_check

PROTOCOLS = sorted(buildproto.known_protocols())
FILTER_OFF = ("probe_filter.enabled=false",)
OPS = 150_000
# Delays above all round trips let messages of whole transactions overtake each other.
PATIENT_FS = 20_000_000_000_000


def listed(protocol: str) -> set[str]:
    """MACHINE.STATE.EVENT of the document's rows."""
    text = (paths.root() / "docs" / "warts.md").read_text(encoding="utf-8")
    return set(re.findall(rf"^\| `{protocol} (\w+\.\w+\.\w+)` \|", text, re.MULTILINE))


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_transitions_that_warts_md_lists_are_declared(protocol: str) -> None:
    interface = json.loads(buildproto.ensure_protocol(protocol).interface.read_text(encoding="utf-8"))
    declared = {f"{m['type']}.{t['state']}.{t['event']}" for m in interface["machines"] for t in m["transitions"]}
    assert listed(protocol) and not listed(protocol) - declared
    counts = r"(\d+)\s+of\s+(\d+)\s+and\s+(\d+)\s+of\s+(\d+)"
    stated = re.search(counts, (paths.root() / "docs" / "warts.md").read_text(encoding="utf-8"))
    assert stated
    numbers = {"MOESI_HTAssist": stated.group(1, 2), "MSI": stated.group(3, 4)}[protocol]
    assert [int(n) for n in numbers] == [len(listed(protocol)), interface["declared"]]


@pytest.mark.long
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_declared_transition_is_reached_or_listed(subject: Any, protocol: str) -> None:
    switches: list[tuple[str, ...]] = [(), FILTER_OFF] if protocol == "MOESI_HTAssist" else [()]
    unreached: set[str] | None = None
    for seed in range(1, 13):
        for cores in (2, 3, 6, 8, 12, 48):
            for jitter in ("40ns", "400ns", "2us"):
                for sets in switches:
                    answer = protocol_check.random_test(subject(protocol, cores, sets=sets, jitter=jitter), OPS, seed,
                                                        watchdog_fs=PATIENT_FS)
                    assert not answer["violations"]
                    unreached = set(answer["unreached"]) & (unreached if unreached is not None else set(answer["unreached"]))
        if unreached is not None and unreached <= listed(protocol):
            return
    assert unreached is not None and not unreached - listed(protocol)
