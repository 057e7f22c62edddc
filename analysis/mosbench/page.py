# SPDX-License-Identifier: BSD-3-Clause
"""mosbench.html: figure 3, the table of limits (figure 12), and for each application its curves and time per operation."""

from analysis import paper
from analysis.mosbench.data import Application, Results
from analysis.mosbench.limits import Limit, limit
from analysis.mosbench.published import bar
from analysis.page.document import HERE, theme, unsteady
from analysis.page.markup import code, esc, prose, table
from moscope.wording import number as count


def limits(results: Results, found: dict[str, Limit | None]) -> str:
    rows = [[esc(a.title), esc(a.curves[-1].label), prose(_said(found[a.name])), esc(a.limit)] for a in results.applications]
    return table(f"What limits each application on {count(results.most_cores, 'core')} (figure 12)",
                 ["application", "curve", "moscope", f"paper, {count(paper.CORES, 'core')}"], rows, [])


def measured(one: Application) -> str:
    """The workloads of curves that measure another one than that with the application's name, as a sentence; empty without any."""
    others = [f"{c.label} measures {c.workload}" for c in one.curves if c.workload != one.name]
    return f"{one.title}: {', '.join(others)}." if others else ""


def _said(one: Limit | None) -> str:
    return one.text if one else "–"


def ratios(results: Results) -> str:
    """The bars, each with its difference from the paper's, and the cause of most of the additional time of an operation."""
    rows = []
    for a in results.applications:
        for n, c in enumerate(a.curves):
            known = bar(results, a, n)
            error = f" ± {c.ratio_stderr:.2f}" if c.ratio_stderr is not None else ""
            apart = f"{known.difference(c.ratio):+.2f}" if known and c.ratio is not None else "–"
            rows.append([esc(a.title), esc(c.label), f"{c.ratio:.2f}{error}" if c.ratio is not None else "–",
                         esc(f"{known.text} ({known.why})") if known else "–", apart,
                         prose(_said(limit(*c.ends) if c.ends else None))])
    note = ("The standard error follows ±. The difference is from the nearer end of the paper's range. A dash means that the paper "
            f"gives no value, or that the curve has no point on 1 core or on {results.most_cores} cores.")
    note = " ".join(text for text in (note, *(measured(a) for a in results.applications)) if text)
    return table(f"Throughput per core on {results.most_cores} cores relative to one core",
                 ["application", "curve", "moscope", "paper", "difference", "where the additional time of an operation goes"],
                 rows, [2, 4]) + f'<p class="unit">{esc(note)}</p>'


def failures(results: Results) -> str:
    if not results.failed:
        return ""
    items = "".join(f"<li>{esc(f['error'].splitlines()[0] if f['error'] else f['kind'])}<br>{code(f['command'])}</li>"
                    for f in results.failed[:20])
    return (f'<div class="notice" role="note"><strong>{count(len(results.failed), "point")} failed.</strong> '
            f"Each command repeats its point alone.<ul>{items}</ul></div>")


def section(one: Application, figures: str) -> str:
    figure = f"figure {one.figure}" if one.figure != 7 else "figures 7 and 8"
    return f"<section><h2>{esc(one.title)} ({figure} of the paper)</h2>{figures}</section>"


def document(results: Results, summary: str, found: dict[str, Limit | None], sections: list[str]) -> str:
    names = ", ".join(a.title for a in results.applications)
    points = [(f"{a.title} on {c.label}, {count(p.cores, 'core')}", p) for a in results.applications for c in a.curves for p in c.points]
    body = [f'<header><p class="brand">moscope</p><h1>MOSBENCH</h1><p class="sub">{esc(results.machine)} · {esc(names)}</p></header>',
            failures(results), unsteady(points), f"<section><h2>Summary (figure 3 of the paper)</h2>{summary}{ratios(results)}</section>",
            f"<section><h2>Limits (figure 12 of the paper)</h2>{limits(results, found)}</section>", *sections]
    css = (HERE / "style.css").read_text(encoding="utf-8")
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">'
            f'<title>moscope: MOSBENCH</title><link rel="icon" href="data:,">'
            f'<style>{theme()}\n{css}</style></head><body><main>{"".join(body)}</main></body></html>\n')
