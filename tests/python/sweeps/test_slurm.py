# SPDX-License-Identifier: BSD-3-Clause
"""A sweep on a Slurm of two nodes' daemons on this machine, one of which is killed on the way."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import slurm_cluster
from pyarrow import parquet

from moscope import paths

pytestmark = [pytest.mark.long,
              pytest.mark.skipif(bool(slurm_cluster.lacking()) or os.geteuid() != 0, reason="no slurmctld, slurmd and munge, or not root")]
SWEEP = """job = "protocol check"
[fixed]
machine = "small"
ops = 400000
[axes]
protocol = ["MSI", "MOESI_HTAssist"]
seed = [1, 2, 3]
"""


def swept(folder: Path, file: Path, kill_after: int, timeout: int) -> dict[str, Any]:
    """What the sweep answers. The daemon of n2 is killed once `kill_after` points are finished and it has a job."""
    with slurm_cluster.Cluster(folder / "slurm") as cluster:
        env = {**cluster.environment, "PYTHONPATH": str(paths.root() / "src" / "python")}
        command = [sys.executable, "-P", "-m", "moscope", "sweep", str(file), "--executor", "slurm", "--jobs", "4", "--json",
                   "--out", "out"]
        started = subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        limit = time.monotonic() + timeout / 2

        def ready() -> bool:
            finished = len(list((folder / "out" / "points").glob("*/point.json")))
            return finished >= kill_after and set(cluster.running().values()) == {"n1", "n2"}

        while not ready() and started.poll() is None and time.monotonic() < limit:
            time.sleep(0.2)
        assert ready(), cluster.log()[-3000:]
        cluster.kill_node("n2")
        out, err = started.communicate(timeout=timeout)
        log = cluster.log()
    assert started.returncode == 0, err
    assert "Nodes n2 not responding" in log or "n2" in log and "DOWN" in log, log[-3000:]
    return dict(json.loads(out))


def test_a_sweep_on_slurm_loses_nothing_when_a_node_dies(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SWEEP)
    document = swept(tmp_path, tmp_path / "s.toml", kill_after=0, timeout=900)
    assert (document["points"], document["done"], document["failed"]) == (6, 6, [])
    rows = parquet.read_table(document["table"]).to_pylist()
    assert [(r["protocol"], r["seed"], r["status"], r["violations"]) for r in rows] == [
        (p, s, "done", 0) for p in ("MSI", "MOESI_HTAssist") for s in (1, 2, 3)]


def test_the_topology_study_on_slurm_loses_nothing_when_a_node_dies(tmp_path: Path) -> None:
    document = swept(tmp_path, paths.root() / "examples" / "topology_study.toml", kill_after=20, timeout=5400)
    assert (document["points"], document["done"], document["failed"]) == (96, 96, [])
    rows = parquet.read_table(document["table"]).to_pylist()
    axes = ("kernel", "cores", "topology", "workload", "probe_filter.enabled")
    assert len({tuple(r[a] for a in axes) for r in rows}) == 96
    assert all(r["status"] == "done" and r["ops"] > 0 for r in rows)
