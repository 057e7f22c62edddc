# SPDX-License-Identifier: BSD-3-Clause
"""Locks of user programs (`moscope.locks/1`), from a point's recorded transactions: who got each lock when, for how long, and from whom.

A lock is a word that user code changes by locked operations, and whose field, type or functions are named like a lock's. The accesses of
one core to it are divided into acquisitions: attempts, the kernel's reads of the word (FUTEX_WAIT compares it with the expected value
before the thread sleeps), and the release.

A failed attempt takes the line away from the holder, so the next access of the holder to the line misses and is recorded. An attempt
has therefore failed in three cases only. It is within another core's hold whose release is recorded. Or the holder accesses other data of
the line after it, and the core spins: it attempts again as soon as it has lost the line, or next reads the word that its code reads right
before an attempt (the release may then hit). Or the core's next attempt is in code that runs after a failed attempt only. Any other attempt
counts as an acquisition. The wait does not extend over other work: between two attempts of one acquisition, the core has no recorded access
of user code to another line, except in code that takes locks.

The code that takes a lock may wait after its locked operation: a reader of a rwlock adds itself and then reads a word that the writer
changes, and a ticket lock's core reads the ticket that is served. Such reads are part of the wait, up to the last one before the core
accesses anything else. A word that the code reads right before it attempts (`Lock.tested`) only says whether the lock is free.

A release that hits is not recorded: a lock that no other core wants stays in its core's cache. So hold times are known only where the
release missed and is that of the recorded acquisition (`Lock._held_until`). If a core releases a lock and takes it again within its cache,
only the first release counts. Of a lock that several may hold, such as a rwlock, only the code of the next attempt says that an attempt has
failed.

A function may take and release a lock itself, by macros or inlined code without a name: `RELEASES` has the instructions that release.

Kernel code for futexes belongs to the lock that its core accessed last.
"""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from statistics import median
from typing import Any

from analysis.database import connect
from analysis.described import FS_PER_NS, FS_PER_US
from analysis.exports.base import recorded
from analysis.locks import lock_of
from analysis.run_directory import Point
from moscope.guest.addresses import USER_TOP
from moscope.parquet import scan
from moscope.wording import percent

SCHEMA = "moscope.locks/1"
COLUMNS = ("line", "va", "core", "kind", "user", "issued", "latency", "exposed", "function", "inlined", "name", "name_kind", "walk",
           "buffer_wait", "pc")  # of transactions; those of earlier versions lack some
LAST_CORE = 255
MUTEX_BYTES = 40  # glibc's largest lock but for the rwlock, where no type says the size
# Functions of libraries and of programs that take or release a lock.
LOCKING = re.compile(r"lock|mutex|futex|critical|sem_(wait|post|trywait)|(^|_)(acquire|release)", re.IGNORECASE)
RELEASING = re.compile(r"unlock|release|sem_post|critical_end|_wake|drop", re.IGNORECASE)
# Stores by a locked operation (XCHG), which do not ask what the word was.
STORING = re.compile(r"atomic.*(::|_)(store|clear)\b", re.IGNORECASE)
# Functions that a thread calls after a failed attempt.
WAITING = re.compile(r"lock_wait|wait_private|slow|contended|futex", re.IGNORECASE)
# Condition variables, whose words are counts and queues.
CONDITION = re.compile(r"pthread_cond_|cond(ition_)?var", re.IGNORECASE)
TURN = 100 * FS_PER_NS  # a spinning core attempts again within this time after it has lost the line
OFTEN = 10  # of the reads that are tests, one in so many is the last one before an attempt
FEW = 3  # fewer failures than this may not happen by chance
# Locks that several may hold, and attempts that do not wait.
SHARED = re.compile(r"rwlock|rdlock|wrlock|shared_mutex|semaphore|sem_(wait|post|t)", re.IGNORECASE)
TRYING = re.compile(r"try", re.IGNORECASE)
TYPE = re.compile(r"mutex|rwlock|spinlock|semaphore|sem_t|lock", re.IGNORECASE)

