# SPDX-License-Identifier: BSD-3-Clause
"""The history of a script (moscope.history/1): its trace, the machine, the protocol, and each change of state in engine order. The
state at a moment is what the changes up to it leave (fold.py). docs/stepping.md lists the fields."""

from typing import Any

from moscope.errors import UserError
from moscope.experiment import Subject
from moscope.stepping import machine as drawing
from moscope.stepping import protocol
from moscope.stepping.spec import Spec
from moscope.stepping.subject import prepared
from moscope.traces.document import run_script
from moscope.traces.script import LINE, parse

Document = dict[str, Any]
SCHEMA = "moscope.history/1"


def run(spec: Spec) -> Document:
    """The history of a spec on a fresh machine."""
    subject, _ = prepared(spec)
    return history(subject, spec)


def history(subject: Subject, spec: Spec) -> Document:
    for key, given in (("added", spec.added), ("delays", spec.delays)):
        if given:
            raise UserError(f"{key}: this version runs scripts alone: expected none; change the script")
    trace = run_script(subject, parse(spec.script, subject.machine), spec.script, spec.checked)
    return {
        "schema": SCHEMA,
        "spec": spec.as_json(),
        "lines": _lines(trace),
        "machine": drawing.drawn(subject),
        "protocol": protocol.tables(subject),
        "trace": trace,
        "changes": _changes(trace),
    }


def _lines(trace: Document) -> list[dict[str, Any]]:
    """The lines in play: address, name in the script, home node."""
    found: dict[int, dict[str, Any]] = {}
    for a in trace["accesses"]:
        at = int(a["address"], 16) // LINE * LINE
        found.setdefault(at, {"address": f"{at:#x}", "name": a["line"].split("+")[0], "home": a["home"]})
    return list(found.values())


def _changes(trace: Document) -> list[dict[str, Any]]:
    begun: dict[tuple[str, str], str] = {}
    changes = []
    for i, t in enumerate(trace["transitions"]):
        begun.setdefault((t["controller"], t["address"]), t["state"])
        changes.append({"at": t["at"], "transition": i, "controller": t["controller"], "line": t["address"], "kind": "entry",
                        "state": t["next"], "fields": ""})
    first = [{"at": 0, "transition": None, "controller": c, "line": line, "kind": "entry", "state": state, "fields": ""}
             for (c, line), state in begun.items()]
    return first + changes
