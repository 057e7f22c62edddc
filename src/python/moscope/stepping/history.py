# SPDX-License-Identifier: BSD-3-Clause
"""The history of a script (moscope.history/1): its trace, the machine, the protocol, and each change of state in engine order.
The state at a moment is the result of all changes up to it (fold.py). docs/stepping.md lists the fields."""

from typing import Any

from moscope.errors import UserError
from moscope.experiment import Subject
from moscope.schema.constants import LINE
from moscope.stepping import machine as drawing
from moscope.stepping import protocol
from moscope.stepping.spec import Spec
from moscope.stepping.subject import prepared
from moscope.traces.document import described, document, run_phase, script_phase, with_remarks
from moscope.traces.script import ScriptAccess, parse
from moscope.traces.text import is_request

Document = dict[str, Any]
SCHEMA = "moscope.history/1"


def run(spec: Spec) -> Document:
    """The history of a spec on a fresh machine."""
    subject, _ = prepared(spec)
    return history(subject, spec)


def history(subject: Subject, spec: Spec) -> Document:
    accesses, answer = _simulated(subject, spec, [])
    trace = with_remarks(document(subject, accesses, spec.script, answer), accesses)
    _check_delays(spec, trace)
    return {
        "schema": SCHEMA,
        "spec": spec.as_json(),
        "lines": _lines(trace),
        "machine": drawing.drawn(subject),
        "protocol": protocol.tables(subject),
        "trace": trace,
        "changes": answer["changes"],
    }


def states_at(subject: Subject, spec: Spec, moments: list[int]) -> list[dict[str, Any]]:
    """The engine's own state when all events up to each moment have happened, in ascending order: `held`, the entries of each
    controller for each line, and `bytes`, each line's bytes in guest memory. Read from arrays and tables, not from the recorded
    changes."""
    looks: list[dict[str, Any]] = _simulated(subject, spec, moments)[1].get("looks", [])
    return looks


def _simulated(subject: Subject, spec: Spec, looks: list[int]) -> tuple[list[ScriptAccess], dict[str, Any]]:
    steps = parse(spec.script, subject.machine)
    added = [parse(f"c{a.core} {a.op} {a.address}", subject.machine)[0][0] for a in spec.added]
    phase = {**script_phase(steps, spec.checked), "states": True, "looks": looks, "delays": [d.as_json() for d in spec.delays],
             "added": [{**described(made), "at": a.at} for a, made in zip(spec.added, added, strict=True)]}
    accesses = [*(a for step in steps for a in step), *added]
    return accesses, run_phase(subject, accesses, phase)


def _check_delays(spec: Spec, trace: Document) -> None:
    for delay in spec.delays:
        message = trace["messages"][delay.message] if delay.message < len(trace["messages"]) else None
        what = "there is no such message" if message is None else "is a core's own request" if is_request(message) else (
            "comes from DRAM" if message["from"].startswith("DRAM") else "")
        if what:
            raise UserError(f"delays: message {delay.message}: {what}: expected a message that a controller sends")


def _lines(trace: Document) -> list[dict[str, Any]]:
    """The lines in play: address, name in the script, home node."""
    found: dict[int, dict[str, Any]] = {}
    for a in trace["accesses"]:
        at = int(a["address"], 16) // LINE * LINE
        found.setdefault(at, {"address": f"{at:#x}", "name": a["line"].split("+")[0], "home": a["home"]})
    return list(found.values())
