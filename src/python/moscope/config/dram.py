# SPDX-License-Identifier: BSD-3-Clause
"""DRAM standards: tables in configs/dram, one file per standard, each a module with a dictionary `dram` in the
form that the engine reads (docs/dram.md). The machine adds the number of channels and its own settings;
`settings` may name a nested key with a dot (timing_fs.tRCD). Only the engine knows which keys and values are
valid, so it checks them."""

from __future__ import annotations

import copy
import functools
import json
import re
from pathlib import Path
from typing import Any

from moscope import contributed
from moscope.errors import UserError
from moscope.paths import root
from moscope.schema.errors import ConfigError, suggest
from moscope.schema.units import Count, Flag, Quantity, Size, Time

from .machine import Dram, field_kinds, replace

UNIT: dict[type[Quantity], str] = {Time: "fs", Size: "B"}


def standards_dir() -> Path:
    return root() / "configs" / "dram"


def standards() -> list[str]:
    return sorted(p.stem for p in standards_dir().glob("*.py") if not p.stem.startswith("_"))


@functools.cache
def _table(standard: str) -> dict[str, Any]:
    if standard not in standards():
        raise ConfigError(f"dram.standard: {standard!r:.60} is not known", suggest(standard, standards()))
    table: dict[str, Any] = contributed.defined(standards_dir() / f"{standard}.py", "dram", dict,
                                                "a dictionary `dram` (docs/extending/dram-standard.md)")
    return table


def dram_json(dram: Dram) -> dict[str, Any]:
    """The DRAM of one node as the engine reads it."""
    table = copy.deepcopy(_table(str(dram.standard)))
    table["channels"] = int(dram.channels)
    for key, value in dram.settings.items():
        group, name = table, key
        while "." in name and isinstance(group.get(name.split(".", 1)[0]), dict):
            head, name = name.split(".", 1)
            group = group[head]
        group[name] = _plain(value, key)
    return table


def check_dram(dram: Dram) -> None:
    """Raises a ConfigError that names the machine's key if the engine would refuse this DRAM."""
    refusal = _refusal(dram)
    if refusal is None:
        return
    what, _, right = refusal.rpartition(": ")
    key, _, wrong = what.removeprefix("dram.").partition(": ")
    right = right.removeprefix("expected ")
    if key == "burst_lengths" and key not in dram.settings and "ganged" not in dram.settings:
        fitting = [str(n) for n in (1, 2, 4, 8) if _refusal(replace(dram, channels=Count(n))) is None]
        if fitting:  # the parts match the standard, but this many channels cannot be ganged to one bus
            key, right = "channels", f"{' or '.join(fitting)}, or dram.settings.ganged=false"
            wrong = f"{dram.channels} channels are ganged: {wrong}"
    if (kind := _kind(key)) is not None:
        wrong, right = (re.sub(r"(?<!\S)-?\d+(?=[\s,]|$)", rf"\g<0>{UNIT[kind]}", text) for text in (wrong, right))
    name = f"dram.{key}" if key in field_kinds(Dram) and key not in dram.settings else f"dram.settings.{key}"
    raise ConfigError(f"{name}: {wrong}", right)


def _refusal(dram: Dram) -> str | None:
    """Why the engine would refuse this DRAM."""
    from moscope import _engine

    text = json.dumps(dram_json(dram))
    try:
        _engine.check_dram(text)
    except UserError as error:
        return str(error)
    return None


def _kind(key: str) -> type[Quantity] | None:
    """The kind of a quantity, for keys whose name gives the unit in which the engine counts; plain numbers are in that unit, too."""
    return Time if "_fs" in key else Size if key.endswith("_bytes") else None


def _plain(value: Any, key: str) -> Any:
    if isinstance(value, str) and re.match(r"\s*[-+]?\d", value):
        # A quantity with a unit, like all others; the key says in which unit the engine counts it.
        kind = _kind(key)
        if kind is not None:
            try:
                return int(kind(value).amount)
            except ConfigError as error:
                raise ConfigError(f"dram.settings.{key}: {error.what}", error.right) from None
    if isinstance(value, Time):
        return value.fs
    if isinstance(value, Size):
        return value.bytes
    if isinstance(value, Quantity):
        return int(value.amount)
    if isinstance(value, Flag):
        return bool(value)
    if isinstance(value, Count):
        return int(value)
    return value
