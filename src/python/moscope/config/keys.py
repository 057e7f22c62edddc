# SPDX-License-Identifier: BSD-3-Clause
"""Dotted keys of a machine description: lists them with values and sources, and sets them from text (`--set
probe_filter.enabled=false`).
"""

from __future__ import annotations

import ast
import dataclasses
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from moscope.schema.errors import ConfigError, suggest
from moscope.schema.units import Size

from .machine import Described, Machine, coerce, field_kinds

# Mappings with keys that are not checked here, but by the code that reads them.
OPEN = ("dram.settings", "params")


@dataclasses.dataclass(frozen=True)
class Row:
    key: str
    value: Any
    source: str


def bytes_of(option: str, text: str) -> int:
    """The bytes of a size that an option gives; the error names the option."""
    try:
        return Size(text).bytes
    except ConfigError as error:
        raise error.at(option) from None


def walk(part: Described, prefix: str = "") -> Iterator[Row]:
    """Every value of the description, with its dotted key and source."""
    for name in field_kinds(type(part)):
        value, key = getattr(part, name), prefix + name
        if isinstance(value, Described):
            yield from walk(value, key + ".")
        elif isinstance(value, Mapping):
            for inner, v in value.items():
                yield Row(f"{key}.{inner}", v, getattr(v, "source", ""))
        elif value is not None:
            yield Row(key, value, getattr(value, "source", ""))


def known_keys(part: Described, prefix: str = "") -> list[str]:
    keys: list[str] = []
    for name in field_kinds(type(part)):
        value = getattr(part, name)
        keys += known_keys(value, f"{prefix}{name}.") if isinstance(value, Described) else [prefix + name]
    return keys


def apply_sets(machine: Machine, sets: Sequence[str]) -> Machine:
    """The machine with each `KEY=VALUE` applied in order; errors name the option."""
    for text in sets:
        key, equals, value = text.partition("=")
        key = key.strip()
        where = f"--set {text:.80}"
        if not equals or not key:
            raise ConfigError(f"{text!r:.40} is not an assignment", "--set KEY=VALUE, such as dram.channels=1", "--set")
        try:
            machine = typing.cast(Machine, _set(machine, machine, key.split("."), value.strip(), key))
        except ConfigError as error:
            raise error.at(where) from None
    return machine


def _set(whole: Machine, part: Described, path: list[str], text: str, key: str) -> Described:
    name, rest = path[0], path[1:]
    kinds = field_kinds(type(part))
    if name not in kinds:
        raise ConfigError(f"unknown key {key}", suggest(key, known_keys(whole)))
    value = getattr(part, name)
    if isinstance(value, Described):
        if not rest:
            raise ConfigError(f"{key} is a group of values", "one of " + ", ".join(known_keys(value, key + ".")))
        changed: Any = _set(whole, value, rest, text, key)
    elif isinstance(value, Mapping):
        if not rest:
            raise ConfigError(f"{key} is a group of values", f"--set {key}.NAME=VALUE")
        changed = {**value, ".".join(rest): _literal(text)}
    elif rest:
        raise ConfigError(f"unknown key {key}", f"{key[: -len('.'.join(rest)) - 1]}, a single value")
    elif name == "routing" and text.startswith("["):
        changed = coerce(kinds[name], _literal(text), key, "--set")
    else:
        changed = coerce(_one(kinds[name]), text, key, "--set")
    return dataclasses.replace(part, **{name: changed})  # type: ignore[type-var]  # `part` is a Described


def _one(kind: Any) -> Any:
    """The type of a field, without None if the field is optional."""
    options = [k for k in typing.get_args(kind) if k is not type(None)]
    return options[0] if len(options) == 1 else kind


def _literal(text: str) -> Any:
    """A value for an open mapping: true, false, a Python number or list, otherwise text."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, (int, float, str, list)) else text
