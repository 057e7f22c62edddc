# SPDX-License-Identifier: BSD-3-Clause
"""The input of a history: a script with everything that is needed to run it again. A session changes a copy of the spec and runs
it from the start, so each history depends only on its spec."""

from dataclasses import dataclass, replace
from typing import Any

from moscope.errors import UserError
from moscope.traces.script import OPS

MOST_FS = 10**13  # 10 ms of simulated time
LONGEST_DELAY_FS = MOST_FS // 100
MOST_CORES = 1 << 16


@dataclass(frozen=True)
class Added:
    """An access in addition to those of the script; it is issued at the first edge of the core's clock after `at`."""

    at: int
    core: int
    op: str
    address: str  # as in a script

    def as_json(self) -> dict[str, Any]:
        return {"at": self.at, "core": self.core, "op": self.op, "address": self.address}


@dataclass(frozen=True)
class Delay:
    """A message, by its number in the trace, that is delayed for each receiver at which it would arrive after the moment `after`."""

    message: int
    extra_fs: int
    after: int = 0

    def as_json(self) -> dict[str, Any]:
        return {"message": self.message, "extra_fs": self.extra_fs, "after": self.after}


@dataclass(frozen=True)
class Spec:
    script: str
    machine: str = "opteron48"
    protocol: str | None = None  # None: the machine's own
    sets: tuple[str, ...] = ()
    seed: int = 1
    added: tuple[Added, ...] = ()
    delays: tuple[Delay, ...] = ()
    # Further fields of counterexamples of `moscope protocol check` and of other script files.
    cores: int | None = None  # None: the machine's
    caches: str = "machine"  # or tiny
    homes: int | None = None  # None: all nodes
    checked: bool = False  # the protocol's messages carry the data, and the values found are checked

    @property
    def all_sets(self) -> list[str]:
        """The options --set of the machine, with that of the protocol."""
        return [*self.sets, *([f"protocol={self.protocol}"] if self.protocol else [])]

    def as_json(self) -> dict[str, Any]:
        return {"script": self.script, "machine": self.machine, "protocol": self.protocol, "set": list(self.sets), "seed": self.seed,
                "added": [a.as_json() for a in self.added], "delays": [d.as_json() for d in self.delays],
                "cores": self.cores, "caches": self.caches, "homes": self.homes, "checked": self.checked}


def _refuse(key: str, value: object, expected: str) -> UserError:
    return UserError(f"{key}: {str(value)[:60]!r}: expected {expected}")


def _number(given: dict[str, Any], key: str, most: int) -> int:
    value = given.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
        raise _refuse(key, value, f"a whole number from 0 to {most}")
    return value


def _text(given: dict[str, Any], key: str) -> str:
    value = given.get(key)
    if not isinstance(value, str):
        raise _refuse(key, value, "a string")
    return value


def _list(given: dict[str, Any], key: str) -> list[dict[str, Any]]:
    value = given.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise _refuse(key, value, "a list of objects")
    return value


def _added(given: dict[str, Any]) -> Added:
    op = _text(given, "op")
    if op not in OPS:
        raise _refuse("op", op, "one of " + ", ".join(OPS))
    return Added(_number(given, "at", MOST_FS), _number(given, "core", MOST_CORES), op, _text(given, "address"))


def _delay(given: dict[str, Any]) -> Delay:
    return Delay(_number(given, "message", (1 << 31) - 1), _number(given, "extra_fs", LONGEST_DELAY_FS),
                 _number(given, "after", MOST_FS) if "after" in given else 0)


def changed(spec: Spec, given: object) -> Spec:
    """The spec with the changes in a JSON object; values of absent keys stay. UserError for anything that does not fit."""
    if not isinstance(given, dict):
        raise _refuse("spec", given, "an object")
    known = set(spec.as_json())
    if unknown := sorted(set(given) - known):
        raise UserError(f"spec: no key {unknown[0]!r}: expected " + ", ".join(sorted(known)))
    new: dict[str, Any] = {key: _text(given, key) for key in ("script", "machine") if key in given}
    if given.get("protocol") is not None:
        new["protocol"] = _text(given, "protocol")
    elif "protocol" in given:
        new["protocol"] = None
    if "set" in given:
        if not isinstance(given["set"], list) or not all(isinstance(s, str) for s in given["set"]):
            raise _refuse("set", given["set"], "a list of KEY=VALUE")
        new["sets"] = tuple(given["set"])
    if "seed" in given:
        new["seed"] = _number(given, "seed", 2**53 - 1)
    for key in ("cores", "homes"):
        if key in given:
            new[key] = None if given[key] is None else _number(given, key, MOST_CORES)
    if "caches" in given:
        new["caches"] = _text(given, "caches")
    if "checked" in given:
        if not isinstance(given["checked"], bool):
            raise _refuse("checked", given["checked"], "true or false")
        new["checked"] = given["checked"]
    if "added" in given:
        new["added"] = tuple(_added(a) for a in _list(given, "added"))
    if "delays" in given:
        new["delays"] = tuple(_delay(d) for d in _list(given, "delays"))
    return replace(spec, **new)
