# SPDX-License-Identifier: BSD-3-Clause
"""A comparison as one HTML file, in the style of the report."""

from pathlib import Path

from analysis.comparison import words
from analysis.page.document import HERE, NO_SCRIPT, theme
from analysis.page.markup import code, esc, prose, table
from analysis.tables.base import Row

MOST = 25
STYLE = """
.delta{display:grid;grid-template-columns:1fr 1fr;height:12px;min-width:9rem}
.delta i{display:block;height:100%;border-radius:2px;grid-row:1}
.delta .down{justify-self:end;background:var(--series1)}
.delta .up{grid-column:2;background:var(--series2)}
.delta.within i{opacity:.35}
.sides{margin-top:14px}.sides b{display:inline-block;width:1.4em}
@media (max-width:640px){td:empty{display:none}.delta{padding-top:7px}.delta i{height:12px}}
"""
NOTE = ("A difference is B minus A. Core time is that of all cores in use. The rows of a list add up to the difference of all core time. "
        "Faint bars are within the error: the 95 % interval of the difference, from the spread of the windows.")


def document(pairs: list[Row], alone: list[str], a: Path, b: Path) -> str:
    """The whole page; the first pair is in sight, buttons show the others."""
    picker = ""
    if len(pairs) > 1:
        buttons = "".join(f'<button type="button" data-point="c-{n}" aria-pressed="{"false" if n else "true"}">{esc(pair["b"])}</button>'
                          for n, pair in enumerate(pairs))
        picker = f'<nav class="picker" aria-label="Pair that is shown"><div class="group">{buttons}</div></nav>{NO_SCRIPT}'
    parts = "".join(f'<div class="point" data-of="c-{n}"{" hidden" if n else ""}>{section(pair)}</div>' for n, pair in enumerate(pairs))
    without = esc(", ".join(alone))
    left = f'<div class="notice" role="note">Not compared, as the other side has no such point: {without}</div>' if alone else ""
    css, script = ((HERE / name).read_text(encoding="utf-8") for name in ("style.css", "script.js"))
    return ('<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
            'content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark">'
            '<title>moscope: comparison</title><link rel="icon" href="data:,">'
            f'<style>{theme()}\n{css}{STYLE}</style></head><body><main><header><p class="brand">moscope</p>'
            f'<h1>What differs, and what accounts for it</h1><p class="sub">A {code(str(a))} · B {code(str(b))}</p></header>'
            f"{left}{picker}{parts}</main><script>{script}</script></body></html>\n")


def section(pair: Row) -> str:
    sides = f'<p class="sides"><b>A</b>{esc(pair["a"])}<br><b>B</b>{esc(pair["b"])}</p>'
    rows = [(code(name), prose(a), prose(b), prose(change), esc(mark)) for name, a, b, change, mark in words.figures(pair)]
    figures = table("Figures", ("figure", "A", "B", "difference", "remark"), rows, (1, 2, 3))
    options = table("Configuration", ("key", "A", "B"), [(code(row["key"]), *(esc("–" if row[s] is None else row[s]) for s in "ab"))
                                                         for row in pair["configuration"]])
    lists = "".join(f"<section><h2>{title}</h2><p class=\"unit\">{esc(pair['unit'])}</p>{_list(pair, name, what)}</section>"
                    for name, title, what in words.LISTS)
    same = '<p class="none">No recorded option differs.</p>'
    return (f'{sides}<p class="headline">{prose(words.headline(pair))}</p>'
            f'{"".join(f"<p>{prose(text)}</p>" for text in words.notes(pair))}'
            f'<section><h2>Figures</h2><p class="unit">{esc(NOTE)}</p>{figures}</section>'
            f"{lists}<section><h2>What differs in configuration</h2>{options if pair['configuration'] else same}</section>")


def _list(pair: Row, name: str, what: str) -> str:
    rows = words.shown(pair, name, MOST)
    most = max((abs(row["difference"]) for row in rows), default=0.0) or 1.0
    cells = [(_name(name, row), words.amount(row["a"]), words.amount(row["b"]), prose(words.signed(row["difference"])), _bar(row, most),
              esc(words.remark(pair, row))) for row in rows]
    whole = pair["whole"]
    sums = (words.amount(whole["a"]), words.amount(whole["b"]), f"<b>{prose(words.signed(whole['difference']))}</b>")
    cells.append(("<b>all core time</b>", *sums, "", esc(words.mark(whole["within_error"]))))
    return table(f"Difference by {what}", (what, "A", "B", "difference", "less, more", "remark"), cells, (1, 2, 3))


def _name(name: str, row: Row) -> str:
    if name == "time":
        return esc(words.cause(row["name"]))
    return esc(row["name"]) if row["kind"] in ("others", "rest") else code(row["name"])


def _bar(row: Row, most: float) -> str:
    part = 100 * abs(row["difference"]) / most
    if part < 0.2:
        return ""
    side = "up" if row["difference"] > 0 else "down"
    return f'<div class="delta{" within" if row["within_error"] else ""}"><i class="{side}" style="width:{part:.1f}%"></i></div>'
