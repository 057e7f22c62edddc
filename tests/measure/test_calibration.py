# SPDX-License-Identifier: BSD-3-Clause
"""docs/calibration.md names every fitted value, and claims no other."""

import re

from moscope import paths
from moscope.config import load_machine, walk


def test_the_calibration_table_lists_exactly_the_fitted_parameters() -> None:
    fitted = {row.key for row in walk(load_machine("opteron48")) if "fitted" in row.source}
    text = (paths.root() / "docs" / "calibration.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"^\| `([a-z0-9_.]+)` \|", text, re.MULTILINE))
    assert listed == fitted
