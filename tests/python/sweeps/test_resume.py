# SPDX-License-Identifier: BSD-3-Clause
"""A sweep that is killed goes on where it was, and nothing is computed twice."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from moscope import paths

SWEEP = """job = "trace"
fixed.script = "c0 ld A@n1; c2 st A@n1"
fixed.machine = "small"
axes.seed = [{seeds}]
"""
SEEDS = 100  # a point takes some 10 ms


def start(folder: Path) -> "subprocess.Popen[bytes]":
    def heeds_signals() -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # which a shell's background jobs, such as these tests may be, ignore

    env = {**os.environ, "PYTHONPATH": str(paths.root() / "src" / "python")}
    return subprocess.Popen([sys.executable, "-P", "-m", "moscope", "sweep", "s.toml", "--out", "out", "--json", "--jobs", "2"], cwd=folder,
                            env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=heeds_signals)


def made(folder: Path) -> dict[str, int]:
    return {p.parent.name: p.stat().st_mtime_ns for p in folder.glob("out/points/*/result.json")}


@pytest.mark.parametrize("sign", [signal.SIGKILL, signal.SIGINT])
def test_a_sweep_that_is_stopped_keeps_its_points_and_goes_on(tmp_path: Path, sign: signal.Signals) -> None:
    (tmp_path / "s.toml").write_text(SWEEP.format(seeds=", ".join(map(str, range(SEEDS)))))
    first = start(tmp_path)
    limit = time.monotonic() + 600
    while len(made(tmp_path)) < 3 and time.monotonic() < limit:
        time.sleep(0.02)
    first.send_signal(sign)
    first.wait(300)
    kept = made(tmp_path)
    assert 3 <= len(kept) < SEEDS, len(kept)
    second = start(tmp_path)
    document = json.loads(second.communicate(timeout=300)[0])
    after = made(tmp_path)
    assert (document["done"], len(after)) == (SEEDS, SEEDS)
    assert {name: after[name] for name in kept} == kept
    assert not any((tmp_path / "out" / "work").iterdir())
