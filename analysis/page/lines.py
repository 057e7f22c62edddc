# SPDX-License-Identifier: BSD-3-Clause
"""The first thing a reader sees: which lines cost most and who fights over them."""

from typing import Any

from analysis import moves, style, tables
from analysis.figures.hot_lines import seen, split
from analysis.page.markup import code, esc, number, percent, table
from analysis.run_directory import FS_PER_US, Point

SHOWN = 10
WORTH_TELLING = 0.005
MOST = 40
CLASS_WORDS = {"cold": "cold", "capacity": "capacity", "upgrade": "upgrade", "true_sharing": "true sharing",
               "false_sharing": "false sharing", "spin": "spinning"}


def where(p: Point) -> str:
    return f"{p.workload} on {p.kernel}, {p.cores} core{'s' if p.cores != 1 else ''}"


def headline(p: Point) -> str:
    """The answer in words; HTML."""
    causes = tables.causes(p)
    memory = causes.get("memory", sum(causes.get(k, 0.0) for k in (*tables.CLASSES, "without_class")))
    spin = causes.get("spin", 0.0)
    lines = tables.hot_names(p)
    begin = f"With {p.cores} core{'s' if p.cores != 1 else ''}, waiting for memory takes <strong>{esc(percent(memory))}</strong> of the cores’ time"
    if spin >= WORTH_TELLING:
        begin += f" and turning in spin loops <strong>{esc(percent(spin))}</strong>"
    if not causes:
        begin = f"{esc(where(p)).capitalize()}: no split of the cores’ time was recorded"
    if not lines or not lines[0]["wait_share"]:
        return f"{begin}. No line stood out, or none was recorded."
    first = lines[0]
    which = "one line" if first["lines"] == 1 else f"{number(first['lines'])} lines of one name"
    text = f"{begin}; <strong>{esc(percent(first['wait_share']))}</strong> of that is for {which}, {code(first['name'])}"
    text += fight(first)
    ten = sum(one["wait_share"] for one in lines[:SHOWN])
    return f"{text}. The first {min(SHOWN, len(lines))} below take {esc(percent(ten))} of all waiting."


def fight(line: dict[str, Any]) -> str:
    """Who waits for a line most and who writes it most: the two that the run's `bottleneck` names, so that one run never says two things. They
    need not be the largest pair: only where they are is it said that a function fights with itself."""
    writer, waiter = (next((f for f, _ in line[who] if f != tables.UNKNOWN), None) for who in ("writers", "waiters"))
    if waiter is None:
        return ""
    if writer is None:
        return f", which {code(waiter)} waits for"
    if writer != waiter:
        return f", which {code(waiter)} waits for and {code(writer)} writes"
    pairs = [(a, b) for a, b, waited in sorted(line["pairs"], key=lambda x: -x[2]) if waited and a != tables.NO_WRITER]
    if pairs and pairs[0] == (writer, waiter):
        return f", over which {code(writer)} fights with itself on other cores"
    return f", which {code(waiter)} both waits for and writes"


def _people(found: list[tuple[str, float | None]]) -> str:
    if not found:
        return '<span class="quiet">no other core</span>'
    return ", ".join(code(f) + (f' <span class="quiet">{esc(percent(s))}</span>' if s is not None else "") for f, s in found[:3])


def _card(rank: int, line: dict[str, Any], most: float, told: int) -> str:
    parts = split(line)
    bar = "".join(f'<i style="width:{100 * share / most:.3f}%;background:var(--{cause})" title="{esc(style.LABELS[cause])}: '
                  f'{esc(percent(share, 1))}"></i>' for cause, share in parts if share > 0) if most else ""
    what = f'<span class="what">{code(line["what"])}</span>' if line["what"] else ""
    kind = CLASS_WORDS.get(line["class"], line["class"])
    many = f'<span class="chip">{number(line["lines"])} lines</span>' if line["lines"] > 1 else ""
    facts = [f"{number(line['transfers'])} transfers"]
    if line["cores"]:
        up_to = "up to " if line["lines"] > 1 and not line.get("counted") else ""
        facts.append(f"{up_to}{line['cores']} core{'s' if line['cores'] != 1 else ''} waited")
    if line["stall_us"] is not None:
        facts.append(f"{number(line['stall_us'], 1)} µs of stall")
    if line["spin_us"]:
        facts.append(f"{number(line['spin_us'], 1)} µs of spinning")
    if line["lines"] == 1 and line["address"]:
        facts.append(f"address {esc(line['address'])}")
    return (f'<li><div class="rank">{rank}</div><div class="line"><div class="top"><span class="name">{code(line["name"])}</span>'
            f'{what}<span class="chip c-{esc(line["class"])}">{esc(kind)}</span>{many}</div>'
            f'<div class="measure"><div class="bar">{bar}</div><b>{esc(percent(line["wait_share"], 1))}</b></div>'
            f'<div class="who"><span class="quiet">written by</span> {_people(line["writers"])} '
            f'<span class="quiet">· waited for by</span> {_people(line["waiters"])}</div>{_details(line, ", ".join(facts), told)}</div></li>')


