# SPDX-License-Identifier: BSD-3-Clause
"""The page as a whole, from a run and its figures."""

import json
from collections.abc import Callable
from pathlib import Path

from analysis import style
from analysis.figures import Spec
from analysis.page import lines, waiting
from analysis.page.markup import code, esc, number, percent, table
from analysis.run_directory import Point, Run

HERE = Path(__file__).parent
# What a figure looks like in the page, as HTML; empty where the run has no data for it.
Shown = Callable[[Spec, Run | Point], str]

TERMS = (
    ("memory stall", "Time in which a core cannot go on because a transaction beyond its L1 has not ended: exposed stall, charged to the "
     "oldest load, walk, fetch or buffered store that it waits for. Every stalled tick is charged to exactly one line, when its "
     "transaction ends; those under way at the last window's end (at most one per core) have none."),
    ("spinning", "Time in which a core turns in a loop around a PAUSE and looks at a line that it has, until another core writes it: waiting "
     "for a lock. It belongs to the line whose write ends it, and is part of busy time and core stall, not of memory stall. A waiter in a "
     "queued lock looks at a line of its own."),
    ("waiting", "Memory stall and spinning together: what a line costs."),
    ("true and false sharing", "Another core wrote the line since this core last had it: the bytes that it wants now (true), or only other "
     "bytes (false). Moving fields apart removes false sharing only."),
    ("upgrade", "The core has the line but not the right to write it."),
    ("cold, capacity", "The core never had the line since detailed simulation began; or it had it and replaced it while nobody wrote it."),
    (style.LABELS["without_class"], "Memory stall whose transaction was under way when the last window ended, at most one per core."),
    ("core stall", "Stalls without a memory transaction: long operations, device registers."),
)


def theme() -> str:
    """The palette as custom properties."""
    light = ";".join(f"--{role}:{value[0]}" for role, value in style.PALETTE.items())
    dark = ";".join(f"--{role}:{value[1]}" for role, value in style.PALETTE.items())
    return f":root{{{light}}}@media (prefers-color-scheme:dark){{:root{{{dark}}}}}"


def default_point(run: Run) -> Point | None:
    """The one shown first: the most cores of the run's first workload and kernel."""
    first = [(p.workload, p.kernel) for p in run.points if p.stats or p.record.get("top_lines")] or [(p.workload, p.kernel) for p in run.points]
    wanted = run.record.get("points") or []
    listed = [(str(w.get("workload")), str(w.get("kernel"))) for w in wanted if isinstance(w, dict)]
    key = next((k for k in listed if k in first), first[0] if first else None)
    return max((p for p in run.points if (p.workload, p.kernel) == key), key=lambda p: p.cores, default=None)


def identity(p: Point) -> str:
    return "p-" + "".join(c if c.isalnum() else "-" for c in p.name)


def picker(run: Run, chosen: Point) -> str:
    if len(run.points) < 2:
        return ""
    groups = []
    for (workload, kernel), points in run.series().items():
        buttons = "".join(f'<button type="button" data-point="{identity(p)}" aria-pressed="{"true" if p is chosen else "false"}">{p.cores}</button>'
                          for p in points)
        groups.append(f'<div class="group" role="group" aria-label="{esc(workload)} on {esc(kernel)}"><span>{esc(workload)} on {esc(kernel)}, cores</span>{buttons}</div>')
    return f'<nav class="picker" aria-label="Point that is shown">{"".join(groups)}</nav>'


def per_point(run: Run, chosen: Point, content: Callable[[Point], str]) -> str:
    """The same section of every point, of which the chosen one is in sight."""
    return "".join(f'<div class="point" data-of="{identity(p)}"{"" if p is chosen else " hidden"}>'
                   f'{content(p)}</div>' for p in run.points)


def which(p: Point) -> str:
    return f'<p class="which">{esc(lines.where(p))}</p>'


def points_table(run: Run) -> str:
    rows = []
    for p in run.points:
        cycles = p.record.get("cycles") or {}
        error = p.number("stderr_per_s")
        rows.append((esc(p.workload), esc(p.kernel), str(p.cores), esc(p.operations), number(p.number("throughput_per_s")) + (f" ± {error:,.0f}" if error is not None else ""),
                     esc(percent(p.number("kernel_share"))), *(esc(percent(cycles.get(k))) for k in ("busy", "core", "memory", "idle")),
                     number(p.number("window_ms"), 2) + (f" × {len(p.record['windows'])}" if p.record.get("windows") else ""),
                     number(p.number("host_s"))))
    return table("All points", ("workload", "kernel", "cores", "operation", "per second", "kernel share", "busy", "core stall", "memory stall", "idle",
                                "windows (ms)", "host (s)"), rows, (2, *range(4, 12)))


def configuration(run: Run) -> str:
    config = run.record.get("config")
    if not config:
        return ""
    text = json.dumps(config, indent=1, ensure_ascii=False)
    if len(text) > 60000:
        text = text[:60000] + "\n… run.json has the rest"
    return f'<details class="more"><summary>Configuration of the run</summary><pre class="scroll" tabindex="0">{esc(text)}</pre></details>'


def notices(run: Run) -> str:
    found = list(run.problems)
    if run.record and run.record.get("ok") is False:
        found.insert(0, "the run says of itself that not all went well")
    if not found:
        return ""
    return f'<div class="notice" role="note"><strong>This run is not whole.</strong><ul>{"".join(f"<li>{esc(f)}</li>" for f in found[:20])}</ul></div>'


def document(run: Run, figures: list[Spec], shown: Shown) -> str:
    """The whole page."""
    chosen = default_point(run)
    workloads = ", ".join(dict.fromkeys(p.workload for p in run.points)) or "no finished point"
    kernels = ", ".join(dict.fromkeys(p.kernel for p in run.points))
    body = [f'<header><p class="brand">moscope</p><h1>Which cache lines cost most, who writes them and who waits</h1>'
            f'<p class="sub">{esc(workloads)}{" on kernel " + esc(kernels) if kernels else ""} · machine {code(run.machine)}{" · " + esc(run.engine) if run.engine else ""}</p></header>', notices(run)]
    if chosen:
        whole = "".join(shown(f, run) for f in figures if f.of == "run")
        body += [
            f'<section aria-label="Lines"><div class="sticky">{picker(run, chosen)}</div>{per_point(run, chosen, lines.section)}</section>',
            f'<section><h2>How it scales</h2>{whole}</section>' if whole else "",
            f'<section><h2>Who waits for whom, and where</h2>{picker(run, chosen)}'
            f'{per_point(run, chosen, lambda p: which(p) + "".join(shown(f, p) for f in figures if f.of == "point") + waiting.functions(p) + waiting.locks(p) + waiting.kinds(p))}</section>',
            f'<section><h2>All points</h2>{points_table(run)}</section>']
    else:
        body.append('<p class="headline">No point of this run has finished.</p>')
    rare = style.LABELS["without_class"]  # explained where a legend lists it
    terms = "".join(f"<dt>{t}</dt><dd>{d}</dd>" for t, d in TERMS if t != rare or any(rare in part for part in body))
    body.append(f"<section><h2>How to read this</h2><dl>{terms}</dl>{configuration(run)}</section>")
    css, script = ((HERE / n).read_text(encoding="utf-8") for n in ("style.css", "script.js"))
    return (f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">'
            f'<meta name="color-scheme" content="light dark"><title>moscope: {esc(workloads)}</title><link rel="icon" href="data:,"><style>{theme()}\n{css}</style></head>'
            f'<body><main>{"".join(body)}</main><script>{script}</script></body></html>\n')
