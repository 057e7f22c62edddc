# SPDX-License-Identifier: BSD-3-Clause
"""The consoles on which commands print names of data and functions, and the tables that fit them."""

from collections.abc import Sequence

from rich.console import Console
from rich.measure import Measurement, measure_renderables
from rich.table import Table

# In columns of a terminal:
WIDTH = 120  # the least width in a file or a pipe
WIDEST = 10_000
FRAME, BETWEEN = 1, 3  # what a table adds to each line, and to each of its columns
WORDS = 12  # what a column of words keeps


def console(*, markup: bool = False, width: int = 0) -> Console:
    """A console that prints names unchanged, although they contain brackets and colons. With `markup`, the caller has to escape
    them. In a file or a pipe it has at least `width` columns."""
    made = Console(highlight=False, markup=markup, emoji=False)
    if not made.is_terminal:
        made.width = max(made.width, WIDTH, width)
    return made


def fits(console: Console, table: Table) -> bool:
    """Whether no cell of a table has to be wrapped."""
    return console.measure(table, options=console.options.update_width(WIDEST)).maximum <= console.width


def print_table(console: Console, table: Table, keys: int = 1) -> None:
    """Prints a table without cutting anything. One that is too wide is printed as several below each other, each with the first `keys`
    columns. Columns that are justified right, of numbers, and those with `no_wrap` are never folded, except for a key that is longer than
    the console; of others, only words that are longer than their column."""
    if fits(console, table):
        console.print(table)
        return
    sizes = _sizes(console, table, keys)
    parts = [list(range(keys))]
    for group in _groups(table, sizes, keys, console.width):
        if len(parts[-1]) > keys and _total(sizes, [*parts[-1], *group]) > console.width:
            parts.append(list(range(keys)))
        parts[-1] += group
    for part in parts:
        console.print(_part(table, part, [sizes[n] for n in part], console.width, titled=part is parts[0]))


def _groups(table: Table, sizes: Sequence[Measurement], keys: int, width: int) -> list[list[int]]:
    """The columns after the keys. A column without a heading belongs to the one before it if there is room for both."""
    groups: list[list[int]] = []
    for n, column in enumerate(table.columns[keys:], keys):
        if groups and not column.header and _total(sizes, [*range(keys), *groups[-1], n]) <= width:
            groups[-1].append(n)
        else:
            groups.append([n])
    return groups


def _frame(columns: int) -> int:
    return FRAME + BETWEEN * columns


def _total(sizes: Sequence[Measurement], columns: Sequence[int]) -> int:
    return _frame(len(columns)) + sum(sizes[n].minimum for n in columns)


def _sizes(console: Console, table: Table, keys: int) -> list[Measurement]:
    """Of each column, the least width and that of its longest cell."""
    options = console.options.update_width(WIDEST)
    heads = [measure_renderables(console, options, [column.header]) for column in table.columns]
    cells = [measure_renderables(console, options, [*column.cells]) for column in table.columns]
    numbers = [column.justify == "right" for column in table.columns]
    whole = [number or column.no_wrap for column, number in zip(table.columns, numbers, strict=True)]
    least = [max(head.minimum, cell.maximum if uncut else max(cell.minimum, min(cell.maximum, WORDS)))
             for head, cell, uncut in zip(heads, cells, whole, strict=True)]
    others = range(keys, len(least))
    # The keys leave room for one column beside them; columns of words, for each other.
    beside = max((least[n] for n in others if numbers[n]), default=WORDS)
    least[:keys] = _widths(console.width - _frame(keys + 1) - beside, [Measurement(min(1, few), few) for few in least[:keys]])
    words = [n for n in others if not numbers[n]]
    room = (console.width - _frame(keys + len(words)) - sum(least[:keys])) // max(1, len(words))
    for n in words:
        least[n] = min(least[n], max(WORDS, room))
    return [Measurement(few, max(few, head.maximum, cell.maximum)) for few, head, cell in zip(least, heads, cells, strict=True)]


def _widths(room: int, sizes: Sequence[Measurement]) -> list[int]:
    """A width for each column: the least ones, and then the narrowest columns are widened first until `room` is full."""
    widths = [size.minimum for size in sizes]
    for _ in range(room - sum(widths)):
        narrow = [n for n, size in enumerate(sizes) if widths[n] < size.maximum]
        if not narrow:
            break
        widths[min(narrow, key=lambda n: (widths[n], -n))] += 1
    return widths


def _part(table: Table, columns: Sequence[int], sizes: Sequence[Measurement], width: int, titled: bool) -> Table:
    """Some columns of a table, as wide as the console allows."""
    made = Table(title=table.title if titled else None, title_justify=table.title_justify, box=table.box)
    for n, wide in zip(columns, _widths(width - _frame(len(columns)), sizes), strict=True):
        column = table.columns[n]
        made.add_column(column.header, justify=column.justify, width=max(1, wide), overflow="fold")
    for row in zip(*(table.columns[n].cells for n in columns), strict=True):
        made.add_row(*row)
    return made
