# SPDX-License-Identifier: BSD-3-Clause
"""The shape of run.json, point.json and stats.json (docs/run-directory.md) that their readers rely on. A user may have changed a
file."""

from typing import Any

from moscope import jsonio

Kind = type | tuple[type, ...]
NUMBER = (int, float)
# By key, the kind of its value and of the value's elements. A key may be missing or null. Deeper values have the types of the schemas.
RUN: dict[str, tuple[Kind, Kind]] = {"points": (list, dict), "failed": (list, dict), "config": (dict, object)}
CONFIG: dict[str, tuple[Kind, Kind]] = {
    "machine": (str, str), "set": (list, str), "points": (list, dict), "versions": (dict, object), "kernels": (dict, object),
    "description": (dict, object), "program": (dict, object), "folders": (dict, str), "hops": (list, list),
    "cores_per_chip": (int, object), "core_hz": (NUMBER, object)}
POINT: dict[str, tuple[Kind, Kind]] = {
    "cycles": (dict, NUMBER), "windows": (list, dict), "top_names": (list, dict), "top_lines": (list, dict), "made_from": (dict, object),
    "trend": (dict, NUMBER), "notes": (list, str), "cores": (int, object)}
STATS: dict[str, tuple[Kind, Kind]] = {"cores": (list, dict), "attribution": (dict, object), "machine": (dict, object)}
WORDS: dict[Kind, str] = {list: "a list", dict: "an object", str: "a string", int: "a number", NUMBER: "a number"}


def fault(run: dict[str, Any]) -> str:
    """The first deviation of a run.json from what a run writes: `its points: expected a list of objects`. The contents of its points
    are not checked. Empty if there is none."""
    without = {key: value for key, value in run.items() if key != "points"}
    return _fault(run, RUN, "") or _fault(run.get("config") or {}, CONFIG, "config.") or _mistyped(_given(without), "moscope.run/1")


def fault_of_point(point: dict[str, Any]) -> str:
    """The same of a point.json, and of a point in run.json."""
    return _fault(point, POINT, "") or _mistyped(_given(point), "moscope.point/1")


def fault_of_stats(stats: dict[str, Any]) -> str:
    """The same of a stats.json."""
    given = {key: value for key, value in stats.items() if value is not None}
    return _fault(stats, STATS, "") or _mistyped(given, "moscope.point.stats/1")


def _mistyped(found: dict[str, Any], schema: str) -> str:
    fault = jsonio.mistyped(found, schema)
    return fault and f"its {fault}"


def _given(found: Any) -> Any:
    """A document without the keys that are null."""
    if isinstance(found, dict):
        return {key: _given(value) for key, value in found.items() if value is not None}
    return [_given(one) for one in found] if isinstance(found, list) else found


def _fault(found: dict[str, Any], keys: dict[str, tuple[Kind, Kind]], within: str) -> str:
    for key, (kind, of) in keys.items():
        value = found.get(key)
        if value is None:
            continue
        inner = value if isinstance(value, list) else value.values() if isinstance(value, dict) else ()
        if not isinstance(value, kind) or not all(isinstance(one, of) for one in inner):
            elements = f" of {WORDS[of].partition(' ')[2]}s" if of in WORDS and kind in (list, dict) else ""
            return f"its {within}{key}: expected {WORDS[kind]}{elements}"
    return ""
