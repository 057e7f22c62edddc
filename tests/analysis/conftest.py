# SPDX-License-Identifier: BSD-3-Clause
"""Tests of analysis/ (this folder is not called so, or pytest would take one for the other). Makes `analysis` and this folder's helpers importable; one whole synthetic run with its report for all tests."""

import sys
from pathlib import Path

import pytest

from moscope import paths

HERE = Path(__file__).parent
for folder in (paths.root(), HERE):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two kernels on 1 and 48 cores, and its report."""
    import synthetic_run
    from analysis.report import write_report

    folder = synthetic_run.write_run(tmp_path_factory.mktemp("whole") / "run", cores=(1, 48), kernels=("distro", "pk"))
    write_report(folder)
    return folder
