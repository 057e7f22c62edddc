# SPDX-License-Identifier: BSD-3-Clause
"""Transfers (from, to): times that a chip's caches or a node's memory sent lines to cores of a chip.

A core that had the line and lacked only the right to write, or found the line in its own caches, received no transfer.
"""

from analysis.run_directory import Point, Run
from analysis.tables.base import Row, Table, key, once, table, us
from analysis.tables.lines import MOST, what
from moscope.config.bindings import roles_of

# By what a supplier is to the machine: (role, per).
WORDS = {("cache", "core"): "cores of chip {chip}", ("cache", "chip"): "{level} of chip {chip}", ("home", "node"): "memory of node {chip}"}
BY_LINE = f"""
    WITH hottest AS (SELECT line, use, object, field, waiting FROM lines WHERE point = ? ORDER BY waiting DESC, line, use LIMIT {MOST})
    SELECT * FROM transfers JOIN hottest USING (line, use) WHERE point = ? AND count > 0
    ORDER BY waiting DESC, line, use, count DESC, supplier, from_chip, to_chip"""
BY_NAME = """
    SELECT t.name, t.kind, supplier, supplier_role, supplier_per, from_chip, to_chip,
           sum(count)::BIGINT AS count, sum(t.stall)::BIGINT AS stall
    FROM transfers t WHERE point = ? GROUP BY ALL HAVING sum(count) > 0 ORDER BY name, kind, count DESC, supplier, from_chip, to_chip"""


@once
def transfers_by_name_of(p: Point) -> list[Row]:
    """name, kind, supplier, supplier_role, supplier_per, from_chip, to_chip, count, stall (fs)."""
    return p.database.rows(BY_NAME, p.name)


def of_name(p: Point, name: str, kind: str) -> list[Row]:
    """Those of one name."""
    groups = p.made.get("transfers of names")
    if groups is None:
        groups = p.made["transfers of names"] = {}
        for row in transfers_by_name_of(p):
            groups.setdefault((row["name"], row["kind"]), []).append(row)
    found: list[Row] = groups.get((name, kind), [])
    return found


def role_of(row: Row) -> tuple[str, str]:
    """(role, per) of a row's supplier; of runs of earlier versions by the name of its type."""
    if row.get("supplier_role"):
        return row["supplier_role"], row["supplier_per"]
    named = roles_of({"type": row["supplier"]})
    return named.role, named.per


def source(row: Row) -> str:
    """In words: `cores of chip 3`."""
    supplier = str(row["supplier"])
    return WORDS.get(role_of(row), "{type} of chip {chip}").format(
        type=supplier, level=supplier.removesuffix("Cache") or supplier, chip=row["from_chip"])


def matrix(rows: list[Row]) -> tuple[list[int], list[tuple[str, list[int]]]]:
    """The chips that received lines, and for each sender its name with the counts by receiving chip; caches before memories."""
    counts: dict[tuple[bool, str, int], dict[int, int]] = {}
    names = {}
    for row in rows:
        sender = role_of(row)[0] == "home", str(row["supplier"]), int(row["from_chip"])
        names[sender] = source(row)
        to = counts.setdefault(sender, {})
        to[row["to_chip"]] = to.get(row["to_chip"], 0) + row["count"]
    chips = sorted({chip for to in counts.values() for chip in to})
    return chips, [(names[sender], [counts[sender].get(chip, 0) for chip in chips]) for sender in sorted(counts)]


def transfers(run: Run) -> Table:
    """One row per line, supplier and pair of chips, of the hottest lines."""
    return table(("name", "kind", "object_field", "address", "supplier", "from_chip", "to_chip", "count", "stall_us"), (
        (*key(p), one["name"], one["kind"], what(one), f"{one['line']:#x}", one["supplier"], one["from_chip"], one["to_chip"], one["count"],
         us(one["stall"])) for p in run.points for one in p.database.rows(BY_LINE, p.name, p.name)))


def transfers_by_name(run: Run) -> Table:
    """The same by name, over all lines."""
    columns = ("name", "kind", "supplier", "from_chip", "to_chip", "count")
    return table((*columns, "stall_us"), ((*key(p), *(one[c] for c in columns), us(one["stall"]))
                                          for p in run.points for one in transfers_by_name_of(p)))


TABLES = {"transfers": transfers, "transfers_by_name": transfers_by_name}
