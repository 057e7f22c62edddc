# SPDX-License-Identifier: BSD-3-Clause
"""What `moscope mosbench` prints for people: a row for each application, failed points, and where the figures are."""

from typing import Any

from rich.table import Table

from moscope import paths, terminal
from moscope.cli import Shared
from moscope.runs.statistics import trend
from moscope.sweeps import display
from moscope.sweeps.main import Outcome
from moscope.wording import number as count


def show(document: dict[str, Any], outcome: Outcome, shared: Shared) -> None:
    if shared.json:
        shared.result(document)
    elif "estimated_s" not in document:
        table(document)
        for point in document["points"]:
            if "trend" in point:
                print(f"{point['workload']} on {point['kernel']}, {count(point['cores'], 'core')}: {trend.said(point)}")
        print(f"figures: {document['report']}\ntable: {document['table']}")
    display.failures(outcome)


def table(document: dict[str, Any]) -> None:
    """Figures 3 and 12 in one: throughput per core at the most cores relative to one core, and what limits it."""
    paths.import_analysis()
    from analysis import paper

    console = terminal.console()
    most = document["most_cores"]
    found = Table(title=title(most))
    for name in ("application", "curve"):
        found.add_column(name)
    for name in ("ratio", "+-", "paper"):
        found.add_column(name, justify="right")
    found.add_column("limited by")
    for one in document["applications"]:
        rows = one["curves"]
        for n, curve in enumerate(rows):
            last = n == len(rows) - 1
            limit = (one["limit"] or {}).get("text", "") if last else ""
            found.add_row(one["title"] if n == 0 else "", curve["label"], number(curve["ratio"]), number(curve["ratio_stderr"]),
                          curve["paper"] or "", limit + (f"\npaper, {count(paper.CORES, 'core')}: {one['paper_limit']}" if last else ""))
    terminal.print_table(console, found, keys=2)


def title(most: int) -> str:
    """A table of results of one core has no ratios; of no core it is empty."""
    ratios = f"Throughput per core on {count(most, 'core')} / on 1 core, and w" if most > 1 else "W"
    return f"{ratios}hat limits the last curve" + (f" on {count(most, 'core')}" if most else "")


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
