# SPDX-License-Identifier: BSD-3-Clause
"""What the guest runs: one file per family of workloads in this folder, each registers its workloads itself; their
programs are in the folder `workloads/FAMILY` of the checkout. `docs/workloads.md` describes them.

    find("counter-sloppy").command(cores=48)     the line to type at the guest's shell
    programs()                                   what its initial file system has to carry
"""

from .registry import Workload, every, find, programs, register
from .results import Results

__all__ = ["Results", "Workload", "every", "find", "programs", "register"]
