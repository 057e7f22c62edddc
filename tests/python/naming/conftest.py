# SPDX-License-Identifier: BSD-3-Clause
"""Makes the folder's own helper module `synthetic` importable."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