USED = f"WHERE NOT buffer_wait AND NOT walk AND va BETWEEN 1 AND {USER_TOP}"
CODE = "function || ';' || coalesce(inlined, '')"
NAMED = "substr(code, strpos(code, ':') + 1)"  # without the program
# `elsewhere` is counted by CASE: a window with FILTER takes DuckDB a hundred times as long.
ROWS = f"""
    WITH log AS (SELECT *, (va % 64)::INTEGER AS byte, {CODE} AS code FROM $file {USED}),
         changed AS (SELECT DISTINCT line, true AS locked FROM log WHERE "user" AND kind = 'rmw'),
         counted AS (SELECT *, count(CASE WHEN "user" AND locked IS NULL
                            AND NOT regexp_matches({NAMED}, '{LOCKING.pattern}', 'i') THEN 1 END)
                            OVER (PARTITION BY core ORDER BY issued) AS elsewhere FROM log LEFT JOIN changed USING (line))
    SELECT line, byte, va, core, kind, "user", issued, issued + latency AS ended, exposed, function, inlined, name, name_kind, elsewhere, pc
    FROM counted WHERE locked ORDER BY ended, core"""
# Locked operations that release a lock in a function that is not named like a lock's: a macro may take and release a lock there, as in
# glibc's malloc. Its core never runs waiting code next, whereas it often does after another operation of the function on the same word.
RELEASES = f"""
    WITH log AS (SELECT *, {CODE} AS code FROM $file {USED} AND "user" AND kind = 'rmw'),
         followed AS (SELECT *, coalesce(regexp_matches(lead({NAMED}) OVER (PARTITION BY core, line, va ORDER BY issued),
                                                        '{WAITING.pattern}', 'i'), false)::INTEGER AS fails FROM log),
         of_code AS (SELECT * FROM followed WHERE NOT regexp_matches({NAMED}, '{LOCKING.pattern}', 'i')),
         rates AS (SELECT function, pc, avg(fails) AS failing, count(*) AS count FROM of_code GROUP BY ALL),
         words AS (SELECT DISTINCT function, pc, line, va, failing, count FROM of_code JOIN rates USING (function, pc))
    SELECT DISTINCT one.function, one.pc FROM words AS one JOIN words AS other USING (function, line, va)
    WHERE {OFTEN} * one.failing < other.failing AND one.count * other.failing >= {FEW}"""
FUTEX = f"""
    SELECT core, issued, exposed FROM $file
    WHERE NOT "user" AND NOT buffer_wait AND (va = 0 OR va > {USER_TOP}) AND (function LIKE '%futex%' OR name LIKE 'futex_queues%')
    ORDER BY issued"""


Key = tuple[str, int]  # of a read: the function, and the byte of the line
Touch = tuple[int, int, "Lock | None"]  # the end of an access of a line, its core, and the word that it belongs to


@dataclass
class Read:
    """Of the lock's line by the code that takes the lock, after an attempt and before anything else but such reads."""

    ended: int
    key: Key


