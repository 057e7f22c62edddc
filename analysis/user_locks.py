# SPDX-License-Identifier: BSD-3-Clause
"""Locks of user programs (`moscope.locks/1`), from a point's recorded transactions: who got each lock when, for how long, and from whom.

A lock is a word that user code changes by locked operations, and whose field, type or functions are named like a lock's. The accesses of
one core to it are divided into acquisitions: attempts, the kernel's reads of the word (FUTEX_WAIT compares it with the expected value
before the thread sleeps), and the release. An attempt has failed if it is within another core's hold whose release is recorded: a failed
attempt takes the line away, so the holder's release misses and is recorded. A release that hits is not recorded: a lock that no other
core wants stays in its core's cache. So hold times are known only where the release missed. If a core releases a lock and takes it again
within its cache, only the first release counts. Of a lock that several may hold, such as a rwlock, no attempt is known to have failed.

Kernel code for futexes belongs to the lock that its core accessed last.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from analysis.database import connect
from analysis.exports.base import recorded
from analysis.locks import lock_of
from analysis.run_directory import Point
from moscope.parquet import scan

SCHEMA = "moscope.locks/1"
NS, US = 10**6, 10**9
COLUMNS = ("line", "va", "core", "kind", "user", "issued", "latency", "exposed", "function", "inlined", "name", "name_kind", "walk",
           "buffer_wait")  # of transactions; those of earlier versions lack some
USER_TOP = 1 << 47
MUTEX_BYTES = 40  # glibc's largest lock but for the rwlock, where no type says the size
# Functions of libraries and of programs that take or release a lock.
LOCKING = re.compile(r"lock|mutex|futex|critical|sem_(wait|post|trywait)|(^|_)(acquire|release)", re.IGNORECASE)
RELEASING = re.compile(r"unlock|release|sem_post|critical_end|_wake|drop", re.IGNORECASE)
# Functions that a thread calls after a failed attempt.
WAITING = re.compile(r"lock_wait|wait_private|slow|contended|futex|_full", re.IGNORECASE)
# Locks that several may hold, and attempts that do not wait.
SHARED = re.compile(r"rwlock|rdlock|wrlock|shared_mutex|semaphore|sem_(wait|post|t)", re.IGNORECASE)
TRYING = re.compile(r"try", re.IGNORECASE)
TYPE = re.compile(r"mutex|rwlock|spinlock|semaphore|sem_t|lock", re.IGNORECASE)

ROWS = f"""
    WITH log AS (SELECT *, (va % 64)::INTEGER AS byte FROM $file WHERE NOT buffer_wait AND va BETWEEN 1 AND {USER_TOP}),
         changed AS (SELECT DISTINCT line FROM log WHERE "user" AND kind = 'rmw')
    SELECT line, byte, va, core, kind, "user", issued, issued + latency AS ended, exposed, function, inlined, name, name_kind
    FROM log JOIN changed USING (line) WHERE NOT walk ORDER BY ended, core"""
FUTEX = """
    SELECT core, issued, exposed FROM $file
    WHERE NOT "user" AND NOT buffer_wait AND (va = 0 OR va > 140737488355328) AND (function LIKE '%futex%' OR name LIKE 'futex_queues%')
    ORDER BY issued"""


@dataclass
class Acquisition:
    """By one core; ticks. At first each attempt is one (`_acquired` joins them). `released` None: the release hit, or the core holds it
    yet."""

    core: int
    asked: int
    got: int
    again: bool = False  # its code waits for a lock that the core's attempt before did not get
    released: int | None = None
    given: bool = False  # the release changed the lock's word: what follows in releasing code is not part of it
    last: int = 0  # end of the last access in releasing code
    tries: bool = False  # does not wait for the lock if it fails
    attempts: int = 1
    futex_waits: int = 0


@dataclass
class Lock:
    name: str
    kind: str
    type: str
    line: int
    first: int
    last: int
    va: int = 0
    stall: int = 0
    spin: int = 0
    futex_stall: int = 0
    cores: set[int] = field(default_factory=set)
    locking: bool = False  # a function or a name says that it is a lock
    shared: bool = False  # several may hold it
    attempts: list[Acquisition] = field(default_factory=list)
    # Of cores that took the lock again within their caches: when each had released it, when it did so next, and who.
    retaken: list[tuple[int, int, int]] = field(default_factory=list)
    _open: dict[int, Acquisition] = field(default_factory=dict)

    def accessed(self, row: dict[str, Any]) -> None:
        core, code = row["core"], f"{row['function']};{row['inlined'] or ''}".split(":", 1)[-1]
        now = self._open.get(core)
        self.stall += row["exposed"]
        if not row["user"]:
            if now and row["kind"] == "load" and row["va"] == self.va:
                now.futex_waits += 1
            return
        self.cores.add(core)
        releases = bool(RELEASING.search(code)) or (row["kind"] == "store" and not LOCKING.search(code) and row["byte"] == self.first)
        if releases:
            given = row["kind"] != "load" and row["va"] == self.va
            if not now:
                return
            if not now.given:
                now.released, now.given = row["ended"], given
            elif given:
                self.retaken.append((now.last, row["ended"], core))
            now.last = row["ended"]
        elif row["kind"] == "rmw":
            self.va = row["va"]
            library = bool(LOCKING.search(code))
            self.locking = self.locking or library
            self.shared = self.shared or bool(SHARED.search(code))
            self._open[core] = Acquisition(core, row["issued"], row["ended"], bool(WAITING.search(code)) or not library,
                                           tries=bool(TRYING.search(code)))
            self.attempts.append(self._open[core])

    def summary(self, p: Point) -> dict[str, Any]:
        """Times in fs. Hand-offs are between successive holders on different cores; `hops` is their mean distance in links."""
        ordered = _acquired(self.attempts, self.retaken, self.shared)
        handed = [(a, b) for a, b in zip(ordered, ordered[1:], strict=False) if a.core != b.core]
        held = [one.released - one.got for one in ordered if one.released is not None]
        waits = [one.got - one.asked for one in ordered]
        hops = [hops for a, b in handed if (hops := _hops(p, a.core, b.core)) is not None]
        return {"name": self.name, "kind": self.kind, "type": self.type, "address": self.line + self.first, "virtual_address": self.va,
                "stall": self.stall, "spin": self.spin, "wait_share": (self.stall + self.spin) / p.waiting_fs if p.waiting_fs else 0.0,
                "cores": len(self.cores), "acquisitions": len(ordered), "repeated": sum(one.attempts > 1 for one in ordered),
                "futex_waits": sum(one.futex_waits for one in ordered), "futex_stall": self.futex_stall,
                "held": _middle(held), "held_known": len(held), "waited": sum(waits) // len(waits) if waits else None,
                "waited_longest": max(waits, default=None),
                "waiters": sum(waits) / p.window_fs if p.window_fs else 0.0,
                "handoffs": len(handed), "hops": sum(hops) / len(hops) if hops else None}


def _acquired(attempts: list[Acquisition], retaken: list[tuple[int, int, int]], shared: bool) -> list[Acquisition]:
    """The acquisitions that these attempts, in order of `got`, make up, in that order. `shared`: another core's hold makes none fail."""
    holds = [] if shared else sorted([*retaken, *((one.got, one.released, one.core) for one in attempts if one.released is not None)])
    begins = [got for got, _, _ in holds]

    def failed(one: Acquisition) -> bool:
        at = bisect_left(begins, one.got) - 1
        return one.released is None and at >= 0 and one.got < holds[at][1] and holds[at][2] != one.core

    found: dict[int, Acquisition] = {}  # by the number of the last attempt
    last: dict[int, tuple[int, Acquisition]] = {}  # by core
    for number, one in enumerate(attempts):
        at, before = last.get(one.core, (-1, one))
        if at >= 0 and (at not in found and not before.tries or (one.again and before.released is None)):
            found.pop(at, None)
            one = replace(one, asked=before.asked, attempts=before.attempts + 1, futex_waits=before.futex_waits + one.futex_waits)
        last[one.core] = number, one
        if not failed(one):
            found[number] = one
    return list(found.values())


