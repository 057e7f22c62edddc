# SPDX-License-Identifier: BSD-3-Clause
"""The results of a run for people, on the terminal."""

from collections.abc import Mapping
from typing import Any

from rich.table import Table

from moscope import terminal
from moscope.naming.own_code import WORTH_SHOWING, has_writers, merged, said
from moscope.runs.lines import with_file
from moscope.runs.statistics import trend
from moscope.schema.enumerations import TIME_KIND, WAIT
from moscope.wording import number, percent

PLACES = {"written_at": "written at", "waited_at": "waits at  ", "called_at": "called at "}
FUNCTIONS = {"written_at": ("written by", "writers"), "waited_at": ("waits in  ", "waiters")}
MOST = 2  # places of a name


def show(document: dict[str, Any]) -> None:
    """Prints the points in a table, then what limits each point and its hottest lines."""
    console = terminal.console()
    operations = {p["operation"] for p in document["points"]}
    unit = operations.pop() if len(operations) == 1 else "operations"
    table = Table(title=f"{document['machine']}: {unit} per second, and where the cores' time goes")
    for name in ("workload", "kernel"):
        table.add_column(name)
    for name in ("cores", "per second", "+-", "per core", *TIME_KIND.names, "spin", "kernel"):
        table.add_column(name, justify="right", no_wrap=True)
    for p in document["points"]:
        cycles = p["cycles"]
        error = "" if p["stderr_per_s"] is None else f"{p['stderr_per_s']:,.0f}"
        rates = (f"{p['throughput_per_s']:,.0f}", error, f"{p['throughput_per_s'] / p['cores']:,.0f}") if p["ops"] else ("-", "", "-")
        table.add_row(p["workload"], p["kernel"], str(p["cores"]), *rates,
                      *(percent(cycles[k]) for k in TIME_KIND.names), percent(p["spin_cycles"]), percent(p["kernel_share"]))
    terminal.print_table(console, table, keys=3)
    if any(p["ops"] and p["stderr_per_s"] is not None for p in document["points"]):
        console.print("+-: the standard error")
    for p in document["points"]:
        console.print(f"{p['workload']} on {number(p['cores'], 'core')} ({p['kernel']}): {p['bottleneck']}", soft_wrap=True)
        if "until_error" in p:
            console.print(f"    {until_error(p['until_error'])}", soft_wrap=True)
        if "trend" in p:
            console.print(f"    {trend.said(p)}", soft_wrap=True)
        for name in p["top_names"][:5]:
            console.print(f"    {waiting(name)}", soft_wrap=True)
            for text in places(name):
                console.print(f"             {text}", soft_wrap=True)
    if "report" in document:
        console.print(f"report: {document['report']}", soft_wrap=True)


def waiting(name: dict[str, Any]) -> str:
    """What a name costs, in the words of the sentence on the point: ` 55 %  stats.lock  true sharing, 10 % spinning`."""
    kind = WAIT.noun(name["class"]) if name["class"] in WAIT.names else name["class"]
    spun = name["spin_share"] > 0.005 * name["wait_share"]
    spin = f", {percent(name['spin_share'] / name['wait_share'])} spinning" if spun else ""
    return f"{percent(name['wait_share']):>5}  {with_file(name)}  {kind}{spin}"


def places(name: dict[str, Any]) -> list[str]:
    """The source lines that write a name, wait for it, or call what waits; code without debug information by function. If no source
    line is known, or each has a small share, the functions with the largest shares. No writers if little of the waiting follows a
    write by another core or a device."""
    found = []
    for key, verb in PLACES.items():
        if key == "written_at" and not has_writers(name):
            continue
        large = [place for place in merged(name.get(key, []), at)[:MOST] if place["share"] >= WORTH_SHOWING]
        found += [f"{verb} {percent(place['share']):>5}  {at(place)}" for place in large]
        by, functions = FUNCTIONS.get(key, ("", ""))
        if not large and name.get(functions):
            found.append(f"{by}        {', '.join(name[functions][:MOST])}")
    return found


def at(place: Mapping[str, Any]) -> str:
    """A source line in words: `packed:work  stats.c:17, in count called at stats.c:24`."""
    return f"{place['function']}  {said(place['function'], place['source'], place['inlined'])}" if place["source"] else place["function"]


def until_error(found: dict[str, Any]) -> str:
    """The result of `--until-error`, in words."""
    reached = "unknown" if found["reached"] is None else percent(found["reached"], 1)
    taken = f"{number(found['windows'], 'window')} of at most {found['limit']}"
    if found["met"]:
        return f"standard error of throughput {reached}, below {100 * found['wanted']:g} %, after {taken}"
    above = found["reached"] is not None and found["reached"] >= found["wanted"]
    verdict = ", above the wanted" if above else ": not known to be below"
    return f"standard error of throughput {reached}{verdict} {100 * found['wanted']:g} % after {taken}: {found['why']}"
