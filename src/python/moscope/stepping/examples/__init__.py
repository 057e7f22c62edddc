# SPDX-License-Identifier: BSD-3-Clause
"""The examples: one NAME.toml each, found by listing the folder.

    title = "..."                 in lists, and above the page
    script = "c0 ld A@n0; ..."
    machine = "opteron48"         absent: opteron48
    protocol = "MSI"              absent: the machine's own
    set = ["KEY=VALUE"]           absent: none
    [[steps]]                     the text, in the order of reading
    at = 120.5                    the position that the text speaks of, in core cycles since the script began; absent: none
    text = "..."
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope.errors import SimulatorBug, unknown_name
from moscope.stepping.spec import Spec

FOLDER = Path(__file__).parent
KEYS = {"title", "script", "machine", "protocol", "set", "steps"}


@dataclass(frozen=True)
class Example:
    name: str
    title: str
    spec: Spec
    steps: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "title": self.title, "steps": list(self.steps)}


def names() -> list[str]:
    return sorted(p.stem for p in FOLDER.glob("*.toml"))


def load(name: str) -> Example:
    if name not in names():
        raise unknown_name("--example", "example", name, names())
    given = tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))
    if wrong := sorted(set(given) - KEYS) or sorted({"title", "script"} - set(given)):
        raise SimulatorBug(f"example {name}: the key {wrong[0]!r} is unknown, or absent")
    spec = Spec(given["script"], given.get("machine", "opteron48"), given.get("protocol"), tuple(given.get("set", [])))
    return Example(name, given["title"], spec, tuple(given.get("steps", [])))