def document(p: Point) -> dict[str, Any]:
    return {"schema": SCHEMA, "ok": True, "point": p.name, "window": p.window_fs, "locks": locks(p)}


def _hops(p: Point, a: int, b: int) -> int | None:
    """Links between the chips of two cores; None: the run's machine is not known."""
    table, per_chip = p.config.get("hops") or [], p.cores_per_chip
    if per_chip is None or max(a, b) // per_chip >= len(table):
        return None
    return int(table[a // per_chip][b // per_chip])


def _middle(values: list[int]) -> int | None:
    return int(median(values)) if values else None


def known(p: Point) -> bool:
    """Whether the point has recorded transactions with all that this needs; those of earlier versions lack columns."""
    return p.database.file(p.name, "transactions", *COLUMNS) is not None


def locks(p: Point) -> list[dict[str, Any]]:
    """Of a point with recorded transactions; those with the most waiting first, with the kernel's futex code."""
    file = scan(recorded(p, *COLUMNS))
    database = connect()
    found = Words(p)
    last: list[tuple[int, int, Lock]] = []
    for row in _rows(database, ROWS.replace("$file", file)):
        lock = found.of(row)
        if lock:
            lock.accessed(row)
            last.append((row["issued"], row["core"], lock))
    kept = [lock for lock in found.all if lock.attempts and lock.locking]
    _futex(last, _rows(database, FUTEX.replace("$file", file)))
    for lock in kept:
        lock.spin = _spin(p, lock)
    rows = [lock.summary(p) for lock in kept]
    return sorted(rows, key=lambda one: (-(one["stall"] + one["spin"] + one["futex_stall"]), one["address"]))


class Words:
    """The words of user memory that may be locks, by line: fields with a type, elsewhere the bytes from a locked operation on."""

    def __init__(self, p: Point) -> None:
        self.all: list[Lock] = []
        self._by_line: dict[int, list[Lock]] = {}
        for row in p.database.rows("""SELECT line, "first", bytes, name, kind, type FROM fields WHERE point = ?
                                      ORDER BY line, use, "first" """, p.name):
            if row["type"]:
                self._add(row["name"], row["kind"], row["type"], row["line"], row["first"], row["first"] + row["bytes"])

    def _add(self, name: str, kind: str, type_: str, line: int, first: int, last: int) -> Lock:
        named = bool(TYPE.search(type_)) or lock_of(name, kind) is not None
        lock = Lock(name, kind, type_, line, first, last, locking=named, shared=bool(SHARED.search(type_)))
        self.all.append(lock)
        self._by_line.setdefault(line, []).append(lock)
        return lock

    def of(self, row: dict[str, Any]) -> Lock | None:
        """The word that an access belongs to; a locked operation outside of known fields begins one."""
        found = next((lock for lock in self._by_line.get(row["line"], ()) if lock.first <= row["byte"] < lock.last), None)
        if found is None and row["user"] and row["kind"] == "rmw":
            above = [lock.first for lock in self._by_line.get(row["line"], ()) if lock.first > row["byte"]]
            found = self._add(row["name"], row["name_kind"], "", row["line"], row["byte"], min([row["byte"] + MUTEX_BYTES, 64, *above]))
        return found


def _rows(database: Any, query: str) -> Iterator[dict[str, Any]]:
    result = database.execute(query)
    names = [column[0] for column in result.description or ()]
    while part := result.fetchmany(10_000):
        yield from (dict(zip(names, row, strict=True)) for row in part)


def _futex(last: list[tuple[int, int, Lock]], rows: Iterable[dict[str, Any]]) -> None:
    """Charges the kernel's futex code to the lock that its core accessed last."""
    last.sort(key=lambda one: one[:2])
    at, now = 0, dict[int, Lock]()
    for row in rows:
        while at < len(last) and last[at][0] <= row["issued"]:
            now[last[at][1]] = last[at][2]
            at += 1
        if lock := now.get(row["core"]):
            lock.futex_stall += row["exposed"]


def _spin(p: Point, lock: Lock) -> int:
    (row,) = p.database.rows("SELECT coalesce(sum(spin), 0)::BIGINT AS spin FROM pairs WHERE point = ? AND line = ? AND \"offset\" >= ? "
                             "AND \"offset\" < ?", p.name, lock.line, lock.first, lock.last)
    return int(row["spin"])


def text(made: dict[str, Any]) -> Iterator[str]:
    """The object as lines for people."""
    yield f"{made['point']}: {len(made['locks'])} locks of user programs"
    for one in made["locks"][:20]:
        yield f"{one['wait_share']:7.1%}  {one['name']}  {one['type'] or one['kind']}, at {one['virtual_address']:#x}"
        held = "" if one["held"] is None else f", held {one['held'] / NS:,.0f} ns (median of {one['held_known']:,})"
        yield (f"         {one['acquisitions']:,} acquisitions by {one['cores']} cores, {one['waiters']:.2f} waiting on average{held}; "
               f"a wait takes {(one['waited'] or 0) / NS:,.0f} ns, the longest {(one['waited_longest'] or 0) / NS:,.0f} ns")
        distance = "" if one["hops"] is None else f" over {one['hops']:.1f} links on average"
        futex = f"; {one['futex_waits']:,} futex waits, {one['futex_stall'] / US:,.1f} us stall in futex code" if one["futex_stall"] else ""
        yield f"         {one['handoffs']:,} hand-offs to another core{distance}{futex}"
