# SPDX-License-Identifier: BSD-3-Clause
"""The latency table for scripts (one object per row) and for people (rich tables)."""

from pathlib import Path
from typing import Any

from moscope import terminal
from moscope.config.bindings import of_role
from moscope.experiment import Subject
from moscope.latencies.bandwidth import Bandwidth
from moscope.latencies.references import note
from moscope.latencies.rows import Row, measuring_core, served_elsewhere
from moscope.schema.enumerations import SEGMENT
from moscope.wording import significant


def row_json(row: Row, trace: str) -> dict[str, Any]:
    """One row as in contracts.md, and how well the trace and the segments confirm it."""
    return {
        "name": row.name, "reference": row.reference, "source": row.source, "measured": round(row.measured, 3),
        "unit": "cycles", "trace": trace, "recomputed": round(row.recomputed, 3),
        "shortest": round(row.shortest, 3), "longest": round(row.longest, 3),
        "segments": [{"name": s["name"], "cycles": round(s["cycles"], 3)} for s in row.segments],
        "suppliers": row.suppliers,
    }


def difference(measured: float, reference: float | None) -> tuple[str, str]:
    """Deviation from the reference, and a colour for it."""
    if not reference:
        return "", ""
    off = round(100 * (measured / reference - 1), 1)
    return f"{off:+.1f} %" if off else "0.0 %", "green" if abs(off) <= 2 else "yellow" if abs(off) <= 10 else "red"


WIDTH = 150  # the least in a file or a pipe: the table in one piece
#: A remark lists the homes of a row if their mean latencies differ by more than this share of the shortest.
UNEQUAL = 0.05


def remarks(rows: list[Row], home: str) -> dict[str, str]:
    """What a reader must know about a row, by its name: other levels served its loads, or its homes are at unequal distances. `home`:
    the machine type of the homes."""
    found = {}
    elsewhere = served_elsewhere(rows, home)
    for row in rows:
        if levels := elsewhere.get(row.name):
            served = " and ".join(f"{level} served {count}" for level, count in levels.items())
            found[row.name] = f"{served} of its {sum(row.suppliers.values())} loads"
        means = sorted((cycles, node) for node, cycles in row.homes.items())
        if means and means[-1][0] > means[0][0] * (1 + UNEQUAL):
            (least, near), (most, far) = means[0], means[-1]
            found[row.name] = f"the mean over homes from {least:.1f} cycles (node {near}) to {most:.1f} cycles (node {far})"
    return found


def home_type(subject: Subject) -> str:
    """The machine type of the homes; empty if the protocol has none."""
    return min(of_role(subject.interface, "home"), default="")


def print_tables(subject: Subject, rows: list[Row], bandwidths: list[Bandwidth], out: Path) -> None:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = terminal.console(width=WIDTH)
    table = Table(title=f"{subject.machine.name}, {subject.protocol}: idle load latency of core {measuring_core(subject.machine)}"
                        " in core cycles", box=box.SIMPLE_HEAD, title_justify="left")
    used = [name for name in SEGMENT.names if any(s["name"] == name for r in rows for s in r.segments)]
    for heading in ("", "reference", "source", "measured", "off", "recomputed", *map(SEGMENT.short, used)):
        table.add_column(heading, justify="left" if heading in ("", "source") else "right", no_wrap=not heading)
    said = remarks(rows, home_type(subject))
    for r in rows:
        parts = {s["name"]: s["cycles"] for s in r.segments}
        off, colour = difference(r.measured, r.reference)
        table.add_row(r.name + " *" * (r.name in said), "" if r.reference is None else f"{r.reference:g}", r.source or "",
                      f"{r.measured:.1f}", Text(off, colour), f"{r.recomputed:.1f}",
                      *(f"{parts[n]:.1f}" if n in parts else "" for n in used))
    terminal.print_table(console, table)
    for name, text in said.items():
        console.print(f"* {name}: {text}", soft_wrap=True)
    if bandwidths:
        table = Table(title="bandwidth in GB/s", box=box.SIMPLE_HEAD, title_justify="left")
        for heading in ("", "reference", "source", "measured", "off", "in flight", "loaded latency, cycles", "limited by"):
            table.add_column(heading, justify="left" if heading in ("", "source", "limited by") else "right")
        for b in bandwidths:
            off, colour = difference(b.measured, b.load.reference)
            table.add_row(b.load.name, "" if b.load.reference is None else f"{b.load.reference:g}", b.load.source or "",
                          significant(b.measured, 3), Text(off, colour), f"{b.load.in_flight} per core", f"{b.latency:.0f}",
                          f"{b.limit.name}: {b.limit.why}")
        terminal.print_table(console, table)
    if remark := note(subject.machine, subject.sets, bool(bandwidths)):
        console.print(remark, soft_wrap=True)
    console.print(f"The segments of each row add up to its latency. Traces of every row: {out}", soft_wrap=True)


def print_gem5(document: dict[str, Any]) -> None:
    """Prints gem5's rows; gem5 records no segments."""
    print(f"{document['machine']}, {document['protocol']}, on gem5: idle load latency in core cycles")
    print(f"{'':14}{'reference':>10}  {'source':10}{'measured':>9}  off")
    for row in document["rows"]:
        reference = "" if row["reference"] is None else f"{row['reference']:g}"
        print(f"{row['name']:14}{reference:>10}  {row['source'] or '':10}{row['measured']:9.1f}  "
              f"{difference(row['measured'], row['reference'])[0]}")
