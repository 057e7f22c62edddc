# SPDX-License-Identifier: BSD-3-Clause
"""A sweep's folder in memory: rows, axes, and axes' values as numbers where they are quantities."""

import re
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from pyarrow import parquet

from analysis.run_directory import RunDirectoryError
from moscope import jsonio
from moscope.sweeps import figures

# Parameter -> what a value counts once; a quantity is a number and one of these.
UNITS = {"Hz": 1.0, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9, "fs": 1e-15, "ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0,
         "B": 1.0, "KiB": 1024.0, "MiB": 1024.0**2, "GiB": 1024.0**3, "cycles": 1.0, "": 1.0}
QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
# The standard error that a point has of a figure of its own.
ERRORS = {"throughput_per_s": "stderr_per_s"}


@dataclass
class Sweep:
    """`axes`: each with its values, the distinct ones of those with several in `varied`. `figures`: numeric columns that are no parameters,
    the job's main ones first, those of the host last. `main`: names of these, in which * stands for any text. `beside`: further figures
    of the job, which tables have and plots lack."""

    path: Path
    name: str
    job: str
    rows: list[dict[str, Any]]
    axes: dict[str, list[Any]]
    main: list[str]
    beside: list[str] = field(default_factory=list)
    edges: dict[str, list[tuple[int, int]]] = field(default_factory=dict)  # by digest of the point
    failed: list[dict[str, Any]] = field(default_factory=list)

    @property
    def done(self) -> list[dict[str, Any]]:
        return [r for r in self.rows if r["status"] == "done"]

    @property
    def varied(self) -> dict[str, list[Any]]:
        distinct = {name: list({shown(v): v for v in values}.values()) for name, values in self.axes.items()}
        return {name: values for name, values in distinct.items() if len(values) > 1}

    @property
    def figures(self) -> list[str]:
        parameters = {*self.axes, "point", "status", "error"}
        numeric = [n for n in (self.rows[0] if self.rows else {}) if n not in parameters and any(
            isinstance(r[n], int | float) and not isinstance(r[n], bool) for r in self.rows)]
        first = dict.fromkeys(n for m in self.main for n in numeric if fnmatchcase(n, m))
        return figures.host_last([*first, *(n for n in numeric if n not in first)])

    def columns(self, drawn: list[str]) -> list[str]:
        """The figures of a table of points: those with curves, the job's other figures, and then the figures of the host."""
        return figures.columns(self.figures, drawn, self.beside)

    def drawn(self) -> list[str]:
        """The figures with curves: the job's main ones, or any figure."""
        return figures.main(self.figures, self.main, self._distinct) or figures.main(self.figures, ["*"], self._distinct)[:1]

    def _distinct(self, figure: str) -> int:
        return len({r.get(figure) for r in self.done} - {None})


def load(path: Path) -> Sweep:
    try:
        document = jsonio.loads((path / "sweep.json").read_text(encoding="utf-8"))
        rows = parquet.read_table(path / "table.parquet", partitioning=None).to_pylist()
        points = jsonio.loads((path / "workflow" / "config.json").read_text(encoding="utf-8"))["points"]
    except (OSError, ValueError, KeyError) as error:
        raise RunDirectoryError(f"{path}: cannot be read ({str(error).splitlines()[0]}): expected the folder of a sweep") from error
    config = document["config"]
    edges = {digest: [(int(a), int(b)) for a, b in p["edges"]] for digest, p in points.items()}
    return Sweep(path, str(config["name"]), str(config["job"]), rows, config["axes"], list(config.get("figures", [])),
                 list(config.get("beside", [])), edges,
                 document.get("failed", []))


def shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def quantities(values: list[Any]) -> tuple[list[float], str] | None:
    """The values as numbers in the unit of the first one; None if one of them is no quantity."""
    found, unit = [], None
    for value in values:
        match = QUANTITY.fullmatch(shown(value)) if not isinstance(value, bool) else None
        if match is None or match[2] not in UNITS:
            return None
        unit = match[2] if unit is None else unit
        found.append(float(match[1]) * UNITS[match[2]] / UNITS[unit])
    return found, unit or ""
