# SPDX-License-Identifier: BSD-3-Clause
"""The examples: one NAME.toml each, found by listing the folder.

    title = "..."                 in lists, and above the page
    script = "c0 ld A@n0; ..."
    machine = "opteron48"         absent: opteron48
    protocol = "MSI"              absent: the machine's own
    set = ["KEY=VALUE"]           absent: none
    cores, caches, homes, seed    as the options of `moscope protocol check`
    checked = true                the protocol's messages carry the data, and the values found are checked; absent: false
    [[steps]]                     the text, in the order of reading
    at = 120.5                    the position that the text speaks of, in core cycles since the script began; absent: none
    text = "..."
    access = 2                    the access, counted from 1, at whose end `at` lies
    claims = [...]                what the text says, for the tests (claims.py)
"""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from moscope import readable
from moscope.config import load_machine
from moscope.errors import UserError, unknown_name
from moscope.stepping.spec import Spec

FOLDER = Path(__file__).parent
KEYS: dict[str, tuple[type, str]] = {
    **dict.fromkeys(("title", "script", "machine", "protocol", "caches"), (str, "a string")),
    **dict.fromkeys(("cores", "homes", "seed"), (int, "a whole number from 0")),
    "set": (list, "a list of strings"), "steps": (list, "tables"), "checked": (bool, "true or false")}
ITEMS: dict[str, type] = {"set": str, "steps": dict}


@dataclass(frozen=True)
class Example:
    name: str
    title: str
    spec: Spec
    steps: tuple[dict[str, Any], ...]

    def as_json(self) -> dict[str, Any]:
        shown = [{key: step[key] for key in ("at", "text") if key in step} for step in self.steps]
        return {"name": self.name, "title": self.title, "steps": shown}

    def shown_with(self, spec: Spec) -> dict[str, Any]:
        """The example as the history of a spec shows it. The text is true only of the example's own machine, protocol and seed. With
        another one, a note takes its place, and the history has no example's name."""
        machines = [load_machine(one.machine, one.all_sets) for one in (spec, self.spec)]
        if spec.seed == self.spec.seed and machines[0] == machines[1]:
            return self.as_json()
        note = f"The text of the example {self.name} is not shown: the example has another machine, protocol or seed than this history."
        return {**self.as_json(), "name": None, "steps": [{"text": note}] if self.steps else []}


def names() -> list[str]:
    return sorted(p.stem for p in FOLDER.glob("*.toml"))


def load(name: str) -> Example:
    if name not in names():
        raise unknown_name("--example", "example", name, names())
    return read(FOLDER / f"{name}.toml")


def is_file(script: str) -> bool:
    """Whether a script is the name of a file such as those of the examples."""
    return script.endswith(".toml")


def read(path: Path) -> Example:
    """A script file: an example, or a counterexample."""
    if why := readable.fault(path):
        raise UserError(f"{path}: {why}: expected a script file")
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a text file: expected a script file in TOML") from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: {error}: expected TOML") from error
    if unknown := sorted(set(given) - set(KEYS)):
        raise unknown_name(str(path), "key", unknown[0], KEYS)
    if absent := [key for key in ("title", "script") if key not in given]:
        raise UserError(f"{path}: no {absent[0]}: expected the keys title and script")
    for key, value in given.items():
        kind, expected = KEYS[key]
        if not _is(value, kind) or not all(_is(item, ITEMS[key]) for item in (value if kind is list else ())):
            raise UserError(f"{path}: {key}: {str(value):.40}: expected {expected}")
    spec = Spec(given["script"], given.get("machine", "opteron48"), given.get("protocol"), tuple(given.get("set", [])),
                given.get("seed", 1), cores=given.get("cores"), caches=given.get("caches", "machine"), homes=given.get("homes"),
                checked=given.get("checked", False))
    return Example(path.stem, given["title"], spec, tuple(given.get("steps", [])))


def _is(value: Any, kind: type) -> bool:
    """Whether a value has a type. A truth value is not a number, and numbers in a script file are neither negative nor larger
    than a seed may be."""
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53
    return isinstance(value, kind)
