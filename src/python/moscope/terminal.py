# SPDX-License-Identifier: BSD-3-Clause
"""Where commands print tables with names of data and functions."""

from rich.console import Console

WIDTH = 120  # at least, into a file or a pipe


def console(*, markup: bool = False) -> Console:
    """Prints names as they are: they have brackets and colons. With `markup`, the caller escapes them."""
    made = Console(highlight=False, markup=markup, emoji=False)
    if not made.is_terminal:
        made.width = max(made.width, WIDTH)
    return made
