# SPDX-License-Identifier: BSD-3-Clause
"""Writes a shrunk failure as a script file, in the format of the examples (moscope.stepping.examples), and in words."""

import json
from dataclasses import dataclass
from typing import Any

from moscope.protocol.check import Subject
from moscope.protocol.counterexample.replay import FIRST_DEVICE, Candidate, Delay, Outcome, Played
from moscope.schema.constants import FS_PER_NS
from moscope.traces.script import WORD_BYTES, place_name

INITIAL, NO_ACCESS = -1, -2
TITLES = {"value": "an access finds a wrong value", "end": "the caches end in a wrong state", "stuck": "a request is never answered",
          "error": "a protocol error"}
NO_TRANSITION = "no transition"  # the beginning of the engine's error
WIDTH = 100


@dataclass(frozen=True)
class Origin:
    """How the failing test was asked for, so that its machine can be built again."""

    protocol: str  # name or path
    machine: str
    sets: tuple[str, ...]
    cores: int
    caches: str
    homes: int


def access_text(a: Played, node_bytes: int) -> str:
    who = f"d{a.agent - FIRST_DEVICE}" if a.agent >= FIRST_DEVICE else f"c{a.agent}"
    size = "" if a.size == WORD_BYTES or a.op == "flush" else f":{a.size}"
    return f"{who} {a.op} {place_name(a.address, node_bytes)}{size}"


def _time(fs: int) -> str:
    whole, part = divmod(fs, FS_PER_NS)
    return f"{whole}.{part:06d}".rstrip("0").rstrip(".") + "ns"


def _delay_text(d: Delay) -> str:
    return f"{d.message}{f'#{d.n}' if d.n else ''}>{d.to}+{_time(d.fs)}"


def script_text(c: Candidate, node_bytes: int) -> str:
    if c.one_by_one:
        return "; ".join(access_text(a, node_bytes) for a in c.accesses)
    return " | ".join(" ".join([access_text(a, node_bytes), *([f"at {_time(a.at)}"] if a.at else []),
                                *(_delay_text(d) for d in c.delays if d.access == i)])
                      for i, a in enumerate(c.accesses))


def named(texts: list[str], number: int) -> str:
    """Words for a value: that of the access at this position, the initial value, or one that no access wrote."""
    if number == INITIAL:
        return "the initial value"
    if number == NO_ACCESS:
        return "a value that no access wrote there"
    return f"the value of access {number + 1} ({texts[number]})"


def what(texts: list[str], violation: dict[str, Any], text: str) -> str:
    """A violation, or a protocol error, in one sentence. `texts`: the texts of the accesses."""
    if not violation:
        return text.splitlines()[0]
    if violation["access"] is None:
        return str(violation["text"]).splitlines()[0]
    expected = [named(texts, n) for n in violation["expected"][:3]]
    return (f"access {violation['access'] + 1} ({texts[violation['access']]}) found {named(texts, violation['found'])}; "
            f"expected {' or '.join(expected)}")


def title(outcome: Outcome) -> str:
    if outcome.kind == "error" and outcome.text.startswith(NO_TRANSITION):
        return "the protocol has no answer to a message"
    return TITLES[outcome.kind]


def toml(origin: Origin, subject: Subject, c: Candidate, outcome: Outcome) -> str:
    node = int(subject.machine["address_map"][0]["bytes"])
    texts = [access_text(a, node) for a in c.accesses]
    lines = [f"title = {_text(f'{subject.protocol.name}: {title(outcome)}')}",
             f"script = {_text(script_text(c, node))}",
             f"machine = {_text(origin.machine)}",
             f"protocol = {_text(origin.protocol)}",
             f"set = [{', '.join(_text(s) for s in origin.sets)}]",
             f"cores = {origin.cores}",
             f"caches = {_text(origin.caches)}",
             f"homes = {origin.homes}",
             "checked = true",
             "",
             "[[steps]]",
             f"text = {_text(_sentence(what(texts, outcome.violation, outcome.text)))}"]
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    return text[0].upper() + text[1:] + "."


def _text(value: str) -> str:
    """A TOML string; every JSON string is one."""
    return json.dumps(value)
