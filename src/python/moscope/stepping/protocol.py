# SPDX-License-Identifier: BSD-3-Clause
"""The protocol of a history: its tables, each transition and action with its place in the sources, and the sources."""

from typing import Any

from moscope import buildproto
from moscope.config.bindings import roles_of
from moscope.experiment import Subject


def last_line(text: str, first: int) -> int:
    """The last line of the declaration that begins in line `first`: that of its closing brace or, without a body, of its ';'."""
    lines = text.splitlines()
    depth = 0
    for number in range(first, len(lines) + 1):
        quoted = False
        line = lines[number - 1]
        for at, c in enumerate(line):
            if c == '"':
                quoted = not quoted
            elif quoted:
                continue
            elif line.startswith("//", at):
                break
            elif c in "({":
                depth += 1
            elif c in ")}":
                depth -= 1
                if depth == 0 and c == "}":
                    return number
            elif c == ";" and depth == 0:
                return number
    return first


def tables(subject: Subject) -> dict[str, Any]:
    slicc = buildproto.find_protocol(str(subject.machine.protocol))
    sources = {buildproto.name_of(p, slicc): p.read_text(encoding="utf-8", errors="replace")
               for p in buildproto.protocol_inputs(slicc) if p.suffix in (".sm", ".slicc")}
    ends: dict[tuple[str, int], int] = {}

    def placed(item: dict[str, Any]) -> dict[str, Any]:
        key = (item["file"], item["line"])
        if key not in ends:
            ends[key] = last_line(sources.get(item["file"], ""), item["line"])
        return {**item, "last_line": ends[key]}

    machines = []
    for m in subject.interface["machines"]:
        used = {name for t in m["transitions"] for name in t["actions"]}
        machines.append({
            "type": m["type"], "description": m["desc"], "role": roles_of(m).role, "initial_state": m["initial_state"],
            "states": [{"name": s["name"], "permission": s["permission"], "description": s["desc"]} for s in m["states"]],
            "events": [{"name": e["name"], "description": e["desc"]} for e in m["events"]],
            "actions": [placed({"name": a["name"], "short": a["short"], "description": a["desc"], "file": a["file"],
                                "line": a["line"]}) for a in m["actions"] if a["name"] in used],
            "transitions": [placed(t) for t in m["transitions"]],
        })
    return {"name": subject.protocol, "machines": machines, "sources": sources}
