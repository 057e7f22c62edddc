# SPDX-License-Identifier: BSD-3-Clause
"""The map of a line on the page: a cell for each of its 64 bytes, its fields, and the advice."""

import re

from analysis.maps import LineMap, maps_of
from analysis.maps.advice import Advice, advice
from analysis.maps.line_map import Area, Code
from analysis.maps.text import cores, letter, unplaced
from analysis.page.markup import code, esc, number, percent, table
from analysis.run_directory import Point

WORTH = 0.02  # share of all waiting from which a name has maps
STRONGEST = 85  # per cent of colour in the cell with the most waiting


def first_advice(p: Point, name: str, kind: str, wait_share: float) -> str:
    """What to do about the hottest line of a name, in one sentence or two."""
    found = [one for line in _maps(p, name, kind, wait_share)[:1] for one in advice(line)]
    return f'<div class="advice">{_said(found[0])}</div>' if found else ""


def maps(p: Point, name: str, kind: str, wait_share: float) -> str:
    """The maps that say more than the name does; the first advice of the first one stands above (`first_advice`)."""
    return "".join(_map(one, name, advice(one)[n == 0:]) for n, one in enumerate(_maps(p, name, kind, wait_share))
                   if len(one.used) > 1 or one.used[0].written)


def _maps(p: Point, name: str, kind: str, wait_share: float) -> list[LineMap]:
    return [one for one in maps_of(p, name, kind) if one.used] if wait_share >= WORTH else []


def _map(one: LineMap, name: str, said: list[Advice]) -> str:
    address = f"{one.line['line']:#x}"
    share = percent(one.waiting / one.whole if one.whole else 0.0, 1)
    whose = f" {code(one.line['object'])}," if one.line["object"] else ""
    head = (f'<p class="unit">The line’s 64 bytes:{whose} address {esc(address)}, {esc(share)} of all waiting. A stronger colour '
            f"means more waiting for accesses that begin at the byte. A bar marks written bytes; letters refer to the fields below. "
            f"{_cores_known(one)}</p>")
    others = "".join(f'<div class="advice">{_said(found)}</div>' for found in said)
    notes = "".join(f'<p class="unit">{esc(note)}</p>' for note in unplaced(one))
    return f'{head}{_grid(one)}{_fields(one, f"Fields of {name} at {address}")}{notes}{others}'


def _said(found: Advice) -> str:
    """The names of the fields as code."""
    names = "|".join(re.escape(name) for name in sorted((*found.fields, *found.others), key=len, reverse=True))
    parts = re.split(rf"(?<!\w)({names})(?!\w)", found.text) if names else [found.text]
    return "<b>Advice:</b> " + "".join(code(part) if n % 2 else esc(part) for n, part in enumerate(parts))


def _grid(one: LineMap) -> str:
    most = max((byte.waiting for byte in one.bytes), default=0)
    names = {area.first: letter(n) for n, area in enumerate(one.used)}
    area_of = {at: area for area in one.areas for at in range(area.first, area.end)}
    cells = []
    for byte in one.bytes:
        area = area_of[byte.at]
        strength = round(STRONGEST * (byte.waiting / most) ** 0.5) if most else 0
        kinds = " ".join(["b", *(["w"] if byte.written else []), *(["f"] if byte.at == area.first else []), *([] if area.used else ["u"])])
        title = (f"byte {byte.at}, {area.name}: {percent(one.share(byte.waiting), 1)} of the waiting, {number(byte.transactions)} "
                 f"transactions{', written' if byte.written else ''}")
        cells.append(f'<i class="{kinds}" style="--s:{strength}%" title="{esc(title)}">{names.get(byte.at, "")}</i>')
    return f'<div class="bytes" role="img" aria-label="Waiting by byte of the line">{"".join(cells)}</div>'


def _fields(one: LineMap, caption: str) -> str:
    rows = [(letter(n), f"{area.first}–{area.end - 1}", _name(area), esc(percent(one.share(area.waiting), 1)), number(area.transactions),
             _cores(area), _codes(area.waits), _codes(area.writes)) for n, area in enumerate(one.used)]
    return table(caption, ("", "bytes", "field", "waiting", "transactions", "cores", "waits at", "written at"), rows, (3, 4))


def _name(area: Area) -> str:
    return code(area.name) + (f' <span class="quiet">{esc(area.type)}</span>' if area.type else "")


def _cores(area: Area) -> str:
    roles = (("write", area.writers), ("read", area.readers))
    said = [f'<span class="quiet">{verb}</span> {cores(found).replace("-", "–")}' for verb, found in roles if found]
    return "<br>".join(said)


def _codes(found: list[Code]) -> str:
    return "<br>".join(code(one.shown[0] or one.function) for one in found[:3])


def _cores_known(one: LineMap) -> str:
    if not one.sample:
        return "No transaction of this line is recorded, so cores are not shown; <code>--detail full</code> records all."
    return "" if one.complete else f"Cores are those of {number(one.sample)} recorded transaction{'s' if one.sample != 1 else ''}."
