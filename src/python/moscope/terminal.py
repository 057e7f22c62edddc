# SPDX-License-Identifier: BSD-3-Clause
"""The consoles on which commands print tables with names of data and functions."""

from rich.console import Console

WIDTH = 120  # the least width in a file or a pipe


def console(*, markup: bool = False) -> Console:
    """A console that prints names unchanged, although they contain brackets and colons. With `markup`, the caller has to escape
    them."""
    made = Console(highlight=False, markup=markup, emoji=False)
    if not made.is_terminal:
        made.width = max(made.width, WIDTH)
    return made
