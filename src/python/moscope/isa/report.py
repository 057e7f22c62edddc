# SPDX-License-Identifier: BSD-3-Clause
"""Which instructions a machine's processor promises, and how the model treats each: the engine's table (decoded from all opcodes)
joined with the processor's description (which instructions are masked, and why)."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass

from moscope.config.cpu import cpu_json, load_processor
from moscope.config.machine import Machine
from moscope.isa.tests import tests_of

HOST = "beside the host (tests/cpu/x86/native)"


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
    compared: int = 0  # forms that are tested against the host's processor
    untested: tuple[str, ...] = ()  # reasons why the other forms are not compared, if they have no test of their own either


def how_tested(mnemonic: str, forms: int, compared: int, apart: list[str]) -> tuple[str, tuple[str, ...]]:
    """How an instruction is tested, in words, and the reasons of the forms that have no test."""
    said = [HOST if compared == forms else f"{compared} of {forms} forms {HOST}"] if compared else []
    own = {reason: tests_of(mnemonic, reason) for reason in apart}
    said += [f"{reason}: {', '.join(tests)}" for reason, tests in own.items() if tests]
    untested = tuple(reason for reason, tests in own.items() if not tests)
    return "; ".join(said + [f"no test: {', '.join(untested)}"] * bool(untested)), untested


def table(machine: Machine) -> list[Row]:
    """The instructions that CPUID promises, and those that the part has but the model masks. Instructions that the family never
    had are not listed; they raise #UD, as on the real processor."""
    from moscope import _engine

    masked = load_processor(str(machine.cpu)).masked
    rows = []
    for r in json.loads(_engine.isa_table(json.dumps(cpu_json(machine)))):
        compared = 0
        untested: tuple[str, ...] = ()
        if r["promised"]:
            status, compared = ("lacking" if r["lacking"] else "implemented"), r["compared"]
            note, untested = how_tested(r["mnemonic"], r["forms"], compared, r["apart"])
        elif r["feature"] in masked:
            status, note = "masked", masked[r["feature"]]
        else:
            continue
        rows.append(Row(r["mnemonic"], r["set"], r["feature"], status, r["group"] if status != "masked" else "", r["forms"],
                        tuple(r["lacking"]) if status == "lacking" else (), note, compared, untested))
    return sorted(rows, key=lambda r: (r.set, r.mnemonic))


def counts(rows: list[Row]) -> dict[str, int]:
    found = Counter(r.status for r in rows)
    return {status: found[status] for status in ("implemented", "lacking", "masked")}
