# SPDX-License-Identifier: BSD-3-Clause
"""Latencies, traces and random tests give the recorded results, bit for bit. A change that is meant to alter them records new
digests: CONTRIBUTING.md says how."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import digests

RECORDED: dict[str, str] = json.loads((Path(__file__).parent / "digests.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", list(RECORDED))
def test_results_are_those_recorded(name: str) -> None:
    assert digests.short_digest(name) == RECORDED[name]
