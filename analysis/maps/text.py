# SPDX-License-Identifier: BSD-3-Clause
"""Maps of the lines of one name on the terminal: the 64 bytes, the fields with their code and cores, and the advice."""

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from analysis.chains import by_functions, chains, stores_note
from analysis.described import FS_PER_US
from analysis.locks import SITE
from analysis.maps.advice import advice, unplaced_writers
from analysis.maps.line_map import Code, LineMap, maps_of
from analysis.run_directory import Point
from moscope import terminal, wording
from moscope.naming.columns import A_DEVICE
from moscope.wording import number

CHAINS = 5
PART = 16  # bytes between two spaces


def show(p: Point, name: str, kind: str) -> None:
    console = terminal.console(markup=True)
    for one in maps_of(p, name, kind):
        row = one.line
        whose = f", {row['object']}" if row["object"] else ""
        mostly = row["class"].replace("_", " ")
        console.print(f"{row['name']}{whose}: line {row['line']:#x}, {percent(one.waiting / one.whole if one.whole else 0)} of all waiting "
                      f"({one.waiting / FS_PER_US:,.1f} us), {number(row['transfers'], 'transaction')}, mostly {mostly}",
                      soft_wrap=True, markup=False)
        for title, marks in (("waiting", waits(one)), ("written", writes(one)), ("field", letters(one))):
            console.print(f"  {title:8}" + " ".join(marks[at:at + PART] for at in range(0, len(marks), PART)), soft_wrap=True, markup=False)
        terminal.print_table(console, table(one))
        console.print(source_of_cores(one), soft_wrap=True)
        for note in unplaced(one):
            console.print(f"  {note}", soft_wrap=True, markup=False)
        for found in advice(one):
            console.print(f"  -> {found.text}", soft_wrap=True, markup=False)
    show_chains(console, p, name, kind)


def percent(share: float) -> str:
    """With one digit, as on the page."""
    return "<0.1 %" if 0 < share < 0.0005 else wording.percent(share, 1)


def show_chains(console: Console, p: Point, name: str, kind: str) -> None:
    """The call chains of the cores that waited, innermost function first."""
    found = chains(p, name, kind)
    whole = sum(one.waiting for one in found)
    if found:
        console.print(f"Call chains, from {sum(one.samples for one in found):,} samples of waiting cores:", soft_wrap=True)
    for one in by_functions(found)[:CHAINS]:
        functions = " <- ".join(reversed(one.frames)) or "unknown"
        console.print(f"  {wording.percent(one.waiting / whole):>5}  {functions}", soft_wrap=True, markup=False)
    if note := stores_note(p, name, kind):
        console.print(f"  {note}", soft_wrap=True, markup=False)


def waits(one: LineMap) -> str:
    """A digit for each byte: tenths of the line's waiting, rounded; `+` for less, `.` for none."""
    return "".join("." if not b.waiting else "+" if (tenth := round(10 * one.share(b.waiting))) == 0 else str(min(tenth, 9))
                   for b in one.bytes)


def writes(one: LineMap) -> str:
    return "".join("w" if byte.written else "." for byte in one.bytes)


def letters(one: LineMap) -> str:
    """A letter for each byte: its field in the table, `.` for a field without accesses."""
    marks = ["."] * len(one.bytes)
    for n, area in enumerate(one.used):
        marks[area.first:area.end] = [letter(n)] * area.bytes
    return "".join(marks)


def letter(n: int) -> str:
    return chr(ord("a") + n) if n < 26 else chr(ord("A") + n - 26) if n < 52 else "?"


def table(one: LineMap) -> Table:
    """A row for each field. Of fields of the allocation that the line is named after, only the path: `[2].packets`."""
    found = SITE.match(one.line["name"]) if one.line["kind"] == "heap" else None
    site = found[0] if found else ""
    made = Table(show_lines=False)
    for title in ("", "bytes", "field"):
        made.add_column(title)
    for title in ("waiting", "transactions"):
        made.add_column(title, justify="right")
    for title in ("cores: read", "write", "waits at", "written at"):
        made.add_column(title)
    for n, area in enumerate(one.used):
        typed = f" ({area.type})" if area.type else ""
        name = area.name.removeprefix(site) if area.name.startswith(f"{site}.") or area.name.startswith(f"{site}[") else area.name
        made.add_row(letter(n), f"{area.first}-{area.end - 1}", escaped(name + typed), percent(one.share(area.waiting)),
                     f"{area.transactions:,}", cores(area.readers), cores(area.writers), escaped(code(area.waits)),
                     escaped(code(area.writes)))
    return made


def unplaced(one: LineMap) -> list[str]:
    """A sentence for each writer of the line (a function or a device) whose bytes are not known."""
    said = []
    for writer in unplaced_writers(one):
        where = f" ({writer.shown[0]})" if writer.source else ""
        why = "" if writer.function == A_DEVICE else ": its writes hit in their core's cache, or preceded the windows"
        said.append(f"{writer.function}{where} wrote unknown bytes of this line{why}. It is the last writer for "
                    f"{wording.percent(writer.count / one.after_writes)} of the transactions that follow a write.")
    return said


def escaped(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def code(found: list[Code]) -> str:
    """The two first: source line with the function inlined there, or function."""
    return "; ".join(" in ".join([place, *(name for name, _ in within[:1])]) if place else one.function
                     for one in found[:2] for place, within in (one.shown,))


def cores(found: Iterable[int]) -> str:
    """`0-3, 7`; 254 is a device."""
    parts: list[list[int]] = []
    for core in sorted(found):
        if parts and parts[-1][-1] == core - 1:
            parts[-1].append(core)
        else:
            parts.append([core])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def source_of_cores(one: LineMap) -> str:
    """What the columns of cores rest on."""
    if not one.sample:
        return "  The cores of each byte are not known: no transaction of this line is recorded (--detail full records all)."
    if one.complete:
        return "  Cores are those of all transactions in the windows."
    return f"  Cores are those of {number(one.sample, 'recorded transaction')} (--detail full records all)."
