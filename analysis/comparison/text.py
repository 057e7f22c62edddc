# SPDX-License-Identifier: BSD-3-Clause
"""A comparison on the terminal."""

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from analysis.comparison import words
from analysis.tables.base import Row
from moscope import terminal

MOST = 10
LONG = 60  # of a value of the configuration


def show(pairs: list[Row], alone: list[str]) -> None:
    console = terminal.console()
    for pair in pairs:
        console.print(f"A: {pair['a']}\nB: {pair['b']}", soft_wrap=True)
        console.print(words.headline(pair), soft_wrap=True)
        for text in words.notes(pair):
            console.print(text, soft_wrap=True)
        _table(console, "What differs in configuration", ("key", "A", "B"),
               [(row["key"], _short(row["a"]), _short(row["b"])) for row in pair["configuration"]])
        _table(console, "Figures, with 95 % intervals of the difference", ("figure", "A", "B", "difference", ""), words.figures(pair))
        for name, title, what in words.LISTS:
            rows = [(words.cause(row["name"]) if name == "time" else row["name"], words.amount(row["a"]), words.amount(row["b"]),
                     words.signed(row["difference"]), words.remark(pair, row)) for row in words.shown(pair, name, MOST)]
            whole = pair["whole"]
            rows.append(("all core time", words.amount(whole["a"]), words.amount(whole["b"]), words.signed(whole["difference"]),
                         words.mark(whole["within_error"])))
            _table(console, f"{title}, {pair['unit']}", (what, "A", "B", "difference", ""), rows)
    if alone:
        console.print(f"Not compared, as the other side has no such point: {', '.join(alone)}", soft_wrap=True)


def _short(value: str | None) -> str:
    text = "-" if value is None else value
    return text if len(text) <= LONG else f"{text[:LONG - 3]}..."


def _table(console: Console, title: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD)
    for n, name in enumerate(head):
        table.add_column(name, justify="right" if 0 < n < 4 and head[0] != "key" else "left")
    for row in rows:
        table.add_row(*row)
    if rows:
        terminal.print_table(console, table)
