# SPDX-License-Identifier: BSD-3-Clause
"""The sentences of a comparison, for text and page, without markup."""

from analysis.comparison.pairs import FIGURES
from analysis.tables.base import Row
from moscope.wording import significant

CAUSES = {"user": "busy, user", "kernel": "busy, kernel", "core": "core stall", "spin": "spinning", "memory": "memory stall",
          "without_class": "memory stall without a class"}
ALIKE = "within the error"
PAIR_ALIKE = "the pair is alike"
MOST_OTHERS = 5  # names in a sentence


def cause(name: str) -> str:
    return CAUSES.get(name, name.replace("_", " "))


def amount(value: float) -> str:
    return significant(value, 4)


def signed(value: float) -> str:
    return ("+" if value > 0 else "") + amount(value)


def with_error(value: float, half_width: float | None, unit: str = "") -> str:
    """`+38.1 % ± 2.4 %`: two significant digits of the half-width, and the value to the same place. Without a half-width, or if it is
    zero, two significant digits of the value, and at least one decimal."""
    decimals = _decimals(half_width) if half_width else max(1, _decimals(value))
    shown = [_fixed(value, decimals, "+"), *([] if half_width is None else [_fixed(half_width, decimals, "")])]
    return " ± ".join(f"{number}{unit}" for number in shown)


def _decimals(value: float) -> int:
    """Up to the second significant digit; negative if that is left of the unit's digit."""
    return 1 - int(f"{value:.1e}".partition("e")[2])


def _fixed(value: float, decimals: int, sign: str) -> str:
    rounded = round(value, decimals)
    return f"{rounded:{sign},.{max(0, decimals)}f}" if rounded else "0"


def mark(within: bool | None) -> str:
    return {True: ALIKE, False: "", None: "error unknown"}[within]


def remark(pair: Row, row: Row) -> str:
    """Of a row of a list. Without a remark, a difference is significant; rows have no errors of their own that could show this of a
    pair that is alike."""
    return mark(row["within_error"]) or (PAIR_ALIKE if pair["alike"] else "")


def change(row: Row) -> str:
    """`+38.1 % ± 2.4 %`, or a difference of shares."""
    if row["relative"] is None:
        return with_error(row["difference"], row["half_width"])
    return with_error(100 * row["relative"], None if row["half_width"] is None else 100 * row["relative_half_width"], " %")


def headline(pair: Row) -> str:
    """The answer: whether the two differ, by how much, and what accounts for most of it."""
    rate = pair["throughput"]
    if rate is None:
        text = "Neither side counts operations, so times are compared per simulated millisecond"
    else:
        text = f"B finishes {amount(rate['b'])} {pair['operation']} per second, A {amount(rate['a'])}: {change(rate)}"
    if pair["alike"]:
        return f"The two are alike. {text}, which is within the error of the difference (95 %)." if rate else f"The two are alike. {text}."
    if pair["alike"] is None:
        return f"{text}. Whether A and B differ is unknown, because a figure of one of them has no known error: measure more windows."
    if [row["key"] for row in pair["configuration"]] == ["seed"] and not any(pair["not_recorded"].values()):
        text += ". Only the seed differs, so this is the variation from boot to boot, which the error does not include"
    first = next((row for row in pair["lines"] if row["kind"] not in ("rest", "others")), None)
    if first is None:
        return f"{text}."
    whole = pair["whole"]["difference"]
    if abs(whole) < 1e-9 * pair["whole"]["a"]:  # rounding
        whole = 0.0
    share = f", {100 * first['difference'] / whole:.0f} % of the difference" if whole and 0 < first["difference"] / whole <= 1 else ""
    return (f"{text}. Core time differs by {signed(whole)} {pair['unit'].replace(' of core time', '')}; waiting for the line "
            f"{first['name']} accounts for {signed(first['difference'])} µs{share}.")


def notes(pair: Row) -> list[str]:
    """What a reader must know of the lists, of the configuration, and of the windows."""
    own = pair.get("programs")
    return [*([f"Names in {own['b']} (B) are compared with those in {own['a']} (A); the lists show the latter."] if own else ()),
            *_other_bytes(pair["lines"]),
            *(f"{side.upper()} does not record {_listed(keys)}: not compared." for side, keys in pair["not_recorded"].items() if keys),
            *pair["unsteady"]]


def _other_bytes(lines: list[Row]) -> list[str]:
    """Which names of lines are of other bytes in B."""
    found = [f"{row['name']} is {', '.join(row['names_in_b'])} in B" for row in lines if "names_in_b" in row]
    if len(found) > MOST_OTHERS:
        found[MOST_OTHERS:] = [f"and {len(found) - MOST_OTHERS:,} more"]
    if not found:
        return []
    listed = "; ".join(found)
    return [f"A line is named after the byte with the most waiting. Where this byte differs in B, the lists use A's name: {listed}."]


def _listed(keys: list[str]) -> str:
    """The many values of a machine as one."""
    groups = dict.fromkeys(f"{key.partition('.')[0]}.*" if key.startswith(("machine.", "versions.")) else key for key in keys)
    return ", ".join(groups)


def figures(pair: Row) -> list[tuple[str, str, str, str, str]]:
    """Name, A, B, difference, mark."""
    return [(name, amount(row["a"]), amount(row["b"]), change(row), mark(row["within_error"])) for name, row in pair["figures"].items()
            if name in FIGURES]


LISTS = (("time", "By kind of time", "kind of time"), ("lines", "By line", "line"), ("functions", "By waiting function", "function"))


def shown(pair: Row, name: str, most: int) -> list[Row]:
    """The first rows of a list, the others as one row, and the rows that close the sum."""
    rows = pair[name]
    named = [row for row in rows if row["kind"] not in ("others", "rest")]
    if len(named) <= most + 1:
        return list(rows)
    more = [row for row in rows if row["kind"] == "others"] + named[most:]
    total = {side: sum(row[side] for row in more) for side in ("a", "b", "difference")}
    width = pair["whole"]["half_width"]
    other = {"name": "all others", "kind": "others", "class": "", **total,
             "within_error": None if width is None else abs(total["difference"]) <= width}
    return [*named[:most], other, *(row for row in rows if row["kind"] == "rest")]
