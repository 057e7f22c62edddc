# SPDX-License-Identifier: BSD-3-Clause
"""Holds the miss class of each recorded transaction against the transaction's other facts. A rule is a query for contradictions: rows
of `log`, which are a point's transactions with these columns besides:

    ended         tick of the answer
    chip          of the core; null: the machine is not known
    writes        whether it writes data
    past          whether it goes past the caches, so that it needs no line: its class says what a read would have been
    found         whether it is a secondary miss that finds the line in the L1: a prefetch has brought it since the core looked
    before        tick at which the core's previous transaction on the line ended; null: none is recorded
    others        tick at which the last transaction on the line before this one ended, whichever core's; likewise
    written       of those that write, and
    byte_written  of those that write from the same byte on
    writer_before the last writer once the core's previous transaction on the line had ended; null: no core has written it, or none is
                  recorded

The log begins with the windows, so what happened before is unknown and contradicts nothing. Stores that hit are not in it, nor are
prefetches: of the secondary misses that no older access explains, each core may wait for as many lines as its prefetchers counted late, and
find as many as they counted useful. Where `prefetched` says that the core has had the line since `before`, rules about what happened since
then do not apply. A core that has written after `before` is another one, since this core had no transaction in between.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from analysis.database import connect
from analysis.described import DEVICE, FS_PER_US, MISS_CLASS, SEGMENT, SHARED, WRITES
from analysis.exports.base import recorded
from analysis.run_directory import Point
from moscope.parquet import quoted, scan

SCHEMA = "moscope.audit/1"
COLUMNS = (*SEGMENT.names, "core", "issued", "latency", "exposed", "line", "va", "kind", "class", "supplier", "supplier_chip", "hops",
           "probes", "writer", "buffer_wait", "secondary_miss", "name", "function")  # of transactions

LOG = f"""
    WITH ended AS (SELECT *, issued + latency AS ended, core // $per_chip AS chip, kind IN {WRITES} AS writes,
                          kind IN ('flush', 'nt_store', 'uncached_load') AS past, va % 64 AS byte,
                          coalesce(class = 'secondary' AND supplier = 'own' AND cache = latency, false) AS found $more
                   FROM $file WHERE NOT buffer_wait),
         ordered AS (SELECT *, row_number() OVER (ORDER BY ended, issued, core) AS number FROM ended)
    SELECT *, max(ended) OVER own AS before, max(ended) OVER everyone AS others,
           max(CASE WHEN writes THEN ended END) OVER everyone AS written,
           lag(CASE WHEN writes THEN core ELSE writer END) OVER (PARTITION BY line, core ORDER BY number) AS writer_before,
           max(CASE WHEN writes AND va <> 0 THEN ended END) OVER same AS byte_written
    FROM ordered
    WINDOW own AS (PARTITION BY line, core ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
           everyone AS (PARTITION BY line ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
           same AS (PARTITION BY line, byte ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"""

# Lines on whose arrival secondary misses of a core end, or that they find, but that no older access brings: in order of arrival, less
# those that the core's prefetcher fetched late, or in time. Accesses that began before the windows are left out: a late prefetch counts
# when the access begins. A write that goes on once an older read has ended may follow a prefetch or a load that was not used and has no
# row, so `prefetched` suffices for it.
UNEXPLAINED = """
    WITH arrivals AS (SELECT DISTINCT core, line, ended, found FROM log WHERE class = 'secondary' AND NOT (writes AND prefetched)
                          AND issued >= (SELECT min(ended) FROM log) AND NOT EXISTS (
                          SELECT 1 FROM log older WHERE older.line = log.line AND older.core = log.core AND older.issued <= log.issued
                          AND (older.class <> 'secondary' AND older.ended = log.ended
                               OR log.writes AND NOT older.writes AND older.ended > log.issued AND older.ended < log.ended)))
    SELECT core, line, ended FROM arrivals LEFT JOIN prefetched USING (core)
    QUALIFY row_number() OVER (PARTITION BY core, found ORDER BY ended, line) > coalesce(CASE WHEN found THEN useful ELSE late END, 0)"""

SHARING = f"class IN ({', '.join(map(quoted, MISS_CLASS.of(SHARED)))})"
# The last writer is another one than after this core's previous transaction: a prefetch has brought that one the right to write.
WRITTEN_SINCE = """(writer IS DISTINCT FROM writer_before
                    AND EXISTS (SELECT 1 FROM prefetched p WHERE p.core = log.writer AND p.late + p.useful > 0))"""
RULES = {
    "latency is the sum of its segments": f"latency <> {' + '.join(SEGMENT.names)}",
    "a transaction takes time, and stalls its core no longer than that": "latency <= 0 OR exposed < 0 OR exposed > latency",
    "a transaction spends time on links if and only if it crosses links": "(hops > 0) <> (link > 0)",
    "only a transaction with a supplier, or an upgrade, crosses links":
        "hops > 0 AND supplier_chip IS NULL AND class <> 'upgrade' AND NOT past",
    "a line from another chip crosses a link": "supplier_chip <> chip AND hops = 0",
    "a transaction that reads DRAM has a supplier": "dram > 0 AND supplier_chip IS NULL AND NOT past",
    "an access that waits for an older access of its core to the same line counts this time as `queue`":
        "before > issued AND queue < before - issued",
    "cold: the core has not had the line": "class = 'cold' AND (before IS NOT NULL OR writer = core OR prefetched)",
    "upgrade: the access writes": "class = 'upgrade' AND NOT writes",
    # The owner of a dirty line that is shared may answer an invalidation with the line.
    "upgrade: the line does not come from memory": "class = 'upgrade' AND dram > 0",
    "upgrade: no other core has written the line since the core had it": "class = 'upgrade' AND written > before AND NOT prefetched",
    "sharing: the last writer is another core or a device": f"{SHARING} AND (writer IS NULL OR writer = core)",
    "sharing: another core has had the line since, or a device has written it":
        f"{SHARING} AND writer <> {DEVICE} AND before IS NOT NULL AND others <= before AND NOT {WRITTEN_SINCE}",
    "false sharing: no other core has written the byte that is accessed":
        "class = 'false_sharing' AND va <> 0 AND byte_written > before AND NOT prefetched",
    "capacity: no other core has written the line since the core had it":
        "class = 'capacity' AND written > before AND NOT prefetched",
    "cold, capacity, sharing: a controller or a lower cache of the core sends the line":
        "class NOT IN ('upgrade', 'secondary') AND supplier_chip IS NULL AND (cache = 0 OR supplier = 'own') AND NOT past",
    "secondary: an older access or a prefetch of the core brings the line":
        "class = 'secondary' AND (core, line, ended) IN (SELECT (core, line, ended) FROM unexplained)",
    "secondary: no controller sends the line for it; its latency is waiting, plus the cache lookup of a write":
        "class = 'secondary' AND (supplier_chip IS NOT NULL OR hops > 0 OR probes > 0"
        " OR (queue + CASE WHEN writes THEN cache ELSE 0 END <> latency AND NOT found))",
    "every transaction has a class, and is marked secondary if and only if that is its class":
        "class = 'none' OR secondary_miss <> (class = 'secondary')",
}


class Audit:
    """Of one file of transactions. `per_chip`: the machine's cores of a chip, where known. `prefetched`: by core, the lines that its
    prefetcher fetched late, and those that it fetched in time and the core used."""

    def __init__(self, file: Path, per_chip: int | None = None, prefetched: Sequence[tuple[int, int]] = ()) -> None:
        self._database = connect()
        made = LOG.replace("$file", scan(file)).replace("$per_chip", str(per_chip) if per_chip else "NULL")
        known = self._database.execute(f"SELECT * FROM {scan(file)} LIMIT 0").description or ()
        more = "" if "prefetched" in [column[0] for column in known] else ", false AS prefetched"  # logs before version 0.2.0
        self._database.execute(f"CREATE TABLE log AS {made.replace('$more', more)}")
        self._database.execute("CREATE TABLE prefetched (core INTEGER, late BIGINT, useful BIGINT)")
        if prefetched:
            self._database.executemany("INSERT INTO prefetched VALUES (?, ?, ?)", [(core, *lines) for core, lines in enumerate(prefetched)])
        self._database.execute(f"CREATE TABLE unexplained AS {UNEXPLAINED}")

    def transactions(self) -> dict[str, int]:
        """By class."""
        return {str(miss): int(count) for miss, count in self._database.execute(
            "SELECT class, count(*) FROM log GROUP BY class ORDER BY count(*) DESC, class").fetchall()}

    def contradictions(self) -> dict[str, int]:
        """By rule, how many transactions contradict it."""
        return {rule: int((self._database.execute(f"SELECT count(*) FROM log WHERE {condition}").fetchone() or (0,))[0])
                for rule, condition in RULES.items()}

    def examples(self, rule: str, most: int = 5) -> Iterator[dict[str, Any]]:
        """The first transactions that contradict a rule."""
        found = self._database.execute(
            f"SELECT * EXCLUDE (number, byte, past, found) FROM log WHERE {RULES[rule]} ORDER BY ended LIMIT {most}")
        names = [column[0] for column in found.description or ()]
        return (dict(zip(names, row, strict=True)) for row in found.fetchall())


def contradictions(file: Path, per_chip: int | None = None, prefetched: Sequence[tuple[int, int]] = ()) -> dict[str, int]:
    return Audit(file, per_chip, prefetched).contradictions()


def document(points: Iterable[Point]) -> dict[str, Any]:
    """As a JSON object. RunDirectoryError: a point has no recorded transactions."""
    found = [_point(p, recorded(p, *COLUMNS)) for p in points]
    return {"schema": SCHEMA, "ok": not any(one["contradictions"] for one in found), "points": found}


def _point(p: Point, file: Path) -> dict[str, Any]:
    def counted(core: dict[str, Any], what: str) -> int:
        return sum(int((core.get(name) or {}).get(what, 0)) for name in ("prefetch", "instruction_prefetch"))

    cores = p.machine.get("cores", [])
    audit = Audit(file, p.cores_per_chip, [(counted(core, "late"), counted(core, "useful")) for core in cores])
    classes = audit.transactions()
    return {"point": p.name, "transactions": sum(classes.values()), "classes": classes, "contradictions": [
        {"rule": rule, "transactions": count, "examples": list(audit.examples(rule))}
        for rule, count in audit.contradictions().items() if count]}


def text(made: dict[str, Any]) -> Iterator[str]:
    """The object as lines for people."""
    for one in made["points"]:
        count = sum(broken["transactions"] for broken in one["contradictions"])
        yield (f"{one['point']}: {one['transactions']:,} transactions, {len(RULES)} rules: "
               + (f"{count:,} contradictions" if count else "no contradiction"))
        if one["classes"]:
            said = ((MISS_CLASS.label(miss) if miss in MISS_CLASS.names else miss, number) for miss, number in one["classes"].items())
            yield "  " + ", ".join(f"{miss} {number:,}" for miss, number in said)
        for broken in one["contradictions"]:
            yield f"  {broken['transactions']:,} violate: {broken['rule']}"
            for example in broken["examples"]:
                yield (f"    {example['issued'] / FS_PER_US:.6f} us, core {example['core']}: {example['class']} {example['kind']} of "
                       f"{example['line']:#x} ({example['name']}) by {example['function']}")
