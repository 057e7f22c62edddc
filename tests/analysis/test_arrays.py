# SPDX-License-Identifier: BSD-3-Clause
"""Elements of an array are one entry of headline, list and tables, unless one of them has most of the waiting."""

import re
from collections.abc import Mapping
from html import unescape
from pathlib import Path

import pyarrow as pa
import pytest
import synthetic_run
from pyarrow import parquet

from analysis import Point, load
from analysis.chains import chains
from analysis.chains.tree import placed, tree
from analysis.comparison.pairs import by_line
from analysis.database import Database
from analysis.exports import collapsed
from analysis.maps import asked, maps_of
from analysis.page import lines as page
from analysis.tables.lines import hot_lines
from analysis.tables.names import hot_names
from analysis.whatif.lines import find
from moscope.naming.columns import Tables
from moscope.runs import lines as run_lines


def point(waiting: Mapping[str, int], accessed: Mapping[str, str] | None = None) -> Point:
    """A line of each name with this waiting."""
    record, stats, made = synthetic_run.point("exim", "distro", 48)
    line, pair = made["lines"][0], made["pairs"][0]
    made["lines"] = [{**line, "line": 64 * n, "use": 1, "name": name, "kind": "user symbol", "object": "exim 7", "spin": 0, "stall": stall,
                      "field": name[name.index("["):] if "[" in name else None} for n, (name, stall) in enumerate(waiting.items())]
    made["pairs"] = [{**pair, "line": 64 * n, "use": 1, "stall": stall, "spin": 0} for n, stall in enumerate(waiting.values())]
    made["transfers"] = made["transfers"][:0] + [{**made["transfers"][0], "line": 0, "use": 1}]
    tables = synthetic_run.arrow(made)
    tables["pairs"] = tables["pairs"].append_column("accessed", pa.array([(accessed or {}).get(name, name) for name in waiting]))
    found = synthetic_run.made(record, stats)
    found.database = Database({"p": tables})
    found.made["tables"] = tables
    return found


def entries(waiting: Mapping[str, int]) -> dict[str, int]:
    return {one["name"]: one["waiting"] for one in hot_names(point(waiting))}


@pytest.mark.parametrize(("waiting", "wanted"), [
    ({"p:a[0]": 50, "p:a[1]": 50, "p:b": 9}, {"p:a[*]": 100, "p:b": 9}),
    ({"p:a[-1]": 50, "p:a[0]": 50}, {"p:a[*]": 100}),  # of Fortran
    ({"p:a[3].x": 50}, {"p:a[3].x": 50}),
    ({"p:a[0].x": 5, "p:a[1].x": 5, "p:a[0].y": 3}, {"p:a[*].x": 10, "p:a[0].y": 3}),
    ({"p:a[7]": 60, "p:a[1]": 20, "p:a[2]": 20}, {"p:a[7]": 60, "p:a[*]": 40}),  # one hot element
    ({"p:a[7]": 60, "p:a[1]": 40}, {"p:a[7]": 60, "p:a[1]": 40}),
    ({"p:g[3][0]": 5, "p:g[3][1]": 5, "p:g[3][2]": 5}, {"p:g[3][*]": 15}),
    ({f"p:g[{n}][{n % 2}]": 5 for n in range(4)}, {"p:g[*][*]": 20}),
    ({"p:new[] at p.cc:7 (Pool)[1].x": 4, "p:new[] at p.cc:7 (Pool)[2].x": 4}, {"p:new[] at p.cc:7 (Pool)[*].x": 8}),
    ({"p:a[0]": 0, "p:a[1]": 0}, {"p:a[*]": 0}),
    ({f"p:log(char (&) [{n}])::calls": 5 for n in range(3)}, {f"p:log(char (&) [{n}])::calls": 5 for n in range(3)}),
    ({f"p:log(char (&) [7])::calls[{n}][{n}]": 5 for n in range(3)}, {"p:log(char (&) [7])::calls[*][*]": 15}),
    ({f"p:Pool::operator[](int)::calls[{n}]": 5 for n in range(3)}, {"p:Pool::operator[](int)::calls[*]": 15}),
])
def test_names_that_differ_by_indices_are_one_entry_but_a_hot_element_is_its_own(waiting: dict[str, int], wanted: dict[str, int]) -> None:
    assert entries(waiting) == wanted


