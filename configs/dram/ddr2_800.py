# SPDX-License-Identifier: BSD-3-Clause
"""DDR2-800 (PC2-6400) on a family 10h node. Timings: JEDEC JESD79-2, speed bin DDR2-800D (5-5-5), parts of 1 Gb with
rows of 1 KB."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _ddr2 import ddr2

dram = ddr2("DDR2-800", 2.5, trcd=12.5, trp=12.5, trc=57.5, tfaw=35.0)

if __name__ == "__main__":
    json.dump(dram, sys.stdout, indent=1)
