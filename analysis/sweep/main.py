# SPDX-License-Identifier: BSD-3-Clause
"""Makes report.html and figures/*.png of a sweep: `python -m analysis.sweep.main DIR [EXPRESSION]`. With an expression, that figure is
written as PNG and SVG, and the path of the PNG is printed."""

import io
import sys
from pathlib import Path

from matplotlib.figure import Figure

from analysis import style
from analysis.page.markup import esc, prose
from analysis.run_directory import RunDirectoryError, unwritable
from analysis.sweep import curves, expression, page, topologies
from analysis.sweep.expression import Expression
from analysis.sweep.table import Sweep, load
from moscope.aside import write_whole

LIST = ".report"  # in the folder of figures: which of them are the report's


def write_report(sweep: Sweep) -> Path:
    folder = sweep.path / "figures"
    folder.mkdir(exist_ok=True)
    target = sweep.path / "report.html"
    written: list[str] = []
    document = page.document(sweep, sweep.drawn(), lambda wanted: _curve(sweep, wanted, written), _topologies(sweep, written))
    write_whole(target, document.encode())
    for name in _listed(folder):
        if name not in written:
            (folder / name).unlink(missing_ok=True)
    write_whole(folder / LIST, "\n".join(written))
    return target


def _listed(folder: Path) -> list[str]:
    """The files that the last report wrote there."""
    try:
        names = (folder / LIST).read_text(encoding="utf-8").splitlines()
        return [name for name in names if name == Path(name).name and name.endswith(".png")]
    except (OSError, ValueError):
        return []


def _curve(sweep: Sweep, wanted: Expression, written: list[str]) -> str:
    wide = curves.draw(sweep, wanted, True)
    if wide is None:
        return ""
    return _figure(sweep, wanted.file, f"{wanted.figure} against {wanted.x}", caption(sweep, wanted), wide,
                   curves.draw(sweep, wanted, False), written)


def caption(sweep: Sweep, wanted: Expression) -> str:
    said, means = [], curves.averaged(sweep, wanted)
    if means:
        said.append(f"Points are means over {', '.join(means)}.")
    if curves.has_errors(sweep, wanted):
        said.append(f"Error bars are standard errors{' of the means' if means else ' over the windows, where known'}.")
    if wanted.by:
        said.append("Where curves coincide, all but one are dashed.")
    if failed := curves.lacking(sweep, wanted):
        said.append(f"{failed} of {len(sweep.rows)} points failed, and means leave them out: a mean of fewer points may differ for this "
                    "reason.")
    return " ".join(said)


def _topologies(sweep: Sweep, written: list[str]) -> str:
    wide = topologies.draw(sweep, True)
    if wide is None:
        return ""
    return _figure(sweep, "topologies", "Links of each variant", "Circles are chips, lines are links.", wide,
                   topologies.draw(sweep, False), written)


def _figure(sweep: Sweep, name: str, title: str, caption: str, wide: Figure, narrow: Figure | None, written: list[str]) -> str:
    """Adds the name of the picture to `written`."""
    key = "f-" + "".join(c if c.isalnum() else "-" for c in name)
    drawn = style.svg(wide, f"{key}-wide", title, "wide")
    write_whole(sweep.path / "figures" / f"{name}.png", style.png(wide, title))
    written.append(f"{name}.png")
    if narrow is not None:
        drawn += style.svg(narrow, f"{key}-narrow", title, "narrow")
    return f'<figure id="{esc(key)}"><h3>{esc(title)}</h3><figcaption>{prose(caption)}</figcaption>{drawn}</figure>'


def write_plot(sweep: Sweep, text: str) -> Path:
    """The one figure of an expression, as PNG and SVG."""
    wanted = expression.parse(text, sweep)
    fig = curves.draw(sweep, wanted, True)
    if fig is None:
        raise RunDirectoryError(f"--plot: {text!r}: no finished point has {wanted.figure}: expected another figure")
    (sweep.path / "figures").mkdir(exist_ok=True)
    target = sweep.path / "figures" / f"plot-{wanted.file}.png"
    write_whole(target, style.png(fig, str(wanted)))
    out = io.BytesIO()
    with style.house():
        fig.savefig(out, format="svg", facecolor=style.color("page"))
    write_whole(target.with_suffix(".svg"), out.getvalue())
    return target


def main(arguments: list[str]) -> int:
    if not 1 <= len(arguments) <= 2:
        print(f"analysis.sweep: arguments: {len(arguments)}: expected the folder of a sweep, and an expression or none", file=sys.stderr)
        return 2
    try:
        sweep = load(Path(arguments[0]))
        write_report(sweep)
        if len(arguments) == 2:
            print(write_plot(sweep, arguments[1]))
    except (RunDirectoryError, OSError) as error:
        print(unwritable(error, Path(arguments[0])) if isinstance(error, OSError) else error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
