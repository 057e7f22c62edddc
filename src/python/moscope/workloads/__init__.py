# SPDX-License-Identifier: BSD-3-Clause
"""The programs that the guest runs: one folder per family of workloads. `workloads/FAMILY` holds the C program and
`workload.py`, which registers the workloads that run it. `docs/workloads.md` describes them.

    find("counter-sloppy").command(cores=48)     the line to type at the guest's shell
    programs()                                   the programs that the initial file system carries
"""

from . import libraries
from .build import silent
from .registry import THIRD_OF_TICK, Workload, along, are_built, elsewhere, every, files, find, programs, register
from .results import Results
from .services import service

__all__ = ["THIRD_OF_TICK", "Results", "Workload", "along", "are_built", "elsewhere", "every", "files", "find", "libraries", "programs",
           "register", "service", "silent"]
