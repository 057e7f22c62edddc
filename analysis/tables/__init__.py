# SPDX-License-Identifier: BSD-3-Clause
"""A run as tables, one module each. A module declares `TABLES`, {name: function of a run}; it is found by its place in this folder.

A table is {column: [value per row]}, which is what pyarrow.table, pandas.DataFrame and polars.DataFrame take. Tables of lines, names,
pairs, transfers and functions are queries over `run.database` (analysis/database.py).
"""

import csv
import importlib
import pkgutil
from collections.abc import Callable
from pathlib import Path

from analysis.run_directory import Run
from analysis.tables.base import Table
from moscope.aside import written_aside


def _found() -> dict[str, Callable[[Run], Table]]:
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    return {name: make for module in modules for name, make in getattr(module, "TABLES", {}).items()}


ALL = _found()


def write_csv(run: Run, folder: Path) -> None:
    """Every table as NAME.csv."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, make in ALL.items():
        made = make(run)
        with written_aside(folder / f"{name}.csv") as partial, open(partial, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(made)
            writer.writerows(zip(*made.values(), strict=True))
