# SPDX-License-Identifier: BSD-3-Clause
"""All descriptions by name, for what names them in text: marked blocks of reference pages, parts of JSON Schemas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from moscope.schema import card, counters, dram, enumerations, hierarchy, links, nic, pipeline, prefetch, records, stacks
from moscope.schema.describe import BadDescription, Counters, Enumeration, Record, Table
from moscope.schema.emit import jsonschema, markdown
from moscope.schema.parameters import Group

MODULES = (enumerations, records, counters, pipeline, hierarchy, links, dram, nic, card, prefetch, stacks)
ALL: dict[str, Any] = {d.name: d for module in MODULES for d in (*module.DESCRIPTIONS, *getattr(module, "TABLES", ()))}
MARKDOWN: dict[type, Callable[[Any], str]] = {
    Enumeration: markdown.enumeration, Record: markdown.record, Table: markdown.columns, Counters: markdown.counters,
    Group: markdown.parameters,
}
COUNT = {"type": "integer", "minimum": 0}


def find(name: str) -> Any:
    if name not in ALL:
        raise BadDescription(f"{name}: is not described: expected one of {', '.join(sorted(ALL))}")
    return ALL[name]


def table(name: str) -> str:
    """The Markdown table of a description."""
    found = find(name)
    return MARKDOWN[type(found)](found)


def schema(name: str, value: dict[str, Any] | None = None) -> dict[str, Any]:
    """The JSON Schema of a description: an object of counters, a row, a value of an enumeration; `by NAME`: an object with a
    number (or another `value`) for each member of an enumeration."""
    if name.startswith("by "):
        return jsonschema.by_member(find(name[3:]), value or COUNT)
    found = find(name)
    if isinstance(found, Table):
        raise BadDescription(f"{name}: is a table of a Parquet file: expected a description with a JSON Schema")
    if isinstance(found, Counters):
        return jsonschema.counters(found)
    return jsonschema.record(found) if isinstance(found, Record) else jsonschema.enumeration(found)


def expand(part: Any) -> Any:
    """A JSON Schema with each {"described": NAME} as the description has it."""
    if isinstance(part, dict):
        if "described" in part:
            own = {key: value for key, value in part.items() if key not in ("described", "value")}
            return schema(part["described"], part.get("value")) | own
        return {key: expand(value) for key, value in part.items()}
    return [expand(inner) for inner in part] if isinstance(part, list) else part
