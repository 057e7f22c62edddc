# SPDX-License-Identifier: BSD-3-Clause
"""Makes the report with analysis/sweep, in a separate process, because analysis reads only the sweep's folder."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moscope import errors, paths
from moscope.errors import UserError
from moscope.sweeps.spec import Spec

PAGE = "report.html"
CODE = ("import sys, importlib; sys.path.insert(0, sys.argv[1]); sys.exit(importlib.import_module(sys.argv[2]).main(sys.argv[3:]))")


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


def made_by(module: str, words: list[str], root: Path) -> str:
    """Runs `main(words)` of a module of analysis in a separate process, which makes a report of the folder `root`; returns its
    output."""
    got = subprocess.run([sys.executable, "-P", "-c", CODE, str(paths.root()), module, *words], capture_output=True, text=True, check=False)
    if got.returncode == UserError.exit_code:
        raise UserError(got.stderr.strip())
    if got.returncode != 0:
        bug = RuntimeError(f"the report could not be written (the results are in {root}): {(got.stderr.strip().splitlines() or [''])[-1]}")
        bug.add_note(got.stderr)
        raise bug
    return got.stdout
