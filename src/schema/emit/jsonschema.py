# SPDX-License-Identifier: BSD-3-Clause
"""Descriptions as JSON Schema (2020-12), to be put into the schema of a document."""

from __future__ import annotations

from typing import Any

from moscope.schema.describe import Counters, Enumeration, Record


def enumeration(e: Enumeration) -> dict[str, Any]:
    return {"description": e.sentence, "enum": list(e.names)}


def by_member(e: Enumeration, value: dict[str, Any]) -> dict[str, Any]:
    """An object with one value for each member."""
    return {"type": "object", "additionalProperties": False, "required": list(e.names),
            "properties": {name: {"description": sentence, **value} for name, sentence in e.sentences.items()}}


def record(r: Record) -> dict[str, Any]:
    """A row as an object, its arrays by member, its flags as a list of those that are set."""
    found: dict[str, Any] = {}
    for f in r.fields:
        number: dict[str, Any] = {"type": "integer"} | ({"minimum": 0} if f.least == 0 else {})
        if f.each:
            value = by_member(f.each, number)
        elif f.values:
            value = {"enum": [*f.values.names, *([None] if f.none is not None else [])]}
        elif f.flags:
            value = {"type": "array", "items": {"enum": list(f.flags)}, "uniqueItems": True}
        else:
            value = number if f.none is None else {**number, "type": ["integer", "null"]}
        found[f.name] = {"description": described(f.sentence, f.unit), **value}
    return closed(found)


def counters(c: Counters) -> dict[str, Any]:
    """What counters_json (src/schema/config_reader.hh) writes. Keys may be added."""
    found: dict[str, Any] = {}
    for counter in c.in_files:
        number: dict[str, Any] = {"type": "integer", "minimum": 0}
        value = {"type": "object", "propertyNames": {"enum": list(counter.each.names)},
                 "additionalProperties": number} if counter.each else number
        found[counter.name] = {"description": described(counter.sentence, counter.unit), **value}
    return {"type": "object", "required": list(found), "properties": found}


def closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": list(properties), "properties": properties}


def described(sentence: str, unit: str) -> str:
    return f"{sentence} ({unit})" if unit else sentence
