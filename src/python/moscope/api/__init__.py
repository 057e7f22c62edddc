# SPDX-License-Identifier: BSD-3-Clause
"""The Python interface, which `moscope` exports (docs/python.md): each function does the same as the command with its name and returns
results with Arrow tables."""

from moscope.api.latencies import Latency, latency
from moscope.api.machine import Machine, machines
from moscope.api.progress import Progress
from moscope.api.protocols import Check, Verification, check, verify
from moscope.api.runs import Run, open_run, run
from moscope.api.sweeps import Sweep, sweep
from moscope.api.traces import Trace, trace

__all__ = ["Check", "Latency", "Machine", "Progress", "Run", "Sweep", "Trace", "Verification", "check", "latency", "machines", "open_run",
           "run", "sweep", "trace", "verify"]
