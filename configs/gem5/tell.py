# SPDX-License-Identifier: BSD-3-Clause
"""What this gem5 is, for moscope/gem5/binary.py (gem5 24.0's own --build-info fails). Run by gem5, without arguments."""

import json

import _m5.core
from m5.defines import buildEnv

print("moscope-gem5: is: " + json.dumps({
    "version": _m5.core.gem5Version,
    "protocol": str(buildEnv.get("PROTOCOL", "none")),
    "x86": bool(buildEnv.get("USE_X86_ISA", False)),
}), flush=True)
