# SPDX-License-Identifier: BSD-3-Clause
"""An episode of a run as a history: every row an access, with its functions and times."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

from moscope import jsonio
from moscope.errors import UserError
from moscope.schema.enumerations import SEGMENT
from moscope.stepping.episode import DEVICE, find, history_of

ROW = {**dict.fromkeys(SEGMENT.names, 0), "issued": 5_000_000, "latency": 90_000_000, "exposed": 80_000_000, "line": 0x10000,
       "name": "counters", "name_kind": "data", "va": 0x401008, "pc": 0x401100, "function": "add", "address_space": 0x1000,
       "process": "falseshare", "writer_pc": 0x401200, "writer_function": "main", "hops": 2, "core": 0, "writer": 1, "kind": "store",
       "class": "false_sharing",
       "supplier": "L1Cache", "supplier_number": 1, "supplier_chip": 0, "supplier_state": "M", "walk": False, "user": True,
       "buffer_wait": False, "probes": 1}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    (folder / "points").mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({"config": {"machine": "small", "set": []}, "points": []}), encoding="utf-8")
    for cores in (1, 4):
        point = folder / "points" / f"falseshare-distro-{cores}"
        point.mkdir()
        (point / "point.json").write_text(json.dumps({"cores": cores}), encoding="utf-8")
        rows = [{**ROW, "queue": 90_000_000, "issued": 5_000_000 + 10**8 * n, "core": n % 2} for n in range(5 * cores)]
        rows.append({**rows[0], "name": "other", "writer": None, "writer_pc": 0, "writer_function": None})
        rows.append({**rows[0], "name": "ring", "writer": 254, "writer_pc": 0, "writer_function": None})
        parquet.write_table(pyarrow.Table.from_pylist(rows), point / "episodes.parquet")
    return folder


def test_the_history_follows_its_schema_and_has_an_access_for_each_row(run: Path) -> None:
    document = history_of(find(run, "counters"))
    jsonio.validate(document)
    accesses: list[dict[str, Any]] = document["trace"]["accesses"]
    assert len(accesses) == 20  # of the point with the most cores
    assert all(sum(s["fs"] for s in a["segments"]) == a["done"] - a["issued"] for a in accesses)
    assert accesses[0]["text"] == "c0 st in add, last written by core 1 in main"
    assert accesses[0]["address"] == "0x10008"
    assert document["trace"]["messages"] == document["changes"] == []


def test_the_home_of_a_line_is_that_of_the_runs_memory(run: Path) -> None:
    """A run gives nodes as much memory as the workload needs, not as much as the machine has."""
    points = [{"workload": "falseshare", "kernel": "distro", "cores": cores, "memory_per_node": size}
              for cores, size in ((1, "32KiB"), (4, "64KiB"))]
    config = {"machine": "small", "set": [], "points": points}
    (run / "run.json").write_text(json.dumps({"config": config, "points": []}), encoding="utf-8")
    for cores in (1, 4):
        point = {"workload": "falseshare", "kernel": "distro", "cores": cores}
        (run / f"points/falseshare-distro-{cores}/point.json").write_text(json.dumps(point), encoding="utf-8")
    for folder, home in ((run, 1), (run / "points/falseshare-distro-1", 2)):
        document = history_of(find(folder, "counters"))
        assert document["lines"][0]["home"] == home
        assert {a["home"] for a in document["trace"]["accesses"]} == {home}


def test_a_point_can_be_named_and_the_hottest_is_the_default(run: Path) -> None:
    assert find(run / "points" / "falseshare-distro-1", None).point == "falseshare-distro-1"
    assert find(run, None).name == "counters"
    assert history_of(find(run, "other"))["trace"]["accesses"][0]["text"] == "c0 st in add"


def test_an_unknown_name_or_folder_is_a_user_error(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="such as counters"):
        find(run, "counter")
    with pytest.raises(UserError, match=f"--run: {tmp_path}: .*expected the folder of a run"):
        find(tmp_path, None)


@pytest.mark.parametrize("text, said", [("[]", "is damaged: expected a JSON object"), ('{"config": null}', "its config has no machine"),
                                        ('{"config": {}}', "its config has no machine"),
                                        ('{"config": {"machine": null}}', "its config has no machine"), ("{}", "is a run on gem5"),
                                        ('{"config": 5}', "run.json: its config: expected an object"),
                                        ('{"config": {"points": [5]}}', "its config.points: expected a list of objects")])
def test_a_run_without_a_machine_is_a_user_error(text: str, said: str, run: Path) -> None:
    (run / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(UserError, match=said):
        find(run, None)


def test_a_file_with_other_columns_is_a_user_error(run: Path) -> None:
    file = run / "points" / "falseshare-distro-1" / "episodes.parquet"
    parquet.write_table(parquet.read_table(file).drop_columns(["name_kind"]), file)
    with pytest.raises(UserError, match="episodes.parquet: has no column name_kind: expected the file that a run wrote"):
        find(run, None)


def test_a_column_of_another_type_is_a_user_error(run: Path) -> None:
    file = run / "points" / "falseshare-distro-1" / "episodes.parquet"
    table = parquet.read_table(file)
    parquet.write_table(table.set_column(table.column_names.index("issued"), "issued", table["issued"].cast("string")), file)
    with pytest.raises(UserError, match='episodes.parquet: column "issued" holds text, not whole numbers: expected the file that a run'):
        find(run, None)


def test_the_command_writes_the_page_of_an_episode(
        moscope: Callable[..., subprocess.CompletedProcess[str]], run: Path, tmp_path: Path) -> None:
    got = moscope("step", "--run", str(run), "--line", "other", "--html", "page.html", "--json")
    assert got.returncode == 0, got.stderr
    assert json.loads(got.stdout)["accesses"][0]["line"] == "other"
    assert "last written" not in (tmp_path / "page.html").read_text(encoding="utf-8").split("</title>")[0]


def test_a_device_that_wrote_is_called_a_device(run: Path) -> None:
    (access,) = history_of(find(run, "ring"))["trace"]["accesses"]
    assert access["text"] == "c0 st in add, last written by a device"
    assert access["run"]["writer"] == DEVICE
