# SPDX-License-Identifier: BSD-3-Clause
"""DDR2 on a family 10h node: what the speed bins with CL-tRCD-tRP of 5-5-5 share. Timings: JEDEC JESD79-2, parts of 1 Gb
with rows of 1 KB; nanoseconds where they are floats, clocks where they are integers."""

from typing import Any

from _family10h import DDR2_NODE
from _jedec import at_least, resolve

BURST_CLOCKS = 2  # 64 bytes on the 128 bits of ganged channels: a burst of four


def ddr2(standard: str, tck_ns: float, *, trcd: float, trp: float, trc: float, tfaw: float) -> dict[str, Any]:
    """The description of one standard."""
    timing = {
        "tCL": 5,
        "tCWL": 4,  # read latency less one
        "tRCD": trcd,
        "tRP": trp,
        "tRAS": 45.0,
        "tRC": trc,
        "tWR": 15.0,
        "tWTR": 7.5,
        "tRTP": BURST_CLOCKS - 2 + at_least(2, 7.5, tck_ns),  # JESD79-2 counts it from the middle of the burst
        "tRRD": 7.5,
        "tFAW": tfaw,
        "tCCD": 2,
        "tRTRS": 1,  # not JEDEC's: one clock for the strobes to change hands
        "tRTW": 1,  # read to write is BL/2 + 2 clocks, and data follow the write one clock sooner
        "tREFI": 7800.0,
        "tRFC": 127.5,
    }
    return {"standard": standard, "tCK_fs": round(tck_ns * 10**6), "timing_fs": resolve(tck_ns, timing), **DDR2_NODE}
