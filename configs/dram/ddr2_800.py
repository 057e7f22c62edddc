# SPDX-License-Identifier: BSD-3-Clause
"""DDR2-800 (PC2-6400) on a family 10h node. Timings: JEDEC JESD79-2, speed bin DDR2-800D (5-5-5), parts of 1 Gb with
rows of 1 KB."""

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from _family10h import DDR2_NODE
from _jedec import at_least, resolve

BURST_CLOCKS = 2  # 64 bytes on the 128 bits of ganged channels: a burst of four

dram = {
    "standard": "DDR2-800",
    "tCK_fs": 2_500_000,
    "timing_fs": resolve(
        2.5,
        {
            "tCL": 5,
            "tCWL": 4,  # read latency less one
            "tRCD": 12.5,
            "tRP": 12.5,
            "tRAS": 45.0,
            "tRC": 57.5,
            "tWR": 15.0,
            "tWTR": 7.5,
            "tRTP": BURST_CLOCKS - 2 + at_least(2, 7.5, 2.5),  # JESD79-2 counts it from the middle of the burst
            "tRRD": 7.5,
            "tFAW": 35.0,
            "tCCD": 2,
            "tRTRS": 1,  # not JEDEC's: one clock for the strobes to change hands
            "tRTW": 1,  # read to write is BL/2 + 2 clocks, and data follow the write one clock sooner
            "tREFI": 7800.0,
            "tRFC": 127.5,
        },
    ),
    **DDR2_NODE,
}

if __name__ == "__main__":
    json.dump(dram, sys.stdout, indent=1)
