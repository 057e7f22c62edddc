# SPDX-License-Identifier: BSD-3-Clause
"""The figures, one module each. A module declares `FIGURE`; it is found by its place in this folder.

`draw(subject, wide)` gives a matplotlib figure, or None where the run has no data for it. The subject is the whole run
or one point. `wide` is for a desktop page and PNG, else for the width of a telephone.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from matplotlib.figure import Figure

from analysis import style


@dataclass(frozen=True)
class Spec:
    """A figure; `of` is "run" or "point". One that is not `in_page` is a PNG only."""

    name: str
    of: str
    order: int
    title: str
    caption: str | Callable[[Any], str]  # of the subject
    draw: Callable[[Any, bool], Figure | None]
    in_page: bool = True

    def caption_of(self, subject: Any) -> str:
        return self.caption if isinstance(self.caption, str) else self.caption(subject)

    def drawn(self, subject: Any, wide: bool) -> Figure | None:
        """`draw` in the house style."""
        with style.house():
            return self.draw(subject, wide)


def all_figures() -> list[Spec]:
    """Every figure, in the order in which the report shows them."""
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    return sorted((m.FIGURE for m in modules), key=lambda f: f.order)
