# SPDX-License-Identifier: BSD-3-Clause
"""`moscope report`: writes the report of a finished or partial run again, from its run directory only."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import Shared, command


@command
def report(shared: Shared,
           run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory written by `moscope run`.")]) -> None:
    """Write report.html, figures and tables of a run directory again."""
    from moscope import paths
    from moscope.errors import UserError

    sys.path.append(str(paths.root()))
    from analysis import RunDirectoryError
    from analysis.report import write_report

    try:
        page = write_report(run_dir)
    except RunDirectoryError as error:
        raise UserError(str(error)) from error
    shared.result({"schema": "moscope.report/1", "ok": True, "report": str(page)})
    if not shared.json:
        print(page)
