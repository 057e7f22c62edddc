# SPDX-License-Identifier: BSD-3-Clause
"""The sentence on a point: on the page, in `point.json` and on the terminal."""

import pytest
import synthetic_run
from test_report import visible

from analysis.page import lines
from moscope.naming.columns import Tables
from moscope.runs import lines as run_lines
from moscope.runs import table


@pytest.mark.parametrize("pairs, said", [
    ({("w", "r"): 34, ("w", "o"): 33, ("x", "o"): 33}, "34 % of this where r waits for it and w writes it"),
    ({("w", "w"): 95, (None, "w"): 5}, "which w writes on one core and waits for on another"),
    ({("w", "w"): 60, (None, "w"): 40}, "60 % of this where w writes it on one core and waits for it on another"),
    ({("w", "r"): 95, ("w", "o"): 5}, "which r waits for and w writes")])
def test_the_share_of_the_named_pair_is_given_unless_it_is_nearly_all(pairs: dict[tuple[str | None, str], int], said: str) -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    found["pairs"] = [{**found["pairs"][0], "spin": 0, "writer": 1 if writer else None, "writer_function": writer,
                       "waiter_function": waiter, "stall": 10**9 * part} for (writer, waiter), part in pairs.items()]
    assert said in visible(lines.headline(synthetic_run.made(record, stats, found))).replace("\u202f", " ")
    tables = Tables(**{name: rows for name, rows in synthetic_run.arrow(found).items() if name != "card"})
    record["top_names"] = run_lines.Hottest(tables, lambda line: line).names(1)
    assert said in visible(lines.headline(synthetic_run.made(record, stats, None))).replace("\u202f", " ")
    assert said in run_lines.bottleneck(record, record["top_names"])


@pytest.mark.parametrize("files", [("rootfs:/tmp/a", "rootfs:/tmp/a", None), ("rootfs:/tmp/a", "rootfs:/tmp/b", None)])
def test_a_line_of_the_page_cache_is_named_with_its_file_if_one_has_most_of_the_waiting(
        files: tuple[str | None, ...], capsys: pytest.CaptureFixture[str]) -> None:
    record, stats, found = synthetic_run.point("exim", "distro", 48)
    of_cache = {**found["lines"][0], "name": "page cache rootfs", "kind": "page cache", "field": None}
    found["lines"][:1] = [{**of_cache, "line": 64 * n, "object": file} for n, file in enumerate(files)]
    said = "page cache rootfs (rootfs:/tmp/a)" if files.count("rootfs:/tmp/a") > 1 else "page cache rootfs"
    assert ("of one name, " + said + ".") in visible(lines.headline(synthetic_run.made(record, stats, found)))
    tables = Tables(**{name: rows for name, rows in synthetic_run.arrow(found).items() if name != "card"})
    record["top_names"] = run_lines.Hottest(tables, lambda line: line).names(1)
    record["bottleneck"] = run_lines.bottleneck(record, record["top_names"])
    assert f" of it for {said} (true sharing)" in record["bottleneck"]
    table.show({"machine": "m", "points": [record]})
    assert f"{said}  true sharing" in capsys.readouterr().out