@dataclass
class Acquisition:
    """By one core; ticks. At first each attempt is one (`_acquired` joins them). `released` None: the release hit, or the core holds it
    yet."""

    core: int
    asked: int
    got: int
    elsewhere: int = 0  # accesses of the core to other lines before it
    again: bool = False  # its code waits for a lock that the core's attempt before did not get
    used: int = 0  # end of the last access to other data of the line before the core's next attempt
    released: int | None = None
    leaving: int = 0  # begin of the first access in releasing code
    given: bool = False  # the release changed the lock's word: what follows in releasing code is not part of it
    last: int = 0  # end of the last access in releasing code
    tries: bool = False  # does not wait for the lock if it fails
    code: str = ""  # the function that takes the lock
    reads: list[Read] = field(default_factory=list)
    attempts: int = 1
    futex_waits: int = 0

    def entered(self, tested: set[Key]) -> int:
        """When the core holds the lock: after an attempt, code that takes a lock may wait by reads of other words than it tests."""
        return max([self.got, *(read.ended for read in self.reads if read.key not in tested)])


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
    touched: list[Touch] = field(default_factory=list)  # accesses of the line
    reads: Counter[Key] = field(default_factory=Counter)  # by code that takes the lock
    _tests: Counter[Key] = field(default_factory=Counter)  # those right before an attempt
    _open: dict[int, Acquisition] = field(default_factory=dict)

    def beside(self, row: dict[str, Any], its: "Lock | None" = None) -> None:
        """An access to other data of the line, or to the word `its`. Code that takes locks may access it before it holds the lock."""
        now = self._open.get(row["core"])
        if now and row["user"] and not LOCKING.search(_code(row)):
            now.used = row["ended"]
        elif its is None or not its.attempts:
            self._read(now, row)

    def _read(self, now: Acquisition | None, row: dict[str, Any]) -> None:
        free = now and now.released is None and not now.used and now.elsewhere == row["elsewhere"]
        if now and free and now.code and row["user"] and row["kind"] == "load" and now.code == _locking_function(row):
            now.reads.append(Read(row["ended"], (now.code, row["byte"])))
            self.reads[now.reads[-1].key] += 1

    def tested(self) -> set[Key]:
        """What code that takes the lock reads before it attempts, so that such reads are not the wait of an acquisition."""
        return {key for key, count in self._tests.items() if OFTEN * count >= self.reads[key]}

    def _attempt(self, row: dict[str, Any], code: str) -> None:
        core, function = row["core"], _locking_function(row)
        before = self._open.get(core)
        if before and before.released is None and before.reads and row["issued"] <= before.reads[-1].ended + TURN:
            self._tests[before.reads[-1].key] += 1
        self._open[core] = Acquisition(core, row["issued"], row["ended"], row["elsewhere"], bool(WAITING.search(code)),
                                       tries=bool(TRYING.search(code)), code=function)
        self.attempts.append(self._open[core])

    def accessed(self, row: dict[str, Any], releases: bool) -> None:
        """`releases`: the instruction does, whatever its function is called."""
        core, code = row["core"], _code(row)
        now = self._open.get(core)
        self.stall += row["exposed"]
        if not row["user"]:
            if now and row["kind"] == "load" and (self.shared or row["va"] == self.va):  # threads sleep on other words of a rwlock
                now.futex_waits += 1
            return
        self.cores.add(core)
        plain = row["kind"] == "store" and not LOCKING.search(code)
        stores = row["byte"] == self.first and (plain or (row["kind"] == "rmw" and _stores(row)))
        releases = releases or stores or bool(RELEASING.search(code))
        if releases:
            given = row["kind"] != "load" and row["va"] == self.va
            if not now:
                return
            now.leaving = now.leaving or row["issued"]
            if now.released is not None and row["issued"] > now.last + TURN:  # another release: that of the acquisition hit its word
                now.given = given = True
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
            self._attempt(row, code)
        elif row["va"] != self.va:
            self.beside(row)
        else:
            self._read(now, row)

    def _held_until(self, one: Acquisition, released: int) -> bool:
        """Whether the release is of this acquisition. If the core first lost the line to an access of other data, it may have released
        the lock and taken it again before; it has not if it then held the lock, without the line, for at least as long as before."""
        touched, entered = self.touched, one.entered(self.tested())
        at = bisect_right(touched, (entered, LAST_CORE))
        while at < len(touched) and touched[at][1] == one.core and touched[at][0] <= released:
            at += 1
        if at == len(touched) or touched[at][0] > released or touched[at][2] is self:
            return True
        lost = touched[at][0]
        back = next((touched[after][0] for after in range(at, len(touched)) if touched[after][1] == one.core), released)
        return back >= one.leaving and lost - entered <= released - lost

    def summary(self, p: Point) -> dict[str, Any]:
        """Times in fs. Hand-offs are between successive holders on different cores; `hops` is their mean distance in links. Waits are
        None if there are none, or if they are longer than the cores can have waited."""
        ordered, tested = _acquired(self), self.tested()
        handed = [(a, b) for a, b in zip(ordered, ordered[1:], strict=False) if a.core != b.core]
        held = [one.released - one.entered(tested) for one in ordered if one.released is not None and self._held_until(one, one.released)]
        waits = [one.entered(tested) - one.asked for one in ordered]
        known = bool(waits) and sum(waits) <= p.waitable_fs
        hops = [hops for a, b in handed if (hops := _hops(p, a.core, b.core)) is not None]
        return {"name": self.name, "kind": self.kind, "type": self.type, "address": self.line + self.first, "virtual_address": self.va,
                "stall": self.stall, "spin": self.spin, "wait_share": (self.stall + self.spin) / p.waiting_fs if p.waiting_fs else 0.0,
                "cores": len(self.cores), "acquisitions": len(ordered), "repeated": sum(one.attempts > 1 for one in ordered),
                "futex_waits": sum(one.futex_waits for one in ordered), "futex_stall": self.futex_stall,
                "held": _middle(held), "held_known": len(held), "waited": sum(waits) // len(waits) if known else None,
                "waited_longest": max(waits) if known else None,
                "waiters": sum(waits) / p.window_fs if known else None,
                "handoffs": len(handed), "hops": sum(hops) / len(hops) if hops else None}


