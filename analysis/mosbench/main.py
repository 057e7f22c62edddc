# SPDX-License-Identifier: BSD-3-Clause
"""Makes mosbench.html and figures/figure-N.png of the folder of `moscope mosbench`: `main([DIR])`. Prints what the command's JSON object
says of them: paths by number of the paper's figure, ratios and limits."""

import json
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from analysis import style
from analysis.figures import throughput, time_per_op
from analysis.mosbench import data, page, summary
from analysis.mosbench.data import Application, Results
from analysis.mosbench.limits import Limit, limit
from analysis.mosbench.published import bar
from analysis.page.markup import esc, prose
from analysis.run_directory import RunDirectoryError, unwritable
from moscope.aside import write_whole

PAGE = "mosbench.html"


def write(results: Results) -> dict[str, Any]:
    (results.path / "figures").mkdir(exist_ok=True)
    found = {a.name: limit(*a.last.ends) if a.last and a.last.ends else None for a in results.applications}
    figures: dict[str, str] = {}
    with style.house():
        drawn = _figure(results, figures, "3", "Throughput per core, relative to one core", summary.CAPTION, summary.draw(results, True),
                        summary.draw(results, False))
        sections = [page.section(a, _of_application(results, a, figures)) for a in results.applications]
    target = results.path / PAGE
    write_whole(target, page.document(results, drawn, found, sections).encode())
    return {"most_cores": results.most_cores, "figures": figures, "report": str(target),
            "applications": [_described(results, a, found[a.name]) for a in results.applications]}


def _of_application(results: Results, one: Application, figures: dict[str, str]) -> str:
    curves = _figure(results, figures, str(one.figure), f"{one.title}: throughput", _with(throughput.caption(one.run), one),
                     throughput.draw(one.run, True), throughput.draw(one.run, False))
    times = _figure(results, figures, f"{one.figure}-time", f"{one.title}: time per operation",
                    _with(time_per_op.FIGURE.caption_of(one.run), one),
                    time_per_op.draw(one.run, True), time_per_op.draw(one.run, False))
    return curves + times


def _with(caption: str, one: Application) -> str:
    return f"{caption} {page.measured(one)}".rstrip()


def _figure(results: Results, figures: dict[str, str], number: str, title: str, caption: str, wide: Figure | None,
            narrow: Figure | None) -> str:
    """The figure as HTML, and as PNG, whose path goes into `figures`; empty where there are no points."""
    if wide is None:
        return ""
    key = f"figure-{number}"
    path = results.path / "figures" / f"{key}.png"
    write_whole(path, style.png(wide, title))
    figures[number] = str(path)
    drawn = style.svg(wide, f"{key}-wide", title, "wide") + (style.svg(narrow, f"{key}-narrow", title, "narrow") if narrow else "")
    return f'<figure id="{key}"><h3>{esc(title)}</h3><figcaption>{prose(caption)}</figcaption>{drawn}</figure>'


def _described(results: Results, one: Application, found: Limit | None) -> dict[str, Any]:
    curves = []
    for n, c in enumerate(one.curves):
        known = bar(results, one, n)
        curves.append({"label": c.label, "kernel": c.kernel, "ratio": c.ratio, "ratio_stderr": c.ratio_stderr,
                       "paper": known.text if known else None,
                       "difference": known.difference(c.ratio) if known and c.ratio is not None else None,
                       "limit": limit(*c.ends).document() if c.ends else None})
    return {"name": one.name, "title": one.title, "curves": curves, "limit": found.document() if found else None,
            "paper_limit": one.limit}


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(f"analysis.mosbench: arguments: {len(arguments)}: expected the folder of moscope mosbench", file=sys.stderr)
        return 2
    try:
        print(json.dumps(write(data.load(Path(arguments[0])))))
    except (RunDirectoryError, OSError) as error:
        print(unwritable(error, Path(arguments[0])) if isinstance(error, OSError) else error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
