# SPDX-License-Identifier: BSD-3-Clause
"""The report of a sweep, which analysis/sweep makes."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from moscope import errors, paths
from moscope.errors import UserError
from moscope.reports import made_by
from moscope.sweeps.spec import Spec

PAGE = "report.html"


def check_expression(expression: str, spec: Spec) -> None:
    """Raises UserError for a malformed expression before any point runs. `check_figure` follows where a point is finished."""
    left, tilde, right = expression.partition("~")
    wanted = [n.strip() for n in right.replace("|", ",").split(",")]
    if not tilde or not left.strip() or not all(wanted):
        raise UserError(f"--plot: {expression!r}: expected FIGURE ~ AXIS or FIGURE ~ AXIS | AXIS, .., such as "
                        "'throughput ~ cores | kernel'")
    for name in wanted:
        if name not in spec.names():
            raise errors.unknown_name("--plot", "parameter", name, spec.names())


def check_figure(expression: str, known: list[str]) -> None:
    """Raises UserError for a figure that the finished points do not have, before the others run; if only those have it, they have to
    run without it first."""
    try:
        matching(expression.partition("~")[0].strip(), known)
    except UserError as error:
        raise UserError(f"{error} (these are the figures of the points finished so far; to get those of the other points, first run the "
                        "sweep without --plot)") from None


def matching(name: str, known: list[str]) -> str:
    """The figure with this name, or the only one whose name begins with it."""
    if name in known:
        return name
    begin = [k for k in known if k.startswith(name)]
    if not begin:
        raise errors.unknown_name("--plot", "figure", name, known)
    if len(begin) > 1:
        raise UserError(f'--plot: "{name}" begins the names of several figures: expected one of {", ".join(begin)}')
    return begin[0]


def write(root: Path, plot: str | None, say: Callable[[str], None]) -> dict[str, Any]:
    """Writes report.html and figures, and the figure of `plot`; returns what the JSON object says of them."""
    if not (paths.root() / "analysis" / "sweep" / "main.py").is_file():
        return {}
    say("writing the report")
    printed = made_by("analysis.sweep.main", [str(root), *([plot] if plot else [])], root)
    return {"plot": printed.strip()} if plot else {}
