# SPDX-License-Identifier: BSD-3-Clause
"""Makes the report of a run: report.html, figures/*.png and tables/*.csv in the run directory. `python -m analysis.report DIR`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from analysis import episodes, style, tables
from analysis.figures import Spec, all_figures
from analysis.page.document import default_point, document, identity
from analysis.page.lines import where
from analysis.page.markup import esc, prose
from analysis.run_directory import Point, Run, RunDirectoryError, load, unwritable
from moscope.aside import write_whole
from moscope.errors import UserError

# Points with figures in the page. More would make the page too large; the figures of others are PNG only.
DRAWN_IN_PAGE = 24


def write_report(run_dir: str | Path, figures: Sequence[Spec] | None = None) -> Path:
    """Makes (or makes again) the report of the run in `run_dir`, whole or partial, with all figures or those given, and returns the
    page's path.

    Raises RunDirectoryError (`file: problem: expected ...`) where there is no run or nothing can be written.
    """
    run = load(run_dir)
    figures = all_figures() if figures is None else list(figures)
    try:
        (run.path / "figures").mkdir(exist_ok=True)
        shown = {(spec.name, id(subject)): _render(run, spec, subject)
                 for spec in figures for subject in ([run] if spec.of == "run" else run.points)}
        tables.write_csv(run, run.path / "tables")
        episodes.write(run)
        target = run.path / "report.html"
        write_whole(target, document(run, figures, lambda spec, subject: shown[spec.name, id(subject)]).encode())
    except OSError as error:
        raise unwritable(error, run.path) from error
    return target


def _render(run: Run, spec: Spec, subject: Run | Point) -> str:
    """Writes the figure's PNG and returns its part of the page; neither without data."""
    point = subject if isinstance(subject, Point) else None
    file = run.path / "figures" / (f"{spec.name}-{point.name}.png" if point else f"{spec.name}.png")
    wide = spec.drawn(subject, True)
    if wide is None:
        file.unlink(missing_ok=True)
        return ""
    in_page = spec.in_page and (point is None or run.points.index(point) < DRAWN_IN_PAGE or point is default_point(run))
    key = spec.name + (f"-{identity(point)}" if point else "")
    drawn = style.svg(wide, f"{key}-wide", spec.title, "wide") if in_page else ""
    write_whole(file, style.png(wide, f"{spec.title}: {where(point)}" if point else spec.title))
    narrow = spec.drawn(subject, False) if in_page else None
    if narrow is None:
        return ""
    drawn += style.svg(narrow, f"{key}-narrow", spec.title, "narrow")
    return f'<figure id="{esc(key)}"><h3>{esc(spec.title)}</h3><figcaption>{prose(spec.caption_of(subject))}</figcaption>{drawn}</figure>'


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(f"analysis.report: arguments: {len(arguments)}: expected one, the folder of a run", file=sys.stderr)
        return 2
    try:
        print(write_report(arguments[0]))
    except (RunDirectoryError, UserError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
