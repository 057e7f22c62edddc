# SPDX-License-Identifier: BSD-3-Clause
"""A sweep as data: the kind of job, fixed parameters, axes, zips and exclusions. Read from a TOML file, or made from options.

A parameter is an option of the job (`cores`, `kernel`, ..., named as on the command line), `machine`, `seed`, or a key of `--set`.
Keys may be written as TOML reads them: `links.clock = [...]` is the same as `"links.clock" = [...]`.
"""

import math
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from moscope import readable
from moscope.errors import UserError, unknown_name
from moscope.schema.errors import ConfigError
from moscope.schema.units import Frequency, Quantity, Size, Time, Width

Value = str | int | float | bool
Params = dict[str, Value]
PARTS = ("job", "fixed", "axes", "zip", "exclude")
EXAMPLE = 'such as job = "trace"'


def text(value: Value) -> str:
    """A value as the command line takes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@lru_cache(typed=True)
def meaning(value: Value) -> str | Quantity:
    """Equal for values that say the same: `1GHz` and `1000MHz`. Other values are the same if their texts are."""
    for kind in (Frequency, Time, Size, Width):
        with suppress(ConfigError):
            return kind(text(value))
    return text(value)


def quoted(value: Value) -> str:
    """A value for an error: texts have quotes, so that "1" does not look like the number."""
    return f'"{value}"' if isinstance(value, str) else str(value)


@dataclass(frozen=True)
class Spec:
    """A sweep. `zips`: groups of axes that advance together. `exclude`: points that match all entries of one exclusion are left
    out."""

    job: str
    fixed: Params = field(default_factory=dict)
    axes: dict[str, list[Value]] = field(default_factory=dict)
    zips: list[list[str]] = field(default_factory=list)
    exclude: list[dict[str, list[Value]]] = field(default_factory=list)
    name: str = "sweep"
    where: str = "sweep"  # the beginning of errors: the name of the file

    def names(self) -> list[str]:
        """All parameters, axes last."""
        return [*(n for n in self.fixed if n not in self.axes), *self.axes]


def read(path: Path) -> Spec:
    """Reads a sweep file; UserError if it cannot be read or is not a sweep."""
    if why := readable.fault(path):
        raise UserError(f"{path}: {why}: expected a sweep file (docs/sweeps.md)")
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise UserError(f"{path}: is not a text file: expected a sweep file in TOML (docs/sweeps.md)") from None
    try:
        return from_document(tomllib.loads(text), path.stem, str(path))
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"{path}: {str(error)[:1].lower()}{str(error)[1:]}: expected TOML") from None


def from_document(document: dict[str, Any], name: str, where: str) -> Spec:
    for part in document:
        if part not in PARTS:
            raise unknown_name(where, "part of a sweep", part, PARTS)
    job = document.get("job")
    if not isinstance(job, str):
        raise UserError(f"{where}: {'job is not a string' if 'job' in document else 'names no job'}: expected {EXAMPLE}")
    axes = {key: _axis(f"{where}: axes.{key}", values) for key, values in _once(_table(document, "axes", where), f"{where}: axes")}
    fixed = {key: _scalar(f"{where}: fixed.{key}", value) for key, value in _once(_table(document, "fixed", where), f"{where}: fixed")}
    for key in fixed:
        if key in axes:
            raise UserError(f"{where}: {key}: is fixed and an axis: expected one of the two")
    exclude = _exclusions(document.get("exclude", []), where)
    for key, values in ((key, values) for entry in exclude for key, values in entry.items() if key in axes):
        for value in values:
            if meaning(value) not in map(meaning, axes[key]):
                raise UserError(f"{where}: exclude.{key}: {text(value)} is not a value of the axis: expected one of "
                                f"{', '.join(map(text, axes[key]))}")
    zips = _zips(document.get("zip", []), axes, where)
    _distinct(axes, zips, where)
    return Spec(job, fixed, axes, zips, exclude, name, where)


def _table(document: dict[str, Any], part: str, where: str) -> dict[str, Any]:
    table = document.get(part, {})
    if not isinstance(table, dict):
        raise UserError(f"{where}: {part}: is not a table: expected [{part}] with a line for each parameter")
    return table


def flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Entries with dotted keys."""
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _once(table: dict[str, Any], where: str) -> list[tuple[str, Any]]:
    """The entries with dotted keys, each key once: `"links.clock"` in quotes and links.clock are the same key."""
    found = list(flat(table))
    for key, _ in found:
        if [k for k, _ in found].count(key) > 1:
            raise UserError(f"{where}: {key}: appears twice: expected each parameter once")
    return found


def _scalar(where: str, value: Any) -> Value:
    if isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise UserError(f"{where}: {str(value)[:40]}: expected a string, number, true or false")


def _axis(where: str, values: Any) -> list[Value]:
    if not isinstance(values, list) or not values:
        raise UserError(f"{where}: {str(values)[:40]}: expected a list of one value or more")
    return [_scalar(where, v) for v in values]


def _distinct(axes: dict[str, list[Value]], zips: list[list[str]], where: str) -> None:
    """Raises UserError for a value that an axis has twice, and for a combination that zipped axes have twice."""
    zipped = {name for names in zips for name in names}
    for names in [*([name] for name in axes if name not in zipped), *zips]:
        steps = list(zip(*(map(text, axes[name]) for name in names), strict=True))
        for step in steps:
            if steps.count(step) > 1:
                one = f"axes.{names[0]}" if len(names) == 1 else f"zip of {', '.join(names)}"
                each = "value" if len(names) == 1 else "combination of values"
                raise UserError(f"{where}: {one}: {', '.join(step)} appears twice: expected each {each} once")


def _zips(zips: Any, axes: dict[str, list[Value]], where: str) -> list[list[str]]:
    if not isinstance(zips, list) or not all(isinstance(z, list) and all(isinstance(n, str) for n in z) for z in zips):
        raise UserError(f'{where}: zip: expected lists of axes, such as zip = [["chips", "topology"]]')
    zipped: set[str] = set()
    for names in zips:
        for name in names:
            if name not in axes:
                raise unknown_name(f"{where}: zip", "axis", name, axes)
            if name in zipped:
                raise UserError(f"{where}: zip: {name} appears twice: expected each axis once")
            zipped.add(name)
        if len({len(axes[n]) for n in names}) > 1:
            lengths = ", ".join(f"{n} has {len(axes[n])}" for n in names)
            raise UserError(f"{where}: zip: {lengths} values: expected equal numbers of values")
    return zips


def _exclusions(entries: Any, where: str) -> list[dict[str, list[Value]]]:
    if not isinstance(entries, list) or not all(isinstance(e, dict) and e for e in entries):
        raise UserError(f"{where}: exclude: expected [[exclude]] with a line for each parameter")
    return [{key: [_scalar(f"{where}: exclude.{key}", v) for v in (value if isinstance(value, list) else [value])]
             for key, value in flat(entry)} for entry in entries]
