# SPDX-License-Identifier: BSD-3-Clause
"""Tables of waiting by lock, by waiting function and by kind of memory."""

from collections.abc import Iterable, Sequence

from analysis.page.lines import functions as function_list
from analysis.page.markup import code, esc, number, percent, table
from analysis.run_directory import Point
from analysis.tables.base import share
from analysis.tables.functions import waiting_functions
from analysis.tables.kinds import point_kinds
from analysis.tables.locks import point_locks
from analysis.tables.user_locks import point_user_locks

MEASURES = ("stall (µs)", "spinning (µs)", "of all waiting")


def _block(title: str, note: str, head: Iterable[str], rows: Sequence[tuple[str, ...]], numeric: Iterable[int]) -> str:
    """Empty without rows."""
    if not rows:
        return ""
    return f'<section class="block"><h3>{title}</h3><p class="unit">{note}</p>{table(title, head, rows, numeric)}</section>'


def kinds(p: Point) -> str:
    return _block("Waiting by kind of memory",
                  "Exposed stall and spinning by the line's kind of memory, over all lines and cores. The number of "
                  "lines includes only lines with a transaction or spinning.",
                  ("kind", "lines", *MEASURES), [
                      (esc(one["kind"]), number(one["lines"]), number(one["stall_us"], 1), number(one["spin_us"], 1),
                       esc(percent(one["wait_share"], 1)))
                      for one in point_kinds(p)], (1, 2, 3, 4))


def locks(p: Point) -> str:
    return _block("Waiting by lock", "Exposed stall and spinning by lock, over all objects of a kind and all cores. Waiters of "
                  "queued locks read nodes of their own, which do not identify the lock. These nodes have rows of their own. The number of "
                  "lines includes only lines with a transaction or spinning.",
                  ("lock", "of all waiting", "waiting functions", "stall (µs)", "spinning (µs)", "lines", "form"), [
                      (code(one["lock"]), esc(percent(one["wait_share"], 1)), function_list(one["waiters"]), number(one["stall_us"], 1),
                       number(one["spin_us"], 1), number(one["lines"]), esc(one["form"]))
                      for one in point_locks(p) if one["wait_share"] >= 0.0005][:12], (1, 3, 4, 5))


def _ns(value: float | None) -> str:
    return "" if value is None else number(value)


def user_locks(p: Point) -> str:
    return _block("Locks of programs", "Words that user code changes with locked operations, and whose name, type or functions are those "
                  "of a lock. Waiters are an average over the windows; a wait lasts from the first attempt to the acquisition. Hand-offs "
                  "go to another core; their distance is in links. A release that hits in its core's cache is not recorded: hold times "
                  "are medians of those that are known. Waits are left empty where they are not known.",
                  ("lock", "of all waiting", "waiters", "acquisitions", "wait, mean (ns)", "longest (ns)", "held (ns)", "hand-offs",
                   "distance", "futex waits", "futex stall (µs)"), [
                      (code(one["name"]), esc(percent(one["wait_share"], 1)), "" if one["waiters"] is None else number(one["waiters"], 2),
                       number(one["acquisitions"]), _ns(one["waited_ns"]), _ns(one["waited_longest_ns"]), _ns(one["held_ns"]),
                       number(one["handoffs"]),
                       "" if one["hops"] is None else number(one["hops"], 1), number(one["futex_waits"]), number(one["futex_us"], 1))
                      for one in point_user_locks(p) if one["wait_share"] + share(one["futex_stall"], p) >= 0.0005][:12], range(1, 11))


def functions(p: Point) -> str:
    shown = waiting_functions(p)[:15]
    overlap = any(one["misses_in_flight"] for one in shown)
    note = "Exposed stall, and time in spin loops, by the function that waited, summed over all cores."
    if overlap:
        note += (" Misses in flight: the mean number of loads beyond the first-level cache that a core has under way while it has any. "
                 "Each counts for the function that requested the line.")
    head = ("function", "in", *MEASURES, "transactions", *(["misses in flight"] if overlap else []))
    return _block("Functions that wait most", note, head, [
        (code(one["function"]), "kernel" if one["is_kernel"] else "user", number(one["stall_us"], 1), number(one["spin_us"], 1),
         esc(percent(one["wait_share"], 1)), number(one["transactions"]),
         *(["" if one["misses_in_flight"] is None else number(one["misses_in_flight"], 2)] if overlap else []))
        for one in shown], range(2, 7 if overlap else 6))
