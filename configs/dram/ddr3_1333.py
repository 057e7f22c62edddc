# SPDX-License-Identifier: BSD-3-Clause
"""DDR3-1333 (PC3-10600) on a Magny-Cours die. Timings: JEDEC JESD79-3, speed bin DDR3-1333H (9-9-9), parts of 2 Gb
with rows of 1 KB."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _family10h import DDR3_NODE
from _jedec import at_least, resolve

dram = {
    "standard": "DDR3-1333",
    "tCK_fs": 1_500_000,
    "timing_fs": resolve(
        1.5,
        {
            "tCL": 9,
            "tCWL": 7,
            "tRCD": 13.5,
            "tRP": 13.5,
            "tRAS": 36.0,
            "tRC": 49.5,
            "tWR": 15.0,
            "tWTR": at_least(4, 7.5, 1.5),
            "tRTP": at_least(4, 7.5, 1.5),
            "tRRD": at_least(4, 6.0, 1.5),
            "tFAW": 30.0,
            "tCCD": 4,
            "tRTRS": 1,  # not JEDEC's: one clock for the strobes to change hands
            "tRTW": 2,  # read to write is tCL + tCCD + 2 - tCWL
            "tREFI": 7800.0,
            "tRFC": 160.0,
        },
    ),
    **DDR3_NODE,
}

if __name__ == "__main__":
    json.dump(dram, sys.stdout, indent=1)
