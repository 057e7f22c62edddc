# SPDX-License-Identifier: BSD-3-Clause
"""`moscope report`: writes the report of a finished or partial run again, from its run directory only, or shows the map of a line, or
audits the miss classes."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from moscope.cli import SIMULATED, Shared, command


@command(unused=SIMULATED)
def report(shared: Shared,
           run_dir: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Run directory written by `moscope run`, or the folder of a "
                                                                           "sweep. With --line, --locks or --audit, also the folder of "
                                                                           "a point.")],
           line: Annotated[str | None, typer.Option(metavar="NAME", help="Instead of writing the report, show a map of the hottest lines "
                                                                         "of this name: bytes, fields, code, cores, and advice.")] = None,
           kind: Annotated[str | None, typer.Option(metavar="KIND", help="With --line: the kind of memory to show, if lines of several "
                                                                         "kinds have this name. Default: the kind with the most "
                                                                         "waiting.")] = None,
           audit: Annotated[bool, typer.Option("--audit", help="Instead of writing the report, check that the miss class of every recorded "
                                                               "transaction agrees with the transaction's other data. The exit code is 1 "
                                                               "if one does not. Needs a run with --detail full.")] = False,
           locks: Annotated[bool, typer.Option("--locks", help="Instead of writing the report, show the locks of the user programs: "
                                                               "waiters, hold times, hand-offs, futexes. Needs a run with --detail "
                                                               "full.")] = False) -> int:
    """Write the report of a run directory or of a sweep again: report.html, figures and tables."""
    from moscope import errors, paths
    from moscope.errors import UserError

    paths.import_analysis()
    from analysis import RunDirectoryError

    if sum((line is not None, audit, locks)) > 1:
        raise UserError("--line, --audit and --locks: the command shows one of these at a time: expected one of them")
    if kind is not None and line is None:
        raise UserError(f"--kind: {kind}: applies only to --line: expected --line NAME, too")
    try:
        if line is not None:
            show_line(shared, run_dir, line, kind)
            return errors.OK
        if locks:
            show_locks(shared, run_dir)
            return errors.OK
        if audit:
            return errors.OK if audited(shared, run_dir) else errors.FOUND
        page = written(run_dir)
    except RunDirectoryError as error:
        raise UserError(str(error)) from error
    shared.result({"schema": "moscope.report/1", "ok": True, "report": str(page)})
    if not shared.json:
        print(page)
    return errors.OK


def written(folder: Path) -> Path:
    """The page of a run, or of a sweep, whose folder it is."""
    from analysis.report import write_report
    from analysis.run_directory import is_point, is_sweep
    from moscope import reports
    from moscope.errors import UserError
    from moscope.sweeps import report as of_sweep

    if is_sweep(folder):
        reports.made_by("analysis.sweep.main", [str(folder)], folder)
        return folder / of_sweep.PAGE
    if is_point(folder):
        raise UserError(f"{folder}: holds one point: expected --line, --locks or --audit, or the folder of a run or a sweep")
    return write_report(folder)


def audited(shared: Shared, run_dir: Path) -> bool:
    """Whether no transaction of any point contradicts its class."""
    from analysis import audit, load
    from moscope.errors import UserError

    points = load(run_dir).points
    if not points:
        raise UserError(f"{run_dir}: has no finished point: expected one with recorded transactions")
    made = audit.document(points)
    shared.answer(made, lambda: print("\n".join(audit.text(made))))
    return bool(made["ok"])


def show_locks(shared: Shared, run_dir: Path) -> None:
    """Of the point that the page shows first."""
    from analysis import load, user_locks
    from analysis.page.document import default_point
    from moscope.errors import UserError

    point = default_point(load(run_dir))
    if point is None:
        raise UserError(f"{run_dir}: has no finished point: expected one with recorded transactions")
    made = user_locks.document(point)
    shared.result(made)
    if not shared.json:
        print("\n".join(user_locks.text(made)))


def show_line(shared: Shared, run_dir: Path, name: str, kind: str | None = None) -> None:
    """The map of a name's lines, of the point that the page shows first of those that have the name. `kind` None: the one with the most
    waiting, and a note if there are others. Of an object, the map of its part with the most waiting."""
    from analysis import load
    from analysis.maps import asked, document, text
    from analysis.page.document import default_point
    from moscope.errors import UserError, unknown_name

    run = load(run_dir)
    first = default_point(run)
    points = sorted(run.points, key=lambda p: (p is not first, -p.cores))
    known = [(p, row) for p in points for row in p.database.rows("SELECT * FROM names WHERE point = ? ORDER BY waiting DESC", p.name)]
    if not known:
        why = next((f" ({problem})" for problem in run.problems if ".parquet" in problem), "")
        raise UserError(f"{run_dir}: has no tables of lines{why}: expected a run of the embedded engine")
    named = [(p, part, its) for p in points for part, its in asked.names(p, name)]
    if not named:
        raise unknown_name("--line", "name", name, (), first=(row["name"] for _, row in known))
    found = next((one for one in named if kind in (None, one[2])), None)
    if found is None:
        raise unknown_name("--kind", f"kind of {name}", str(kind), {its for _, _, its in named})
    point, part, its = found
    if part != name:
        rest = [one for one in dict.fromkeys(one for p, one, _ in named if p is point) if one != part]
        print(asked.note(name, part, rest), file=sys.stderr)
    others = sorted({one for p, of, one in named if p is point and of == part} - {its})
    if kind is None and others:
        print(f"{part}: lines of the kind {its}, which has the most waiting; --kind shows the others: {', '.join(others)}", file=sys.stderr)
    shared.result(document.document(point, part, its))
    if not shared.json:
        text.show(point, part, its)
