# SPDX-License-Identifier: BSD-3-Clause
"""The state of a history at a moment, computed from its changes."""

from collections.abc import Iterable
from typing import Any

Change = dict[str, Any]


def fold(changes: Iterable[Change], until: int) -> dict[str, Any]:
    """The state after every change with `at` <= `until`. By controller and line: `entry` (state and fields), `tbe` (fields), and
    `ways` (array: [set, way]). By line: its bytes and, for each byte, the access that wrote it last (-1: none)."""
    state: dict[str, Any] = {"entry": {}, "tbe": {}, "ways": {}, "bytes": {}}
    for change in changes:
        if change["at"] > until:
            break
        apply(state, change)
    return state


def apply(state: dict[str, Any], change: Change) -> None:
    key = (change["controller"], change["line"])
    kind = change["kind"]
    if kind == "entry":
        state["entry"][key] = {"state": change["state"], "fields": change["fields"]}
    elif kind == "tbe":
        if change["fields"] is None:
            state["tbe"].pop(key, None)
        else:
            state["tbe"][key] = change["fields"]
    elif kind == "way":
        ways = state["ways"].setdefault(key, {})
        if change["way"] is None:
            ways.pop(change["array"], None)
        else:
            ways[change["array"]] = change["way"]
    elif kind == "bytes":
        data, writers = state["bytes"].setdefault(change["line"], (bytearray(64), [-1] * 64))
        written = bytes.fromhex(change["bytes"])
        data[change["offset"]:change["offset"] + len(written)] = written
        writers[change["offset"]:change["offset"] + len(written)] = [change["access"]] * len(written)
