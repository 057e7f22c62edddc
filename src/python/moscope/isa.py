# SPDX-License-Identifier: BSD-3-Clause
"""Which instructions a machine's processor promises, and what the model does about each: the engine's table (decoded from
all opcodes) joined with the processor's description (what is masked, and why)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from moscope.config.cpu import cpu_json, load_processor
from moscope.config.machine import Machine

HOST = "tests/cpu/x86/native: each form against the host"
OWN = "tests/cpu/x86: tests of its own"


@dataclass(frozen=True)
class Row:
    mnemonic: str
    set: str
    feature: str  # "" for what every processor has
    status: str  # implemented, lacking, masked
    group: str
    forms: int
    lacking: tuple[str, ...]  # bytes of an example of each form that the model lacks
    note: str  # how it is tested, or why it is masked


def table(machine: Machine) -> list[Row]:
    """What CPUID promises, and what the part has but the model masks. Instructions that the family never had are not
    listed: they raise #UD, as there."""
    from moscope import _engine

    masked = load_processor(str(machine.cpu)).masked
    rows = []
    for r in json.loads(_engine.isa_table(json.dumps(cpu_json(machine)))):
        if r["promised"]:
            status, note = ("lacking" if r["lacking"] else "implemented"), (HOST if r["user"] else OWN)
        elif r["feature"] in masked:
            status, note = "masked", masked[r["feature"]]
        else:
            continue
        rows.append(Row(r["mnemonic"], r["set"], r["feature"], status, r["group"] if status != "masked" else "", r["forms"],
                        tuple(r["lacking"]) if status == "lacking" else (), note))
    return sorted(rows, key=lambda r: (r.set, r.mnemonic))


def counts(rows: list[Row]) -> dict[str, int]:
    found = Counter(r.status for r in rows)
    return {status: found[status] for status in ("implemented", "lacking", "masked")}
