# SPDX-License-Identifier: BSD-3-Clause
"""The page as a whole, from a run and its figures."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from analysis import style
from analysis.described import CLASSES, MISS_CLASS, TIME_KIND, WAITS
from analysis.figures import Spec
from analysis.page import flames, lines, waiting
from analysis.page.markup import code, esc, number, percent, table
from analysis.run_directory import Point, Run
from moscope.runs.options import MEMORY
from moscope.runs.statistics import trend

HERE = Path(__file__).parent
MOST_NOTICES = 20
# Beside the buttons of a picker.
NO_SCRIPT = ('<noscript><p class="which">These buttons need JavaScript, which is switched off in this browser. A print of the page shows '
             "what each of them chooses.</p></noscript>")
# A figure as HTML; empty if the run has no data for it.
Shown = Callable[[Spec, Run | Point], str]

TERMS = (
    ("memory stall", "Time in which a core cannot continue because a transaction beyond its L1 has not ended. This exposed stall is "
     "charged to the oldest load, walk, fetch or buffered store that the core waits for. Each stalled tick is charged to exactly one "
     "line, when its transaction ends."),
    ("spinning", "Time in which a core repeats a loop with the instruction PAUSE and reads a line that it has, until another core writes "
     "the line: it waits for a lock. This time belongs to the line whose write ends it. It is part of busy time and core stall, not of "
     "memory stall. A waiter in a queued lock reads a line of its own."),
    ("waiting", "Memory stall and spinning together: what a line costs."),
    *((MISS_CLASS.label(c), f"Memory stall, because {MISS_CLASS[c].sentence}.") for c in CLASSES),
    (style.LABELS["without_class"], "Memory stall whose transaction had not ended when the last window ended, at most one transaction per "
     "core."),
    ("core stall", "Stalls without a memory transaction: slow instructions, such as divisions, and device registers."),
)


def theme() -> str:
    """The palette as custom properties, and the borders of the classes' chips."""
    light = ";".join(f"--{role}:{value[0]}" for role, value in style.PALETTE.items())
    dark = ";".join(f"--{role}:{value[1]}" for role, value in style.PALETTE.items())
    chips = "".join(f".chip.c-{wait}{{border-color:var(--{wait})}}" for wait in WAITS if wait in style.PALETTE)
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}{chips}"


def default_point(run: Run) -> Point | None:
    """The point shown first: the most cores of the run's first workload and kernel."""
    detailed = [p for p in run.points if p.stats or p.record.get("top_lines")]
    key = next(((p.workload, p.kernel) for p in detailed or run.points), None)
    return max((p for p in run.points if (p.workload, p.kernel) == key), key=lambda p: p.cores, default=None)


def identity(p: Point) -> str:
    return "p-" + "".join(c if c.isalnum() or c == "-" else f"_{ord(c):x}" for c in p.name)


def picker(run: Run, chosen: Point) -> str:
    if len(run.points) < 2:
        return ""
    groups = []
    for (workload, kernel), points in run.series().items():
        buttons = "".join(f'<button type="button" data-point="{identity(p)}" aria-pressed="{"true" if p is chosen else "false"}">'
                          f'{p.cores}</button>' for p in points)
        series = f"{esc(workload)} on {esc(kernel)}"
        groups.append(f'<div class="group" role="group" aria-label="{series}"><span>{series}, cores</span>{buttons}</div>')
    return f'<nav class="picker" aria-label="Point that is shown">{"".join(groups)}</nav>{NO_SCRIPT}'


def per_point(run: Run, chosen: Point, content: Callable[[Point], str]) -> str:
    """The same section of every point; only that of the chosen point is visible."""
    return "".join(f'<div class="point" data-of="{identity(p)}"{"" if p is chosen else " hidden"}>'
                   f'{content(p)}</div>' for p in run.points)


def which(p: Point) -> str:
    return f'<p class="which">{esc(lines.where(p))}</p>'


def throughput(p: Point) -> str:
    """Per second, with its standard error."""
    error = p.number("stderr_per_s")
    return number(p.throughput) + (f" ± {error:,.0f}" if error is not None and p.throughput is not None else "")


def points_table(run: Run) -> str:
    rows = []
    for p in run.points:
        cycles = p.record.get("cycles") or {}
        window = p.number("window_ms")
        length = ("–" if window is None else f"{window:,.4g}") + (f" × {len(p.record['windows'])}" if p.record.get("windows") else "")
        rows.append((esc(p.workload), esc(p.kernel), str(p.cores), esc(p.operations), throughput(p), esc(percent(p.number("kernel_share"))),
                     *(esc(percent(cycles.get(k))) for k in TIME_KIND.ranked), length, number(p.number("host_s"))))
    head = ("workload", "kernel", "cores", "operation", "per second (± standard error)", "kernel share",
            *map(TIME_KIND.label, TIME_KIND.ranked), "windows (ms)", "host (s)")
    return table("All points", head, rows, (2, *range(4, len(head))))


