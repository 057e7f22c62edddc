# SPDX-License-Identifier: BSD-3-Clause
"""DDR2-667 (PC2-5300) on a family 10h node. Timings: JEDEC JESD79-2, speed bin DDR2-667D (5-5-5), parts of 1 Gb with
rows of 1 KB. This is the fastest memory that the M4985 board's lists name, and what opteron48 is fitted with."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _ddr2 import ddr2

dram = ddr2("DDR2-667", 3.0, trcd=15.0, trp=15.0, trc=60.0, tfaw=37.5)

if __name__ == "__main__":
    json.dump(dram, sys.stdout, indent=1)