def _code(row: dict[str, Any]) -> str:
    """The functions of an access, without the program."""
    return f"{row['function']};{row['inlined'] or ''}".split(":", 1)[-1]


def _stores(row: dict[str, Any]) -> bool:
    """Whether a locked operation is a store, by its innermost function."""
    return bool(STORING.search((row["inlined"] or row["function"]).split(" called at ")[0]))


def _of_condition(row: dict[str, Any]) -> bool:
    """Whether an access is to a condition variable: the innermost function that is named like one or like a lock decides."""
    for call in [*(row["inlined"] or "").split("; "), row["function"]]:
        function = call.split(" called at ")[0]
        if CONDITION.search(function):
            return True
        if TYPE.search(function.split(":", 1)[-1]):
            return False
    return False


def _locking_function(row: dict[str, Any]) -> str:
    """The innermost function of an access that is named like one that takes a lock; empty: none."""
    for call in [*(row["inlined"] or "").split("; "), row["function"].split(":", 1)[-1]]:
        if LOCKING.search(function := call.split(" called at ")[0]):
            return "" if RELEASING.search(function) else function
    return ""


class Failures:
    """Which attempts of a lock have failed, by the holds of other cores."""

    def __init__(self, lock: Lock) -> None:
        self._touched = lock.touched
        self._tested = lock.tested()
        released = [(one.entered(self._tested), one.released, one.core) for one in lock.attempts if one.released is not None]
        used = [(one.got, one.used, one.core) for one in lock.attempts if one.released is None and one.used]
        self._holds = [] if lock.shared else sorted([*lock.retaken, *released])
        self._uses = [] if lock.shared else sorted(used)  # holds that last at least until then, if the data is the holder's
        self._next: dict[int, int] = {}  # by the identity of an attempt: when the core attempts again
        later: dict[int, int] = {}
        for one in reversed(lock.attempts):
            if one.core in later:
                self._next[id(one)] = later[one.core]
            later[one.core] = one.asked

    def of(self, one: Acquisition) -> bool:
        return one.released is None and (_within(one, self._holds) or (_within(one, self._uses) and self._spins(one)))

    def _spins(self, one: Acquisition) -> bool:
        """Whether the core attempts again as soon as another core has taken the line, or reads what it tests and nothing else before it
        does."""
        if one.reads and one.reads[0].key in self._tested:
            return True
        again, touched = self._next.get(id(one)), self._touched
        at = bisect_right(touched, (one.got, LAST_CORE))
        while at < len(touched) and touched[at][1] == one.core:
            at += 1
        return again is not None and at < len(touched) and again <= touched[at][0] + TURN


def _within(one: Acquisition, holds: list[tuple[int, int, int]]) -> bool:
    """Whether an attempt is within the last of another core's holds that began before it."""
    at = bisect_left(holds, (one.got,)) - 1
    return at >= 0 and one.got < holds[at][1] and holds[at][2] != one.core


def _acquired(lock: Lock) -> list[Acquisition]:
    """The acquisitions that the attempts on a lock, in order of `got`, make up, in the order in which the cores entered."""
    failures, tested = Failures(lock), lock.tested()
    found: dict[int, Acquisition] = {}  # by the number of the last attempt
    last: dict[int, tuple[int, Acquisition]] = {}  # by core
    for number, attempt in enumerate(lock.attempts):
        one = attempt
        at, before = last.get(one.core, (-1, one))
        failed = at >= 0 and (at not in found and not before.tries or (one.again and before.released is None))
        if failed and one.elsewhere == before.elsewhere:
            found.pop(at, None)
            one = replace(one, asked=before.asked, attempts=before.attempts + 1, futex_waits=before.futex_waits + one.futex_waits)
        last[one.core] = number, one
        if not failures.of(attempt):
            found[number] = one
    return sorted(found.values(), key=lambda one: one.entered(tested))


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
    """Of a point with recorded transactions; those with the most waiting first, with the kernel's futex code (`_place`)."""
    file = scan(recorded(p, *COLUMNS))
    database = connect()
    found = Words(p)
    last: list[tuple[int, int, Lock]] = []
    releases = {(row["function"], row["pc"]) for row in _rows(database, RELEASES.replace("$file", file))}
    for row in _rows(database, ROWS.replace("$file", file)):
        lock = found.of(row)
        found.touch(row, lock)
        if lock:
            lock.accessed(row, row["kind"] == "rmw" and (row["function"], row["pc"]) in releases)
            last.append((row["issued"], row["core"], lock))
    kept = [lock for lock in found.all if lock.attempts and lock.locking]
    _futex(last, _rows(database, FUTEX.replace("$file", file)))
    for lock in kept:
        lock.spin = _spin(p, lock)
    rows = [lock.summary(p) for lock in kept]
    return sorted(rows, key=_place)