def simulated(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration without the machine file's size of memory, if the points have sizes of their own."""
    points, described = config.get("points"), config.get("description")
    if not points or not isinstance(described, dict) or not all(MEMORY in p for p in points):
        return config
    return {**config, "description": {key: value for key, value in described.items() if key != MEMORY}}


def configuration(run: Run) -> str:
    config = run.record.get("config")
    if not config:
        return ""
    text = json.dumps(simulated(config), indent=1, ensure_ascii=False)
    if len(text) > 60000:
        text = text[:60000] + "\n… run.json has the rest"
    return f'<details class="more"><summary>Configuration of the run</summary><pre class="scroll" tabindex="0">{esc(text)}</pre></details>'


def notices(run: Run) -> str:
    found = list(run.problems)
    if run.record and run.record.get("ok") is False:
        found.insert(0, "run.json: ok is false: some points of the run failed")
    lacking = notice("Missing from this report:", run.left_out)
    notes = notice("Notes of the points:", [f"{lines.where(p)}: {note}" for p in run.points for note in p.record.get("notes") or []])
    return notice("This run is incomplete.", found) + lacking + notes + unsteady((lines.where(p), p) for p in run.points)


def unsteady(points: Iterable[tuple[str, Point]]) -> str:
    """Of points with what they are called: those whose throughput changes while it is measured."""
    return notice("Some points were not steady.", [f"{where}: {trend.said(p.record)}" for where, p in points if "trend" in p.record])


def notice(title: str, found: list[str]) -> str:
    if not found:
        return ""
    more = [f"{len(found) - MOST_NOTICES} more"] if len(found) > MOST_NOTICES else []
    items = "".join(f"<li>{esc(f)}</li>" for f in [*found[:MOST_NOTICES], *more])
    return f'<div class="notice" role="note"><strong>{title}</strong><ul>{items}</ul></div>'


def head(run: Run) -> str:
    workloads = ", ".join(dict.fromkeys(p.workload for p in run.points)) or "no finished point"
    kernels = ", ".join(dict.fromkeys(p.kernel for p in run.points))
    measured = f'{esc(workloads)}{" on kernel " + esc(kernels) if kernels else ""}'
    return (f'<header><p class="brand">moscope</p><h1>Which cache lines cost most, who writes them and who waits</h1>'
            f'<p class="sub">{measured} · machine {code(run.machine)}{" · " + esc(run.engine) if run.engine else ""}</p></header>')


def sections(run: Run, chosen: Point, figures: list[Spec], shown: Shown) -> list[str]:
    whole = "".join(shown(f, run) for f in figures if f.of == "run")

    def who(p: Point) -> str:
        drawn = "".join(shown(f, p) for f in figures if f.of == "point")
        return which(p) + drawn + flames.section(p) + waiting.functions(p) + waiting.locks(p) + waiting.user_locks(p) + waiting.kinds(p)

    choice = picker(run, chosen)
    return [
        f'<section><h2 class="unseen">Lines</h2><div class="sticky">{choice}</div>{per_point(run, chosen, lines.section)}</section>',
        f'<section><h2>How it scales</h2>{whole}</section>' if whole else "",
        f'<section><h2>Who waits for whom, and where</h2>{choice}{per_point(run, chosen, who)}</section>',
        f'<section><h2>All points</h2>{points_table(run)}</section>']


def document(run: Run, figures: list[Spec], shown: Shown) -> str:
    """The whole page."""
    chosen = default_point(run)
    body = [head(run), notices(run)]
    body += sections(run, chosen, figures, shown) if chosen else ['<p class="headline">No point of this run has finished.</p>']
    rare = style.LABELS["without_class"]  # explained only if a legend lists it
    terms = "".join(f"<dt>{t}</dt><dd>{d}</dd>" for t, d in TERMS if t != rare or any(rare in part for part in body))
    body.append(f'<section id="terms"><h2>How to read this</h2><dl>{terms}</dl>{configuration(run)}</section>')
    css, script = ((HERE / n).read_text(encoding="utf-8") for n in ("style.css", "script.js"))
    title = ", ".join(dict.fromkeys(p.workload for p in run.points)) or "no finished point"
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
            f'content="width=device-width,initial-scale=1"><meta name="color-scheme" content="light dark"><title>moscope: {esc(title)}'
            f'</title><link rel="icon" href="data:,"><style>{theme()}\n{css}</style></head>'
            f'<body><main>{"".join(body)}</main><script>{script}</script></body></html>\n')
