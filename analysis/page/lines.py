# SPDX-License-Identifier: BSD-3-Clause
"""The first section of the page: the lines that cost most, the functions that write them and those that wait for them."""

from collections.abc import Mapping
from typing import Any

from analysis import episodes, style
from analysis.described import CLASSES, FS_PER_US, SPIN
from analysis.figures.hot_lines import seen, split
from analysis.page import flames, maps
from analysis.page.markup import NARROW_SPACE, code, esc, number, percent, table
from analysis.places import CALLED, calls
from analysis.run_directory import Point
from analysis.tables import transfers
from analysis.tables.base import NO_WRITER
from analysis.tables.lines import hot_lines
from analysis.tables.names import hot_names, waited_for
from analysis.tables.time_split import causes as causes_of
from moscope.naming.own_code import ALMOST_ALL, WORTH_SHOWING, has_writers, merged, of_pair, said, shown

SHOWN = 10
MATTERS = 0.2  # of a second source line
WORTH_MENTION = 0.005  # a share of the cores' time
MOST = 40


def where(p: Point) -> str:
    return f"{p.workload} on {p.kernel}, {p.cores} core{'s' if p.cores != 1 else ''}"


def headline(p: Point) -> str:
    """The answer in words; HTML."""
    causes = causes_of(p)
    memory = causes.get("memory", sum(causes.get(k, 0.0) for k in (*CLASSES, "without_class")))
    spin = causes.get(SPIN, 0.0)
    lines = hot_names(p)
    begin = (f"With {p.cores} core{'s' if p.cores != 1 else ''}, waiting for memory takes "
             f"<strong>{esc(percent(memory))}</strong> of the cores’ time")
    if spin >= WORTH_MENTION:
        begin += f" and spinning <strong>{esc(percent(spin))}</strong>"
    if not causes:
        begin = f"{esc(where(p)).capitalize()}: no split of the cores’ time was recorded"
    if not lines or not lines[0]["wait_share"]:
        return f"{begin}. No line stood out, or none was recorded."
    first = lines[0]
    many = first["waited"] != 1
    which = f"{number(first['waited'])} cache lines" if many else "one cache line"
    called = f"{' of' if many else ', that of'} {code(shared)}" if (shared := first["shared"]) else (
        f"{' of one name' if many else ''}, {code(first['name'])}")
    text = f"{begin}; <strong>{esc(percent(first['wait_share']))}</strong> of the waiting is for {which}{called}"
    text += (f" ({code(first['file'])})" if first["file"] else "") + contenders(first)
    if len(lines) == 1 or first["wait_share"] > ALMOST_ALL:
        return f"{text}."
    ten = sum(one["wait_share"] for one in lines[:SHOWN])
    return f"{text}. The first {min(SHOWN, len(lines))} below take {esc(percent(ten))} of all waiting."


def contenders(line: dict[str, Any]) -> str:
    """The writer and the waiter of the pair with the most waiting, or the function that waits most if few waits follow a write; as in the
    run's `bottleneck`."""
    if not has_writers(line) or not line["pair"]:
        return f", which {code(line['waiters'][0][0])} waits for" if line["waiters"] else ""
    writer, waiter = line["pair"]
    part = of_pair(line["pair_share"])
    it, begin = (" it", f", {esc(percent(part))} of this where") if part else ("", ", which")
    if writer != waiter:
        return f"{begin} {code(waiter)} waits for{it} and {code(writer)} writes{it}"
    return f"{begin} {code(writer)} writes{it} on one core and waits for{it} on another"


def _writers(line: dict[str, Any]) -> str:
    if not line["writers"] or line["after_writes"] is None:
        return functions(line["writers"])
    if not has_writers(line):
        return f'<span class="quiet">no other core or device for {esc(percent(1 - line["after_writes"]))} of the waiting</span>'
    return f'{functions(line["writers"])} <span class="quiet">(for {esc(percent(line["after_writes"]))} of the waiting)</span>'


def functions(found: list[tuple[str, float | None]]) -> str:
    if not found:
        return '<span class="quiet">no other core or device</span>'
    return ", ".join(code(f) + (f' <span class="quiet">{esc(percent(s))}</span>' if s is not None else "") for f, s in found[:3])