def _place(one: dict[str, Any]) -> tuple[bool, int, int, int]:
    """A lock that was taken once, by one core, comes after those that may have been waited for, such as one in each thread's block."""
    once = one["acquisitions"] <= 1 and one["cores"] <= 1
    return once, -(one["stall"] + one["spin"] + one["futex_stall"]), -one["acquisitions"], one["address"]


class Words:
    """The words of user memory that may be locks, by line: fields with a type, elsewhere the bytes from a locked operation on."""

    def __init__(self, p: Point) -> None:
        self.all: list[Lock] = []
        self._by_line: dict[int, list[Lock]] = {}
        self._touched: dict[int, list[Touch]] = defaultdict(list)
        for row in p.database.rows("""SELECT line, "first", bytes, name, kind, type FROM fields WHERE point = ?
                                      ORDER BY line, use, "first" """, p.name):
            if row["type"]:
                self._add(row["name"], row["kind"], row["type"], row["line"], row["first"], row["first"] + row["bytes"])

    def _add(self, name: str, kind: str, type_: str, line: int, first: int, last: int) -> Lock:
        named = bool(TYPE.search(type_)) or lock_of(name, kind) is not None
        lock = Lock(name, kind, type_, line, first, last, locking=named, shared=bool(SHARED.search(type_)),
                    touched=self._touched[line])
        self.all.append(lock)
        self._by_line.setdefault(line, []).append(lock)
        return lock

    def touch(self, row: dict[str, Any], its: Lock | None) -> None:
        """Records an access, to the word `its`, for the words of the line."""
        self._touched[row["line"]].append((row["ended"], row["core"], its))
        for lock in self._by_line.get(row["line"], ()):
            if lock is not its:
                lock.beside(row, its)

    def of(self, row: dict[str, Any]) -> Lock | None:
        """The word that an access belongs to; a locked operation outside of known fields begins one."""
        if row["user"] and _of_condition(row):
            return None
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


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def text(made: dict[str, Any]) -> Iterator[str]:
    """The object as lines for people."""
    yield f"{made['point']}: {_count(len(made['locks']), 'lock')} of user programs"
    for one in made["locks"][:20]:
        yield f"{percent(one['wait_share'], 1):>8}  {one['name']}  {one['type'] or one['kind']}, at {one['virtual_address']:#x}"
        held = "" if one["held"] is None else (f", held {one['held'] / FS_PER_NS:,.0f} ns (median of "
                                               f"{_count(one['held_known'], 'known hold')})")
        waiters, wait = "", "how long cores waited is not known"
        if one["waited"] is not None:
            waiters = f", {one['waiters']:.2f} waiting on average"
            wait = f"a wait takes {one['waited'] / FS_PER_NS:,.0f} ns, the longest {one['waited_longest'] / FS_PER_NS:,.0f} ns"
        yield f"         {_count(one['acquisitions'], 'acquisition')} by {_count(one['cores'], 'core')}{waiters}{held}; {wait}"
        distance = "" if one["hops"] is None else f" over {one['hops']:.1f} links on average"
        futex = ""
        if one["futex_stall"]:
            futex = f"; {_count(one['futex_waits'], 'futex wait')}, {one['futex_stall'] / FS_PER_US:,.1f} us stall in futex code"
        yield f"         {_count(one['handoffs'], 'hand-off')} to another core{distance}{futex}"