GRID = {f"p:grid[{n}][{n % 7}]": 10 for n in range(40)} | {"p:lock": 100}


def test_headline_and_bottleneck_name_an_array_over_many_lines_with_their_number() -> None:
    p = point(GRID)
    assert "is for 40 cache lines of p:grid[*][*], which" in unescape(re.sub("<[^>]*>", "", page.headline(p)))
    tables = Tables(**{name: rows for name, rows in p.made["tables"].items() if name != "card"})
    names = run_lines.Hottest(tables, lambda line: line).names(500)
    assert (names[0]["name"], names[0]["lines"], names[0]["wait_share"]) == ("p:grid[*][*]", 40, 0.8)
    record = {"cycles": {"busy": 0.2, "core": 0.0, "memory": 0.8, "idle": 0.0}, "spin_cycles": 0.0}
    assert " of it for the 40 lines of p:grid[*][*] (" in run_lines.bottleneck(record, names)
    assert [one["name"] for one in hot_lines(p)][:2] == ["p:lock", "p:grid[0][0]"]  # single lines keep their names


def test_an_array_whose_fields_share_the_waiting_is_called_after_the_array() -> None:
    waiting = {"p:a[0].x": 5, "p:a[1].x": 5, "p:a[2].x": 4}
    for others, shared in (({}, "p:a[*].x"), ({"p:a[1].x": "p:a[1].y", "p:a[2].x": "p:a[2].z"}, "p:a")):
        assert hot_names(point(waiting, others))[0]["shared"] == shared


def test_a_line_is_asked_for_by_its_own_name_by_its_entry_and_by_the_array() -> None:
    p = point({f"p:a[{n}].x": 5 + n for n in range(4)})
    whole, one = [("p:a[*].x", "user symbol")], [("p:a[2].x", "user symbol")]
    assert asked.names(p, "p:a[*].x") == asked.names(p, "p:a[*]") == asked.names(p, "p:a") == whole
    assert asked.names(p, "p:a[2].x") == asked.names(p, "p:a[2]") == one
    assert [line.line["name"] for line in maps_of(p, *whole[0])] == ["p:a[3].x", "p:a[2].x", "p:a[1].x"]
    assert [line.line["name"] for line in maps_of(p, *one[0])] == ["p:a[2].x"]
    found = find(p, "p:a[*].x")
    assert find(p, "") is None
    assert found is not None and sorted(found.names) == [f"p:a[{n}].x" for n in range(4)]


def test_the_chains_of_an_entry_are_those_of_its_elements(tmp_path: Path) -> None:
    folder = synthetic_run.write_run(tmp_path / "run", cores=(48,))
    (of_point,) = (folder / "points").iterdir()
    tables = point({"p:a[0]": 5, "p:a[1]": 5}).made["tables"]
    for name, table in tables.items():
        parquet.write_table(table, of_point / f"{name}.parquet")
    rows = [{"frames": ["main"], "process": "p", "name": name, "kind": "user symbol", "waiting": 5, "samples": 1}
            for name in ("p:a[0]", "p:a[1]", "p:b")]
    parquet.write_table(pa.Table.from_pylist(rows), of_point / "stacks.parquet")
    (p,) = load(folder).points
    assert [[one.element for one in chains(p, name, "user symbol")] for name in ("p:a[*]", "p:a[1]")] == [
        ["p:a[0]", "p:a[1]"], ["p:a[1]"]]
    bars = {call.function: call.waiting for call, _, _, _ in placed(tree(chains(p), True), 0.0) if call.line}
    assert bars == {"[p:a[*]]": 10, "[p:b]": 5}
    assert {parts[-1] for parts, _ in collapsed.weighted(p)} == {"p:a[*]", "p:b"}


def test_an_array_that_is_one_entry_on_either_side_is_one_line_of_a_comparison() -> None:
    def same(name: str, kind: str) -> str:
        return name

    a, b = by_line((point({"p:a[0]": 5, "p:a[1]": 5, "p:c[0]": 2}), point({"p:a[0]": 9, "p:a[1]": 1, "p:c[0]": 3})), (same, same))
    assert ({name: row["time"] for name, row in a.items()}, {name: row["time"] for name, row in b.items()}) == (
        {"p:a[*]": 10, "p:c[0]": 2}, {"p:a[*]": 10, "p:c[0]": 3})
