# SPDX-License-Identifier: BSD-3-Clause
"""Formats of other tools into which a point of a run is exported, one module each. A module declares `EXPORT`; it is found by its place
in this folder."""

import pkgutil

from analysis.exports.base import Export, Slice
from moscope import contributed


def names() -> list[str]:
    return sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "base" and not m.name.startswith("_"))


def find(name: str) -> Export:
    export: Export = contributed.declared(f"{__name__}.{name}", "EXPORT", Export, "EXPORT = Export(...)")
    return export


__all__ = ["Export", "Slice", "find", "names"]