def _details(line: dict[str, Any], facts: str, told: int) -> str:
    pairs: dict[tuple[str, str], int] = {}
    for writer, waiter, waited in line["pairs"]:
        pairs[writer, waiter] = pairs.get((writer, waiter), 0) + waited
    ordered = sorted(pairs.items(), key=lambda x: -x[1])
    ways = _moves(line, told)
    if not any(pairs.values()):
        return f'<details><summary class="facts">{facts}</summary>{ways}</details>' if ways else f'<div class="facts">{facts}</div>'
    whole = (line["stall_us"] + line["spin_us"]) * FS_PER_US  # not of the pairs alone, of which not all are listed
    rows = [(code(a) if a != tables.NO_WRITER else f'<span class="quiet">{a}</span>', code(b), number(waited / FS_PER_US, 1),
             esc(percent(waited / whole))) for (a, b), waited in ordered[:12]]
    inner = table(f"Who fights over {line['name']}", ("last written by", "waits", "waiting (µs)", "of waiting for it"), rows, (2, 3))
    return f'<details><summary class="facts">{facts}</summary>{inner}{ways}</details>'


def _moves(line: dict[str, Any], told: int) -> str:
    """Who sent the line to whom, by chips, and of how many lines that is known: of the `told` hottest of the point."""
    if not told:
        return ""
    to, senders = moves.matrix(line["moves"])
    listed, lines = line["listed"], line["lines"]
    if not listed:
        none = f"none of these {number(lines)} lines is among them" if lines > 1 else "this line is not among them"
        return _quiet(f"No table by chips and no count of cores: both are kept for the {told} hottest lines of the point, and {none}.")
    of = "" if listed >= lines else f" (the hottest {listed} of {number(lines)} lines)"
    if not senders:
        return _quiet(f"In the windows nobody sent it to a core{of}.")
    about = f" This and the cores that waited are counted for the hottest {listed} of its {number(lines)} lines only." if of else ""
    rows = ((esc(source), *(number(times) if times else "" for times in row)) for source, row in senders)
    return _quiet(f"Times that it was sent from chip to chip.{about}") + table(
        f"Times that {line['name']} was sent, by chips{of}", ("from", *(f"to chip {chip}" for chip in to)), rows, range(1, len(to) + 1))


def _quiet(text: str) -> str:
    return f'<p class="unit">{text}</p>'


def section(p: Point) -> str:
    """Headline and list of one point."""
    lines = tables.hot_names(p)[:MOST]
    most = max((one["wait_share"] for one in lines), default=0.0)
    told = len(tables.hot_lines(p)) if _tells_moves(p) else 0
    cards = [_card(n, one, most, told) for n, one in enumerate(lines, 1)]
    listed = f'<ol class="lines">{"".join(cards[:SHOWN])}</ol>' if cards else '<p class="none">No lines were recorded for this point.</p>'
    if len(cards) > SHOWN:
        listed += (f'<details class="more"><summary>{len(cards) - SHOWN} more</summary><ol class="lines" start="{SHOWN + 1}">'
                   f'{"".join(cards[SHOWN:])}</ol></details>')
    reach = _reach(p, lines) + ("" if told or not lines else " From where to where lines went is not recorded in this run.")
    keys = "".join(f'<span><i style="background:var(--{c})"></i>{style.LABELS[c]}</span>'
                   for c in seen([part for one in lines for part in split(one)], most))
    said = p.record.get("bottleneck")
    told = f'<p class="bottleneck">The run says: {esc(said)}.</p>' if said and not (lines and lines[0]["name"] in str(said)) else ""
    return (f'<p class="headline">{headline(p)}</p>{told}<figure class="own"><h3>The lines that cost most</h3>'
            f'<p class="unit">Share of all waiting of the cores in use (%): memory stall, by why the line was not there, and spinning on it. A line is 64 bytes; lines of one name '
            f'are added up. Open one to see who fights over it.{reach}</p><div class="legend">{keys}</div>{listed}{_single(p)}</figure>')