def _card(p: Point, rank: int, line: dict[str, Any], most: float) -> str:
    parts = split(line)
    bar = "".join(f'<i style="width:{100 * share / most:.3f}%;background:var(--{cause})" title="{esc(style.LABELS[cause])}: '
                  f'{esc(percent(share, 1))}"></i>' for cause, share in parts if share > 0) if most else ""
    what = f'<span class="what">{code(line["what"])}</span>' if line["what"] else ""
    kind = style.LABELS.get(line["class"], line["class"])
    many = f'<span class="chip">{number(line["waited"])} lines</span>' if line["waited"] > 1 else ""
    story = episodes.page_of(p, line["name"], line["kind"])
    step = f'<a class="chip" href="{esc(story)}">step through an episode</a>' if story else ""
    facts = [f"{number(line['transfers'])} transaction{'s' if line['transfers'] != 1 else ''}"]
    if line["cores"]:
        facts.append(f"by {line['cores']} core{'s' if line['cores'] != 1 else ''}")
    if line["stall_us"] is not None:
        facts.append(f"{number(line['stall_us'], 1)}{NARROW_SPACE}µs of stall")
    if line["spin_us"]:
        facts.append(f"{number(line['spin_us'], 1)}{NARROW_SPACE}µs of spinning")
    if line["lines"] == 1 and line["address"]:
        facts.append(f"address {esc(line['address'])}")
    return (f'<li><div class="rank">{rank}</div><div class="line"><div class="top"><span class="name">{code(line["name"])}</span>'
            f'{what}<span class="chip c-{esc(line["class"])}">{esc(kind)}</span>{many}{step}</div>'
            f'<div class="measure"><div class="bar">{bar}</div><b>{esc(percent(line["wait_share"], 1))}</b></div>'
            f'<div class="who"><span class="quiet">last written by</span> {_writers(line)} '
            f'<span class="quiet">· waited for by</span> {functions(line["waiters"])}</div>{_places(line)}'
            f'{maps.first_advice(p, line["name"], line["kind"], line["wait_share"])}'
            f'{_details(p, line, ", ".join(facts))}</div></li>')


def _places(line: dict[str, Any]) -> str:
    """The source line that writes most, and that waits most, or called what waits; two if the second one matters as well. Code without
    debug information by function; nothing if all that matters is such code, whose functions are listed above."""
    roles = (("written at", "written_at"), ("waited for at", "waited_at"), ("called at", CALLED))
    def text(one: Mapping[str, Any]) -> str:
        return said(one["function"], one["source"], one["inlined"]) if one["source"] else str(one["function"])

    listed = [(verb, merged(line[role], text)) for verb, role in roles if role != "written_at" or has_writers(line)]
    chosen = [(verb, [one for one in places[:2] if one is places[0] or one["share"] >= MATTERS]) for verb, places in listed
              if places and places[0]["share"] >= WORTH_SHOWING]
    parts = [f'<span class="quiet">{verb}</span> '
            + " and ".join(at(one["function"], one["source"], one["inlined"]) or code(one["function"]) for one in places)
            for verb, places in chosen if any(one["source"] for one in places)]
    return f'<div class="who">{" · ".join(parts)}</div>' if parts else ""


def at(function: str, source: str | None, inlined: list[str]) -> str:
    """A source line, with the functions that were inlined there; all of them in the tooltip."""
    if not source:
        return ""
    place, within = shown(function, source, inlined)
    rest = "".join(f" in {code(name)}{f' called at {esc(call)}' if call else ''}" for name, call in within)
    title = f' title="{esc(", in ".join([source, *inlined]))}"' if place != source or len(within) < len(inlined) else ""
    return f'<span class="at"{title}>{code(place)}<span class="quiet">{rest}</span></span>'


def _details(p: Point, line: dict[str, Any], facts: str) -> str:
    pairs = [pair for pair in line["pairs"] if pair[2]]
    which = line["name"], line["kind"], line["wait_share"]
    mapped, sent = maps.maps(p, *which) + flames.of_name(p, *which), _transfers(p, line)
    if not pairs:
        inside = mapped + sent
        return f'<details><summary class="facts">{facts}</summary>{inside}</details>' if inside else f'<div class="facts">{facts}</div>'
    whole = (line["stall_us"] + line["spin_us"]) * FS_PER_US  # of all pairs: not all are listed
    if line["sources"]:
        return f'<details><summary class="facts">{facts}</summary>{mapped}{_sources(line, whole)}{sent}</details>'
    rows = [(code(a) if a != NO_WRITER else f'<span class="quiet">{a}</span>', code(b), number(waited / FS_PER_US, 1),
             esc(percent(waited / whole))) for a, b, waited in pairs[:12]]
    head = ("last writer", "waiter", "waiting (µs)", "share of waiting")
    inner = table(f"Writers and waiters of {line['name']}", head, rows, (2, 3))
    return f'<details><summary class="facts">{facts}</summary>{mapped}{inner}{sent}</details>'


