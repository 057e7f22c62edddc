# SPDX-License-Identifier: BSD-3-Clause
"""The figures, one module each. A module declares `FIGURE`; it is found by its place in this folder.

`draw(subject, wide)` gives a matplotlib figure, or None where the run has no data for it. The subject is the whole run
or one point. `wide` is for a desktop page and PNG, else for the width of a telephone.
"""

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.figure import Figure

from analysis import style
from moscope import contributed
from moscope.errors import MoscopeError, UserError

EXPECTED = "a figure (docs/extending/figure.md)"
Result = TypeVar("Result")
SUBJECTS = ("run", "point")


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
        return self.caption if isinstance(self.caption, str) else _called(self.caption, subject)

    def drawn(self, subject: Any, wide: bool) -> Figure | None:
        """`draw` in the house style."""
        with style.house():
            return _called(self.draw, subject, wide)


def _called(function: Callable[..., Result], *arguments: Any) -> Result:
    """The function's result. UserError: it has a fault, which its author finds by file and line."""
    try:
        return function(*arguments)
    except (MoscopeError, OSError):
        raise
    except style.UnknownRole as error:
        raise UserError(f"{contributed.place(Path(function.__code__.co_filename), error)}: {error}") from error
    except Exception as error:
        raise contributed.fault(Path(function.__code__.co_filename), error, EXPECTED) from error


def all_figures() -> list[Spec]:
    """Every figure, in the order in which the report shows them."""
    files: dict[str, str] = {}
    found = []
    for module in pkgutil.iter_modules(__path__):
        file, spec = f"analysis/figures/{module.name}.py", _figure(f"{__name__}.{module.name}")
        if not isinstance(spec, Spec):
            raise UserError(f"{file}: declares no FIGURE: expected FIGURE = Spec(...)")
        if spec.of not in SUBJECTS:
            raise UserError(f"{file}: FIGURE is of {spec.of!r:.40}: expected {' or '.join(SUBJECTS)}")
        if other := files.get(spec.name):
            raise UserError(f"{file}: the figure {spec.name}: {other} has this name: expected another")
        files[spec.name] = file
        found.append(spec)
    return sorted(found, key=lambda f: f.order)


def _figure(module: str) -> Any:
    return getattr(contributed.imported(module, EXPECTED), "FIGURE", None)