def _tells_moves(p: Point) -> bool:
    return any("moves" in one for one in p.named.get("lines") or [] if isinstance(one, dict))


def _reach(p: Point, shown: list[dict[str, Any]]) -> str:
    """How much of the stall the list tells of, and how much lies below its end."""
    total, listed = p.attribution.get("lines_total"), len(tables.hot_lines(p))
    if not p.named.get("names"):
        return f" Of the {number(total)} lines that were waited for, the {listed} hottest are listed." if total and total > listed else ""
    lines, names = int((p.named.get("all") or {}).get("lines") or 0), len(p.named["names"])
    text = (f" All {number(lines)} lines that were waited for are added up, under {number(names)} names" if lines > 1 else
            " One line was waited for")
    if names <= len(shown):
        return f"{text}."
    told = sum(one["wait_share"] for one in shown)
    return f"{text}; the {len(shown)} listed here take {esc(percent(told))} of the waiting, all others {esc(percent(max(0.0, 1 - told)))}."


def kinds(p: Point) -> str:
    """Table of the kinds of memory that were waited for."""
    rows = tables.point_kinds(p)
    if not rows:
        return ""
    inner = table("Kinds of memory that are waited for", ("kind", "lines", "stall (µs)", "spinning (µs)", "of all waiting"), (
        (esc(kind), number(lines), number(us, 1), number(spin, 1), esc(percent(share, 1))) for kind, lines, us, spin, share in rows),
        (1, 2, 3, 4))
    return (f'<section class="block"><h3>Kinds of memory that are waited for</h3><p class="unit">Exposed stall and spinning by what the line is part of, '
            f'over all lines and cores.</p>{inner}</section>')


def _single(p: Point) -> str:
    """The hottest lines one by one, where names take several together."""
    lines = tables.hot_lines(p)
    if len({one["name"] for one in lines}) == len(lines):
        return ""
    rows = [(str(n), code(one["name"]), code(one["what"]) if one["what"] else "", code(one["address"]), esc(percent(one["wait_share"], 2)),
             number(one["transfers"]), esc(CLASS_WORDS.get(one["class"], one["class"])), code(one["writers"][0][0]) if one["writers"] else "",
             code(one["waiters"][0][0]) if one["waiters"] else "") for n, one in enumerate(lines[:MOST], 1)]
    inner = table("The hottest single lines", ("", "name", "object", "address", "of all waiting", "transfers", "class", "written by",
                                               "waited for by"), rows, (4, 5))
    return f'<details class="more"><summary>The {len(rows)} hottest single lines</summary>{inner}</details>'


def locks(p: Point) -> str:
    """Table of the locks that are waited for."""
    rows = [one for one in tables.point_locks(p) if one["wait_share"] >= 0.0005][:12]
    if not rows:
        return ""
    inner = table("Locks that are waited for", ("lock", "of all waiting", "waiting functions", "stall (µs)", "spinning (µs)", "lines", "form"), (
        (code(one["lock"]), esc(percent(one["wait_share"], 1)), _people(one["waiters"]), number(one["stall_us"], 1),
         number(one["spin_us"], 1), number(one["lines"]), esc(one["form"])) for one in rows), (1, 3, 4, 5))
    return ('<section class="block"><h3>Locks that are waited for</h3><p class="unit">Exposed stall and spinning by lock, all objects of a kind together, over all '
            f'cores. Waiters of queued locks look at nodes of their own, which do not tell the lock: these are a row of their own.</p>{inner}</section>')


def functions(p: Point) -> str:
    """Table of the functions that wait most."""
    rows = tables.waiting_functions(p)[:15]
    if not rows:
        return ""
    inner = table("Functions that wait most", ("function", "in", "stall (µs)", "spinning (µs)", "of all waiting", "transactions"), (
        (code(name), "kernel" if kernel else "user", number(us, 1), number(spin, 1), esc(percent(share, 1)), number(count))
        for name, kernel, us, spin, share, count in rows), (2, 3, 4, 5))
    return f'<section class="block"><h3>Functions that wait most</h3><p class="unit">Exposed stall, and time in spin loops, by the function that waited, summed over all cores.</p>{inner}</section>'
