# SPDX-License-Identifier: BSD-3-Clause
"""The results of what-if runs for people, on the terminal."""

from typing import Any

from rich.table import Table

from moscope import terminal
from moscope.wording import percent


def show(document: dict[str, Any], meaning: dict[str, str]) -> None:
    console = terminal.console()
    base = document["base"]
    console.print(f"{document['point']}: {base['per_s']:,.0f} {document['measure']} per second{_error(base['stderr_per_s'], ',.0f')}. "
                  "The same windows again, with these lines treated differently:", soft_wrap=True)
    table = Table()
    for name in ("gain", "+-", "per second"):
        table.add_column(name, justify="right")
    for name in ("as", "name"):
        table.add_column(name)
    table.add_column("lines", justify="right")
    for one in document["results"]:
        gain = "-" if one["gain"] is None else f"{100 * one['gain']:+.1f} %"
        error = "" if one["gain_stderr"] is None else percent(one["gain_stderr"], 1)
        lines = f"{one['lines']}" if one["becomes"] == one["lines"] else f"{one['lines']} as {one['becomes']}"
        table.add_row(gain, error, f"{one['rate']['per_s']:,.0f}", f"{one['as']}", one["name"], lines)
    terminal.print_table(console, table)
    if base["stderr_per_s"] is not None or any(one["gain_stderr"] is not None for one in document["results"]):
        console.print("+-: the standard error")
    for how in dict.fromkeys(one["as"] for one in document["results"]):
        console.print(f"{how}: {meaning[how]}", soft_wrap=True)


def _error(stderr: float | None, form: str) -> str:
    return "" if stderr is None else f" +- {stderr:{form}}"
