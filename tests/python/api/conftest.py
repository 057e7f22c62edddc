# SPDX-License-Identifier: BSD-3-Clause
"""Finds the made-up run directories of tests/analysis."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "analysis"))
