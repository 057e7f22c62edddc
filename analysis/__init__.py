# SPDX-License-Identifier: BSD-3-Clause
"""What is read out of run directories: tables, figures and the report. Nothing here links with the engine.

    from analysis import load, tables
    run = load("moscope-out/run")
    lines = tables.ALL["lines"](run)                # {column: [value per row]}
    pyarrow.table(lines); pandas.DataFrame(lines); polars.DataFrame(lines)
    run.database.rows("SELECT name, waiting FROM names ORDER BY waiting DESC LIMIT 5")

`analysis.report.write_report` makes report.html, figures/ and tables/ from a run directory. The format of a run directory
is in docs/run-directory.md, what the report shows in docs/analysis.md.
"""

from analysis.run_directory import Point, Run, RunDirectoryError, load

__all__ = ["Point", "Run", "RunDirectoryError", "load"]
