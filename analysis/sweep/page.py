# SPDX-License-Identifier: BSD-3-Clause
"""report.html of a sweep: one file, in the style of the report of a run."""

from collections.abc import Callable
from typing import Any

from analysis.page.document import HERE, theme
from analysis.page.markup import code, esc, number, table
from analysis.sweep import curves
from analysis.sweep.expression import Expression
from analysis.sweep.table import Sweep, shown

MOST_ROWS, MOST_FAILURES = 500, 50
Drawn = Callable[[Expression], str]  # a figure as HTML; empty without data


def points_table(sweep: Sweep, drawn: list[str]) -> str:
    """Axes, the figures that are drawn, others of the job, and the host's time; table.parquet has everything."""
    axes, figures = list(sweep.varied), sweep.columns(drawn)
    rows = [[esc(shown(r[n])) for n in axes] + [esc(r["status"])] + [_cell(r.get(f)) for f in figures] for r in sweep.rows[:MOST_ROWS]]
    left = len(sweep.rows) - MOST_ROWS
    more = f'<p class="quiet">{left:,} further points are in table.parquet.</p>' if left > 0 else ""
    return table("All points", [*axes, "status", *figures], rows, range(len(axes) + 1, len(axes) + 1 + len(figures))) + more


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    return number(value, 0 if abs(value) >= 1000 or round(value, 3) == round(value) else 3)


def failures(sweep: Sweep) -> str:
    if not sweep.failed:
        return ""
    items = "".join(f"<li>{esc(f['error'].splitlines()[0] if f['error'] else f['kind'])}<br>{code(f['command'])}</li>"
                    for f in sweep.failed[:MOST_FAILURES])
    return (f'<div class="notice" role="note"><strong>{len(sweep.failed)} of {len(sweep.rows)} points failed.</strong> '
            f"Each command repeats its point alone.<ul>{items}</ul></div>")


def section(sweep: Sweep, figure: str, drawn: Drawn) -> str:
    body = "".join(drawn(wanted) for wanted in curves.default_expressions(sweep, figure))
    return f"<section><h2>{esc(figure)}</h2>{body}</section>" if body else ""


def document(sweep: Sweep, figures: list[str], drawn: Drawn, topologies: str) -> str:
    axes = ", ".join(f"{n} ({len(v)})" for n, v in sweep.varied.items()) or "no axis with several values"
    body = [f'<header><p class="brand">moscope</p><h1>Sweep {esc(sweep.name)}</h1>'
            f'<p class="sub">{esc(sweep.job)} · {len(sweep.rows):,} points, {len(sweep.done):,} finished · {esc(axes)}</p></header>',
            failures(sweep), *(section(sweep, f, drawn) for f in figures)]
    if topologies:
        body.append(f"<section><h2>Topologies</h2>{topologies}</section>")
    body.append(f"<section><h2>All points</h2>{points_table(sweep, figures)}</section>")
    css = (HERE / "style.css").read_text(encoding="utf-8")
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">'
            f'<title>moscope sweep: {esc(sweep.name)}</title><link rel="icon" href="data:,">'
            f'<style>{theme()}\n{css}</style></head><body><main>{"".join(body)}</main></body></html>\n')
