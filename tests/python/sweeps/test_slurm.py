# SPDX-License-Identifier: BSD-3-Clause
"""A sweep on a Slurm of two nodes' daemons on this machine, one of which is killed on the way."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

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


def test_a_sweep_on_slurm_loses_nothing_when_a_node_dies(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(SWEEP)
    with slurm_cluster.Cluster(tmp_path / "slurm") as cluster:
        env = {**cluster.environment, "PYTHONPATH": str(paths.root() / "src" / "python")}
        command = [sys.executable, "-P", "-m", "moscope", "sweep", "s.toml", "--executor", "slurm", "--jobs", "4", "--json", "--out", "out"]
        started = subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        limit = time.monotonic() + 240
        while len(set(cluster.running().values())) < 2 and time.monotonic() < limit:
            time.sleep(0.2)
        assert set(cluster.running().values()) == {"n1", "n2"}, cluster.log()[-3000:]
        cluster.kill_node("n2")
        out, err = started.communicate(timeout=900)
        log = cluster.log()
    assert started.returncode == 0, err
    document = json.loads(out)
    assert (document["points"], document["done"], document["failed"]) == (6, 6, [])
    rows = parquet.read_table(document["table"]).to_pylist()
    assert [(r["protocol"], r["seed"], r["status"], r["violations"]) for r in rows] == [
        (p, s, "done", 0) for p in ("MSI", "MOESI_HTAssist") for s in (1, 2, 3)]
    assert "Nodes n2 not responding" in log or "n2" in log and "DOWN" in log, log[-3000:]
