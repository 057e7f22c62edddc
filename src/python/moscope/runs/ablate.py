# SPDX-License-Identifier: BSD-3-Clause
"""Each fix of the kernel alone: a run over the settings between `stock` and `pk`, and its rows."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from moscope.cli import Shared
from moscope.errors import UserError
from moscope.guest import kernel_names
from moscope.runs import options
from moscope.wording import number, percent

SCHEMA = "moscope.ablate/1"
DEFAULT_OUT = Path("moscope-out/ablate")
BAR = 40  # characters


def chosen(fixes: str | None) -> list[int]:
    """The fixes of a list such as `2,7`, in order; by default all fixes that the kernel can switch."""
    known = kernel_names.numbers()
    if fixes is None:
        return known
    wanted = [part.strip() for part in fixes.split(",")]
    for part in wanted:
        if not (part.isascii() and part.isdigit() and int(part) in known):
            raise UserError(f'--fixes: "{part}" cannot be switched in this kernel: expected some of {",".join(map(str, known))}')
    return sorted({int(part) for part in wanted})


def settings(fixes: list[int]) -> list[str]:
    """`stock`, each fix on alone, each off alone, `pk`."""
    return ["stock", *(f"stock+{n}" for n in fixes), *(f"pk-{n}" for n in fixes), "pk"]


def plan(shared: Shared, given: options.Options, fixes: str | None, *, build: bool = True) -> options.Plan:
    """The plan of `moscope run` for these kernels, in its own folder; `build` as for `options.make`."""
    options.one_point("ablate", given)
    asked = replace(given, kernel=",".join(settings(chosen(fixes))))
    return options.make(replace(shared, out=shared.out or DEFAULT_OUT), asked, build=build)


def document(plan: options.Plan, run: dict[str, Any]) -> dict[str, Any]:
    """moscope.ablate/1, from the points that are finished."""
    by_kernel = {p["kernel"]: p for p in run["points"]}
    rows = [{"kernel": p["kernel"], "throughput_per_s": p["throughput_per_s"], "stderr_per_s": p["stderr_per_s"],
             "within_error": within_error(p, by_kernel.get(re.split("[+-]", p["kernel"])[0])), "top_lines": p["top_lines"],
             **({"trend": p["trend"]} if "trend" in p else {})}
            for p in run["points"]]
    return {"schema": SCHEMA, "ok": run["ok"], "workload": plan.points[0].workload, "cores": plan.points[0].cores, "rows": rows,
            **{key: run[key] for key in ("failed", "report") if key in run}}


def forecast(plan: options.Plan) -> tuple[dict[str, Any], str]:
    """moscope.ablate/1 of --dry-run, and the same in words."""
    from moscope.sweeps import forecast

    found, said = forecast.forecast(plan)
    return {"schema": SCHEMA, "workload": plan.points[0].workload, "cores": plan.points[0].cores, "rows": [], **found}, said


def record_times(plan: options.Plan, before: Mapping[str, dict[str, Any]], run: dict[str, Any]) -> None:
    """Keeps the host time of the points measured now, for estimates (`speeds`). `before`: the points that were there already, by name; an
    outdated one was measured again."""
    from moscope.sweeps import points, speeds
    from moscope.sweeps.jobs.base import Planned
    from moscope.sweeps.jobs.run import kind_of, work_of

    seconds = {p["kernel"]: p["host_s"] for p in run["points"]}
    speeds.record((points.Point({}, Planned({}, kind_of(p), work=work_of(p))), {"seconds": seconds[p.kernel], "figures": {}})
                  for p in plan.points if p.kernel in seconds and seconds[p.kernel] != before.get(p.name, {}).get("host_s"))


def within_error(point: dict[str, Any], base: dict[str, Any] | None) -> bool | None:
    """Whether the throughput of a mix differs from that of the kernel that it changes by no more than the error (95 %). None for
    that kernel itself, and if an error is unknown."""
    if base is None or base is point:
        return None
    found = [(p.get("confidence") or {}).get("figures", {}).get("throughput_per_s") or {} for p in (base, point)]
    widths = [float(one["half_width"]) for one in found if one.get("half_width") is not None]
    return abs(found[1]["value"] - found[0]["value"]) <= math.hypot(*widths) if len(widths) == 2 else None


def show(document: dict[str, Any]) -> None:
    """Prints the rows as bars, each with its most expensive line."""
    rows = document["rows"]
    most = max((row["throughput_per_s"] for row in rows), default=0)
    errors = ["" if row["stderr_per_s"] is None else f" +- {row['stderr_per_s']:,.0f}" for row in rows]
    width = max(map(len, errors), default=0)
    print(f"{document['workload']} on {number(document['cores'], 'core')}, per second{', +- the standard error' if width else ''}:")
    for row, error in zip(rows, errors, strict=True):
        bar = "#" * round(BAR * row["throughput_per_s"] / most) if most else ""
        line = row["top_lines"][0] if row["top_lines"] else None
        hottest = f"  {percent(line['wait_share'])} {line['name']}" if line else ""
        hottest += f"  (within the error of {re.split('[+-]', row['kernel'])[0]})" if row["within_error"] else ""
        hottest += "  (not steady)" if "trend" in row else ""
        print(f"  {row['kernel']:<9} {row['throughput_per_s']:>12,.0f}{error:<{width}}  {bar:<{BAR}}{hottest}")
    if any(row["within_error"] for row in rows):
        print("within the error: the 95 % interval of the difference contains zero")
    if "report" in document:
        print(f"report: {document['report']}")
