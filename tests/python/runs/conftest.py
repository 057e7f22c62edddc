# SPDX-License-Identifier: BSD-3-Clause
"""Points to measure, and plans for them."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from fake_machine import MS

from moscope.cli import Shared
from moscope.runs import options


@pytest.fixture
def point() -> options.Point:
    return options.Point(workload="fake", family="fake", operation="turns", kernel="distro", cores=2, command="/run/moscope/fake",
                         warmup=MS, window=2 * MS, windows=3, detail="table", memory_per_node="512MiB")


@pytest.fixture
def plan(tmp_path: Path, point: options.Point) -> Callable[..., options.Plan]:
    """A plan for points with these core counts."""
    from moscope.config import load_machine

    machine = load_machine("opteron48")

    def make(*cores: int, **changes: Any) -> options.Plan:
        made = options.Plan(machine, "opteron48", [], 1, tmp_path / "out", [replace(point, cores=n) for n in cores or (2,)])
        return replace(made, **changes)

    return make


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    return Shared(out=tmp_path / "out", quiet=True)
