# SPDX-License-Identifier: BSD-3-Clause
"""A run as tables, one module each. A module declares `TABLES`, {name: function of a run}; it is found by its place in this folder.

A table is {column: [value per row]}, which is what pyarrow.table, pandas.DataFrame and polars.DataFrame take. Tables of lines, names,
pairs, transfers and functions are queries over `run.database` (analysis/database.py).
"""

import csv
import pkgutil
from collections.abc import Callable
from pathlib import Path

from analysis.run_directory import Run
from analysis.tables.base import Table
from moscope import contributed
from moscope.aside import written_aside


def found() -> dict[str, Callable[[Run], Table]]:
    """All tables of this folder's modules."""
    modules = [m.name for m in pkgutil.iter_modules(__path__) if m.name != "base"]
    tables = [contributed.declared(f"{__name__}.{m}", "TABLES", dict, "TABLES = {name: function of a run}") for m in modules]
    return {name: make for table in tables for name, make in table.items()}


ALL = found()


def write_csv(run: Run, folder: Path) -> None:
    """Every table as NAME.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in ALL.items():
        made = make(run)
        with written_aside(folder / f"{name}.csv") as partial, open(partial, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(made)
            writer.writerows(zip(*made.values(), strict=True))
