# SPDX-License-Identifier: BSD-3-Clause
"""Holds the miss class of each recorded transaction against the transaction's other facts. A rule is a query for contradictions: rows
of `log`, which are a point's transactions with these columns besides:

    ended       tick of the answer
    writes      whether it writes data
    before      tick at which the core's previous transaction on the line ended; null: none is recorded
    written     tick at which the last write to the line before this one ended, and
    own_written that of this core; null: none is recorded

The log begins with the windows, so what happened before is unknown and contradicts nothing.
"""

from pathlib import Path

from analysis.database import connect, quoted
from analysis.described import SEGMENT, WRITES

LOG = f"""
    WITH ended AS (SELECT *, issued + latency AS ended, kind IN {WRITES} AS writes FROM read_parquet($file) WHERE NOT buffer_wait),
         ordered AS (SELECT *, row_number() OVER (ORDER BY ended, issued, core) AS number FROM ended)
    SELECT *, max(ended) OVER own AS before,
           max(CASE WHEN writes THEN ended END) OVER everyone AS written,
           max(CASE WHEN writes THEN ended END) OVER own AS own_written
    FROM ordered
    WINDOW own AS (PARTITION BY line, core ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING),
           everyone AS (PARTITION BY line ORDER BY number ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"""

RULES = {
    "latency is the sum of its segments": f"latency <> {' + '.join(SEGMENT.names)}",
    "a line crosses no link without a supplier or an upgrade": "hops > 0 AND supplier_chip IS NULL AND class <> 'upgrade'",
    "cold: the core has not had the line": "class = 'cold' AND before IS NOT NULL",
    "upgrade: the access writes": "class = 'upgrade' AND NOT writes",
    # The owner of a dirty line that is shared may answer an invalidation with the line.
    "upgrade: the line does not come from memory": "class = 'upgrade' AND dram > 0",
    "sharing: the last writer is another core or a device":
        "class IN ('true_sharing', 'false_sharing') AND (writer IS NULL OR writer = core)",
    "capacity: no other core has written the line since the core had it":
        "class = 'capacity' AND writer <> core AND written > before AND written > coalesce(own_written, 0)",
    "capacity: a controller or a cache of the core sends the line":
        "class = 'capacity' AND supplier_chip IS NULL AND cache = 0",
    "secondary: an older access of the core to the line ends at the same time": """class = 'secondary' AND NOT EXISTS (
        SELECT 1 FROM log older WHERE older.line = log.line AND older.core = log.core AND older.ended = log.ended
        AND older.class <> 'secondary' AND older.issued <= log.issued)""",
    "secondary: no controller sends the line for it, and all of its latency is waiting":
        "class = 'secondary' AND (supplier_chip IS NOT NULL OR hops > 0 OR probes > 0 OR queue <> latency)",
    "cold, sharing: a controller or a cache of the core sends the line":
        "class IN ('cold', 'true_sharing', 'false_sharing') AND supplier_chip IS NULL AND cache = 0",
}


def contradictions(file: Path) -> dict[str, int]:
    """By rule, how many transactions contradict it."""
    database = connect()
    database.execute(f"CREATE TABLE log AS {LOG.replace('$file', quoted(str(file)))}")
    return {rule: int((database.execute(f"SELECT count(*) FROM log WHERE {condition}").fetchone() or (0,))[0])
            for rule, condition in RULES.items()}
