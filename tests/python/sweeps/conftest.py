# SPDX-License-Identifier: BSD-3-Clause
"""Makes the helpers of this folder importable."""

import sys
from pathlib import Path

if (here := str(Path(__file__).parent)) not in sys.path:
    sys.path.insert(0, here)
