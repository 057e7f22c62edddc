# SPDX-License-Identifier: BSD-3-Clause
"""Names with the characters of other programs' markup, on the terminal."""

from pathlib import Path
from typing import Any

import pytest
import synthetic_run

from analysis import load
from analysis.comparison import text as comparison
from analysis.maps import text as maps
from moscope.runs import display, table
from moscope.runs.job import Job
from moscope.runs.whatif import text as whatif

# Of a kernel's module, of Rust, of a function of C with a static variable.
NAMES = ("virtqueue_add+0x40 [virtio_ring]", "rust:<[u8] as Add>::add", "server:lock::calls", "server:new[] at pool.cc:9 ([4].x)")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_printed_as_it_is(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def printed() -> str:
        return capsys.readouterr().out

    row: dict[str, Any] = {"name": name, "kind": "module", "class": "cold", "a": 1.0, "b": 3.0, "difference": 2.0, "within_error": None}
    comparison.show([{"a": "a", "b": "b", "throughput": None, "alike": None, "unsteady": [], "configuration": [], "figures": {},
                      "not_recorded": {"a": [], "b": []}, "unit": "us", "time": [], "lines": [row], "functions": [],
                      "whole": {"a": 1.0, "b": 3.0, "difference": 2.0, "half_width": None, "within_error": None}}], [])
    assert name in printed()

    record, stats, found = synthetic_run.point("exim", "distro", 4)
    first = record["top_names"][0]
    table.show({"machine": "m", "points": [{**record, "bottleneck": f"waits for {name}", "top_names": [{**first, "name": name}]}]})
    assert printed().count(name) == 2

    whatif.show({"point": "p", "measure": "operations", "base": {"per_s": 9.0, "stderr_per_s": None},
                 "results": [{"gain": None, "gain_stderr": None, "rate": {"per_s": 9.0}, "as": "free", "name": name, "lines": 1,
                              "becomes": 1}]}, {"free": "every access hits"})
    assert name in (shown := printed()) and "standard error" not in shown
    whatif.show({"point": "p", "measure": "operations", "base": {"per_s": 9.0, "stderr_per_s": 2.0}, "results": []}, {})
    assert printed().endswith("+-: the standard error\n")

    for one in found["lines"]:
        one["name"] = name if one["name"] == first["name"] else one["name"]
    (point,) = load(synthetic_run.write_point(tmp_path / "run", (record, stats, found)).parents[1]).points
    maps.show(point, name, "slab")
    assert printed().startswith(name)


def test_progress_names_lines_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    with display.Display(False, 1, 0) as shown:
        shown.finished(_job(NAMES[2]), {"ops": 0, "host_s": 1.0})
    assert capsys.readouterr().err.startswith(f"{NAMES[2]} finished")


def _job(label: str) -> Job:
    job = Job.__new__(Job)
    object.__setattr__(job, "label", label)
    return job
