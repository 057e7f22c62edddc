# SPDX-License-Identifier: BSD-3-Clause
"""Advice that follows from the map of a line, by rules. A rule is a function of a map that returns what it finds, or None; `RULES` has
them in the order in which a reader should try them."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from analysis.described import CLASSES, MISS_CLASS, SIZE
from analysis.locks import CODE_OF_LOCKS, QUEUED, lock_of
from analysis.maps.line_map import Area, Code, LineMap, whole_name

MAIN, NOTABLE = 0.6, 0.05  # shares of the line's waiting
ALONE = MISS_CLASS.of(SIZE)  # classes that do not depend on other cores
OF_ONE_THREAD = ("kernel stack",)  # kinds of memory that belong to one thread already
LOCK_TYPE = re.compile(r"mutex|spinlock|rwlock|rw_semaphore|lockref|semaphore", re.IGNORECASE)
# Functions that take or release a lock which several readers hold at a time.
READERS = re.compile(r"rdlock|rwlock_unlock|(down|up)_read|(read|shared)_(un)?lock|(un)?lock_shared|RwLock\w*>?::\w*read")
# What is no counter, by its type: what it is, and what to do if several cores write it.
POINTER = r"\*|ptr\b|^(h|l|p)?list_(head|node)$"
NO_COUNTERS = (
    (re.compile(r"cond(ition)?_(t|variable)|condvar", re.IGNORECASE), "a condition variable",
     "Notify it only if a thread waits for it, or let fewer threads share it."),
    (re.compile(POINTER), "a pointer",
     "Give each thread or core a list or queue of its own, or use an algorithm that writes it less often."))
COUNTER = ("If it is a counter, give each thread or core a copy on a line of its own and add the copies up when the value is read. "
           "Otherwise, use an algorithm that writes it less often.")
INDEX = re.compile(r"\[(-?\d+)\]")


@dataclass(frozen=True)
class Advice:
    """`kind` is the name of its rule; `fields` are those to change, after their array if they are elements of one; `others` are
    further fields that the text names."""

    kind: str
    text: str
    fields: tuple[str, ...]
    others: tuple[str, ...] = ()


def false_sharing(line: LineMap) -> Advice | None:
    """Fields that are written by different cores share the line."""
    written = [area for area in line.used if area.written]
    if line.line["kind"] in OF_ONE_THREAD or (len(written) == 1 and _by_code_of_locks(written[0])):
        return None
    if len(written) == 1 and _share(line, "false_sharing") >= MAIN and (bytes_ := _written_bytes(line, written[0])):
        return Advice("false_sharing", f"Cores wait for different bytes of {whole_name(written[0].name)} ({bytes_}). Give "
                      f"each core's data a line of its own: align each part to 64 bytes.{_others(line)}", (written[0].name,))
    if len(written) < 2 or not _is_shared(line) or not by_different_cores(line, written) or _are_lock_and_its_data(line, written):
        return None
    names = tuple(area.name for area in written)
    if array := array_of(written):
        return Advice("false_sharing", f"Elements of {array} that different cores write share this line. Align each element to 64 bytes, "
                      f"so that it has lines of its own.{_others(line, array)}", (array, *names))
    fields = listed(names) if len(set(names)) > 1 else f"{names[0]} of several objects"
    return Advice("false_sharing", f"Different cores write {fields} in this line. Put each on a line of its own (align it to 64 "
                  f"bytes), or give each thread a copy.{_others(line)}", names)


def lock(line: LineMap) -> Advice | None:
    """The line is waited for because of a lock."""
    if line.line.get("fetch"):
        return None  # code, which is named after a function: pthread_mutex_lock+0x40
    for area in sorted(line.used, key=lambda area: (not _named_lock(area), -area.waiting)):
        found = lock_of(area.name, area.kind)
        if not is_lock(area) or line.share(area.waiting) < NOTABLE:
            continue
        name = found[0] if found else area.name
        if found and found[1] == QUEUED:
            return Advice("lock", f"Cores wait in the queue of a lock: {name} is the node of a waiter and does not identify the lock. The "
                          "waiting functions and their callers do. Hold that lock for a shorter time, or split it so that fewer cores "
                          "compete for it.", (name,))
        which = "is" if _named_lock(area) else "holds"
        beside = [other.name for other in line.used if other is not area and other.written and not _belongs_to_locks(other, area)]
        if sum(code.waiting for code in area.waits if any(map(READERS.search, code.functions))) >= MAIN * max(area.waiting, 1):
            text = (f"{name} {which} a lock that readers share. Each reader writes it when it takes the lock and when it releases it, so "
                    "readers wait for each other even if they hold it only briefly. Give each core a lock on a line of its own, and let "
                    "writers take all of these locks; or let readers do without a lock (RCU, sequence counter).")
        else:
            text = f"{name} {which} a lock. Hold it for a shorter time, or split it so that fewer cores compete for it."
        # Less waiting than that is the holder's for data that arrives with the lock: on another line, it would miss each time.
        costly = sum(line.share(other.waiting) for other in line.used if other.name in beside) >= NOTABLE
        held = [*(beside if costly else ()), *_data_of_lock(area)]
        if held:
            text += (f" Its line also holds {listed(held)}. Waiters take this line away from the lock's holder: move that data to "
                     "another line.")
        return Advice("lock", text, (name, *(beside if costly else ())))
    return None


def one_word(line: LineMap) -> Advice | None:
    """Several cores write the same field."""
    for area in sorted(line.used, key=lambda area: -area.waiting)[:1]:
        cores = len(area.writers) if area.writers else 2 if _share(line, "true_sharing") >= MAIN else 0
        own = is_lock(area) or line.line["kind"] in OF_ONE_THREAD
        if area.written and cores > 1 and line.share(area.waiting) >= MAIN and not own and _share(line, "false_sharing") < MAIN:
            what, change = next(((f", {what}", change) for of, what, change in NO_COUNTERS if of.search(area.type)), ("", COUNTER))
            return Advice("one_word", f"Several cores write {area.name}{what}. {change}", (area.name,))
    return None


def one_writer(line: LineMap) -> Advice | None:
    """One core writes the field that the others wait for."""
    for area in sorted(line.used, key=lambda area: -area.waiting)[:1]:
        elsewhere = {code.function for code in unplaced_writers(line)} - {code.function for code in area.writes}
        passed_on = _is_shared(line) and _share(line, "false_sharing") < MAIN and len(area.writers) == 1 and area.readers - area.writers
        own = is_lock(area) or line.line["kind"] in OF_ONE_THREAD
        if passed_on and line.share(area.waiting) >= MAIN and not elsewhere and not own:
            return Advice("one_writer", f"One core writes {area.name} and others read it: the line moves for each new value, whatever its "
                          "address. Write it less often, or let each reader keep a copy that it renews less often.", (area.name,))
    return None


def read_mostly(line: LineMap) -> Advice | None:
    """A field that is only read lies beside one that is written."""
    written = [area for area in line.used if area.written]
    read = [area for area in line.used if _is_only_read(line, area) and line.share(area.waiting) >= NOTABLE]
    if not written or not read or not _is_shared(line):
        return None
    hot = max(written, key=lambda area: area.transactions).name
    names, changed = (tuple(area.name for area in areas) for areas in (read, written))
    verb, object_ = ("is", "it") if len(names) == 1 else ("are", "them")
    text = f"{listed(names)} {verb} only read, but cores lose {object_} at each write of {hot}."
    if len(written) <= len(read) and not unplaced_writers(line):  # fields that are read after these hit, and are not in the map
        return Advice("read_mostly", f"{text} Move {listed(changed)} to another line.", changed, names)
    return Advice("read_mostly", f"{text} Move {object_} to a line that is not written, together with all other fields that the same code "
                  "reads in this line. The map does not show a field that is always read after another field of the line, because "
                  "these reads hit.", names, (hot,))


def not_shared(line: LineMap) -> Advice | None:
    """Cores mostly wait for the line although no other core has taken it away."""
    if sum(_share(line, miss) for miss in ALONE) < MAIN:
        return None
    lost = "their caches replaced it or never had it"
    why = (f"Most of the waiting is for misses that other cores do not cause: {lost}." if _is_shared(line) or line.after_writes
           else f"No other core takes this line away: cores miss it because {lost}.")
    return Advice("not_shared", f"{why} Use less data, or store it in the order of its use; padding does not help.", ())


RULES: tuple[Callable[[LineMap], Advice | None], ...] = (false_sharing, lock, one_word, one_writer, read_mostly, not_shared)


def advice(line: LineMap) -> list[Advice]:
    return [found for rule in RULES if (found := rule(line))]


def _named_lock(area: Area) -> bool:
    return bool(lock_of(area.name, area.kind) or LOCK_TYPE.search(area.type))


def _belongs_to_locks(other: Area, area: Area) -> bool:
    """Whether `other` is part of the lock `area`, or another lock. The extent of a lock that is one by its code alone is not known: words
    that code of locks waits for are its own."""
    found = lock_of(area.name, area.kind)
    if found and lock_of(other.name, other.kind) == found:
        return True
    return _code_of_locks_waits(other) and (_named_lock(other) or not _named_lock(area))


def is_lock(area: Area) -> bool:
    """By its name, its type, or the code that waits for it and writes it."""
    return _named_lock(area) or _by_code_of_locks(area)


def _by_code_of_locks(area: Area) -> bool:
    """Whether functions that take or release a lock do most of the waiting and of the writing."""
    written = sum(code.count for code in area.writes)
    return written > 0 and sum(code.count for code in area.writes if _takes_lock(code)) >= MAIN * written and _code_of_locks_waits(area)


def _code_of_locks_waits(area: Area) -> bool:
    waiting = sum(code.waiting for code in area.waits)
    return waiting > 0 and sum(code.waiting for code in area.waits if _takes_lock(code)) >= MAIN * waiting


def _takes_lock(code: Code) -> bool:
    return any(CODE_OF_LOCKS.search(name) for name in code.functions)


def _data_of_lock(area: Area) -> list[str]:
    """Of an area that is a lock by its code: what other functions write there."""
    writers = [code.function for code in area.writes if not _takes_lock(code)] if _by_code_of_locks(area) else []
    return [f"data that {function} writes" for function in dict.fromkeys(writers)]


def by_different_cores(line: LineMap, written: list[Area]) -> bool:
    """Of two fields, whether each has a writer that does not write the other. Without recorded cores, the miss class decides."""
    known = [area.writers for area in written if area.writers]
    if len(known) > 1:
        return any(a - b and b - a for n, a in enumerate(known) for b in known[n + 1:])
    return _share(line, "false_sharing") >= MAIN


def _are_lock_and_its_data(line: LineMap, written: list[Area]) -> bool:
    """Whether the fields are one lock, which most of the waiting is for, and others that no core is known to write which does not
    take this lock. Without recorded cores, they count as the lock's: false sharing is then the class of its waiters' misses, too."""
    locks = [area for area in written if is_lock(area)]
    cores = set[int]().union(*(area.writers for area in locks))
    return (len({lock_of(area.name, area.kind) or area.name for area in locks}) == 1
            and line.share(sum(area.waiting for area in locks)) >= MAIN
            and all(area.writers <= cores for area in written if area not in locks))


def _written_bytes(line: LineMap, area: Area) -> str:
    """The written bytes of an area, if there are several: `0, 8 and 16`."""
    at = [str(byte.at) for byte in line.bytes if byte.written and area.first <= byte.at < area.end]
    return listed(at) if len(at) > 1 else ""


def unplaced_writers(line: LineMap) -> list[Code]:
    """Writers whose bytes are not known, if they are the last ones before a notable part of the transactions."""
    return [code for code in line.unplaced if code.count >= NOTABLE * line.after_writes]


def _is_only_read(line: LineMap, area: Area) -> bool:
    """Also where the bytes of a writer are not known, if a core has lost the line to writes of bytes beside those that it accesses."""
    return not area.written and (area.beside or not unplaced_writers(line))


def _others(line: LineMap, array: str = "") -> str:
    """What functions write at bytes that are not known. A function that accesses elements of `array`, which are to be aligned, writes
    fields that move with their element."""
    elements = [area for area in line.used if array and area.name.startswith(f"{array}[")]
    inside = {code.function for area in elements for code in (*area.waits, *area.writes)}
    functions = [code.function for code in unplaced_writers(line) if code.function not in inside]
    if not functions:
        return ""
    write = "writes" if len(set(functions)) == 1 else "write"
    return f" The data that {listed(functions)} {write} in this line must also move to another line."


def _is_shared(line: LineMap) -> bool:
    """Whether cores wait for it because others write it."""
    return sum(_share(line, miss) for miss in CLASSES if miss not in ALONE) >= NOTABLE


def _share(line: LineMap, miss: str) -> float:
    """Of a class, of the line's stall."""
    whole = sum(line.line.get(f"{c}_stall") or 0 for c in CLASSES)
    return (line.line.get(f"{miss}_stall") or 0) / whole if whole else 0.0


def array_of(areas: list[Area]) -> str:
    """The array whose elements the areas are: `grid[511]` for `grid[511][56]`. The names of the areas are equal up to the first index
    that differs. Empty if the areas are not elements of one array."""
    indices = [list(INDEX.finditer(area.name)) for area in areas]
    for at in range(min(map(len, indices), default=0)):
        if len({area.name[:one[at].start()] for area, one in zip(areas, indices, strict=True)}) > 1:
            return ""
        if len({one[at][1] for one in indices}) > 1:
            return areas[0].name[:indices[0][at].start()]
    return ""


def listed(names: list[str] | tuple[str, ...]) -> str:
    """`a, b and c`; of more than five, the first four and the number of the others."""
    shown = list(dict.fromkeys(names))
    if len(shown) > 5:
        shown = [*shown[:4], f"{len(shown) - 4} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
