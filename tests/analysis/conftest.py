# SPDX-License-Identifier: BSD-3-Clause
"""Makes `analysis` and the helpers of this folder importable, and one synthetic run with its report for all tests."""

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
