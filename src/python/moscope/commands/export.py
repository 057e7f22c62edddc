# SPDX-License-Identifier: BSD-3-Clause
"""`moscope export`: what a run recorded, in formats of other tools."""

from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import SIMULATED, Shared, command


@command(fills_out=True, unused=SIMULATED)
def export(shared: Shared,
           run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory written by `moscope run`, or the folder of a "
                                                                           "point.")],
           to: Annotated[str, typer.Option(metavar="FORMAT", help="perfetto (trace), pprof (profile), collapsed (stacks for flame graphs) "
                                                                  "or c2c (tables of perf c2c as CSV). perfetto and c2c need a run "
                                                                  "with --detail full.")],
           point: Annotated[str | None, typer.Option(metavar="NAME", help="Point to export, such as exim-pk-48. Default: the one that "
                                                                          "the report shows first.")] = None,
           begin: Annotated[str | None, typer.Option(metavar="T", help="perfetto: start of the trace after the first transaction, such as "
                                                                       "50us.")] = None,
           length: Annotated[str | None, typer.Option(metavar="T", help="perfetto: length of the trace, which has at most 500 000 "
                                                                       "transactions. Default: to the end.")] = None,
           ) -> None:
    """Export a run for Perfetto, pprof, flame graphs, or as the tables of perf c2c.

    The files go into RUN_DIR/exports, or into --out.
    """
    from moscope import paths
    from moscope.errors import UserError, unknown_name
    from moscope.runs.options import given_time

    paths.import_analysis()
    from analysis import RunDirectoryError, exports, load
    from analysis.page.document import default_point

    if to not in exports.names():
        raise unknown_name("--to", "format", to, exports.names())
    format_ = exports.find(to)
    if not format_.sliced and (begin or length):
        raise UserError(f"--begin, --length: {to} covers all windows: expected them with --to perfetto only")
    part = exports.Slice(given_time("--begin", begin, 0) or 0, given_time("--length", length, 1))
    try:
        run = load(run_dir)
        if not run.points:
            raise UserError(f"{run_dir}: has no finished point: expected a run that has one")
        chosen = next((p for p in run.points if p.name == point), None) if point else default_point(run)
        if chosen is None:
            raise unknown_name("--point", "point", str(point), [p.name for p in run.points])
        made = format_.files(chosen, part)
    except RunDirectoryError as error:
        raise UserError(str(error)) from None
    files = _written(shared.out or run_dir / "exports", {f"{chosen.name}.{end}": data for end, data in made.items()})
    shared.result({"schema": "moscope.export/1", "ok": True, "to": to, "point": chosen.name, "files": [str(file) for file in files]})
    if not shared.json:
        for file in files:
            print(file)


def _written(folder: Path, contents: dict[str, bytes]) -> list[Path]:
    from moscope.errors import UserError
    from moscope.failures import expected
    from moscope.traces.files import write_whole

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}: expected {expected(error, 'a writable folder')}") from None
    for name, data in contents.items():
        write_whole(folder / name, data)
    return [folder / name for name in contents]
