# SPDX-License-Identifier: BSD-3-Clause
"""Runs the case of test_card_throughput.cc, which needs a machine, with `opteron48`."""

import json
import os
import subprocess
from pathlib import Path

from moscope import buildproto, paths
from moscope.config import elaborate, load_machine


def test_the_card_moves_frames_of_1500_bytes_both_ways_at_10_gbit_per_second(tmp_path: Path) -> None:
    machine = load_machine("opteron48", [])
    built = buildproto.ensure_protocol(str(machine.protocol))
    description = tmp_path / "machine.json"
    interface = json.loads(built.interface.read_text(encoding="utf-8"))
    description.write_text(json.dumps(elaborate(machine, interface)), encoding="utf-8")
    env = {**os.environ, "MOSCOPE_CARD_MACHINE": str(description), "MOSCOPE_CARD_LIBRARY": str(built.timing)}
    program = paths.build_dir() / "tests" / "board" / "test_card_throughput"
    got = subprocess.run([program], capture_output=True, text=True, timeout=300, env=env, check=False)
    assert got.returncode == 0, got.stdout + got.stderr
    assert "SKIPPED" not in got.stdout
    print(got.stdout)