def _sources(line: dict[str, Any], whole: float) -> str:
    """Pairs of source lines, with the byte that the waiter accessed."""
    def place(one: dict[str, Any], role: str) -> str:
        name = one[role]
        who = code(name) if name != NO_WRITER else f'<span class="quiet">{name}</span>'
        return f'{who} {at(name, one[f"{role}_source"], calls(one[f"{role}_inlined"]))}'

    rows = [(place(one, "writer"), place(one, "waiter"), code(one["accessed"] or ""), number(one["waiting"] / FS_PER_US, 1),
             esc(percent(one["waiting"] / whole))) for one in line["sources"]]
    return table(f"Writers and waiters of {line['name']}", ("last writer", "waiter", "accessed", "waiting (µs)", "share"),
                 rows, (3, 4))


def _transfers(p: Point, line: dict[str, Any]) -> str:
    """Counts of transfers by sender and receiving chip."""
    if line["stall_us"] is None:
        return ""
    to, senders = transfers.matrix(transfers.of_name(p, line["name"], line["kind"]))
    if not senders:
        return _quiet("No transfer to a core in the windows.")
    rows = ((esc(source), *(number(count) if count else "" for count in row)) for source, row in senders)
    return _quiet("Transfers by sender and receiving chip.") + table(
        f"Transfers of {line['name']}, by chips", ("from", *(f"to chip {chip}" for chip in to)), rows, range(1, len(to) + 1))


def _quiet(text: str) -> str:
    return f'<p class="unit">{text}</p>'


def section(p: Point) -> str:
    """Headline and list of one point."""
    lines = hot_names(p)[:MOST]
    most = max((one["wait_share"] for one in lines), default=0.0)
    cards = [_card(p, n, one, most) for n, one in enumerate(lines, 1)]
    listed = f'<ol class="lines">{"".join(cards[:SHOWN])}</ol>' if cards else '<p class="none">No lines were recorded for this point.</p>'
    if len(cards) > SHOWN:
        listed += (f'<details class="more"><summary>{len(cards) - SHOWN} more</summary><ol class="lines" start="{SHOWN + 1}">'
                   f'{"".join(cards[SHOWN:])}</ol></details>')
    keys = "".join(f'<span><i style="background:var(--{c})"></i>{style.LABELS[c]}</span>'
                   for c in seen([part for one in lines for part in split(one)], most))
    said = p.record.get("bottleneck")
    repeated = bool(lines) and (lines[0]["shared"] or lines[0]["name"]) in str(said)
    summary = f'<p class="bottleneck">Bottleneck: {esc(said)}.</p>' if said and not repeated else ""
    return (f'<p class="headline">{headline(p)}</p>{summary}<figure class="own"><h3>The cache lines that cost most</h3>'
            '<p class="unit">Percentage of all waiting: memory stall and spinning. The colour shows spinning, or why '
            'the cache line was not in the cache (<a href="#terms">terms</a>). A cache line is 64 bytes; cache lines with the same name '
            'are one entry, with the number of those that cores waited for. Percentages of writers are shares of the transactions '
            'that follow a write by another core or a device; those of waiters are shares of the waiting for the entry. Open an entry '
            'to see its bytes and its pairs of writer and waiter.'
            f'{_reach(p, lines)}</p><div class="legend">{keys}</div>{listed}{_single(p)}</figure>')


def _reach(p: Point, shown: list[dict[str, Any]]) -> str:
    """How many lines and names cores waited for, and the shares of waiting of the names listed and of the others."""
    lines, names = waited_for(p)
    if not lines:
        return ""
    text = (f" Cores waited for {number(lines)} cache lines with {number(names)} name{'s' if names > 1 else ''}" if lines > 1 else
            " Cores waited for one cache line")
    if names <= len(shown):
        return f"{text}."
    listed = sum(one["wait_share"] for one in shown)
    others = esc(percent(max(0.0, 1 - listed)))
    return f"{text}; the {len(shown)} listed here take {esc(percent(listed))} of the waiting, all others {others}."


def _single(p: Point) -> str:
    """The hottest lines one by one, where names take several together."""
    lines = hot_lines(p)
    if len({one["entry"] for one in lines}) == len(lines):
        return ""
    rows = [(str(n), code(one["name"]), code(one["what"]) if one["what"] else "", code(one["address"]), esc(percent(one["wait_share"], 2)),
             number(one["transfers"]), esc(style.LABELS.get(one["class"], one["class"])), code(one["writer"]) if one["writer"] else "",
             code(one["waiter"]) if one["waiter"] else "") for n, one in enumerate(lines[:MOST], 1)]
    inner = table("The hottest single lines", ("", "name", "object", "address", "of all waiting", "transactions", "class",
                                               "last written by", "waited for by"), rows, (4, 5))
    return f'<details class="more"><summary>The {len(rows)} hottest single lines</summary>{inner}</details>'
