# SPDX-License-Identifier: BSD-3-Clause
"""The enumerations whose names stand in run directories, and constants (src/schema), for tables, figures and the report.

A checkout alone suffices: the folder of the package is added to the path if Python does not find the package.
"""

import importlib.util
import sys
from pathlib import Path

if importlib.util.find_spec("moscope") is None:
    sys.path.append(str(Path(__file__).resolve().parent.parent / "src" / "python"))

from moscope.schema.constants import FS_PER_MS, FS_PER_NS, FS_PER_S, FS_PER_US, LINE
from moscope.schema.enumerations import DEVICE, MISS_CLASS, OLDER, PERMISSION, SEGMENT, SHARED, SIZE, SPIN, TIME_KIND, WAIT, WRITES

# Miss classes, and all that lines are waited for (miss classes and spinning), in the order of stacked bars and legends.
CLASSES = MISS_CLASS.ranked
WAITS = WAIT.ranked

__all__ = ["CLASSES", "DEVICE", "FS_PER_MS", "FS_PER_NS", "FS_PER_S", "FS_PER_US", "LINE", "MISS_CLASS", "OLDER", "PERMISSION", "SEGMENT",
           "SHARED", "SIZE", "SPIN", "TIME_KIND", "WAIT", "WAITS", "WRITES"]
