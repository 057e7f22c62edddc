# SPDX-License-Identifier: BSD-3-Clause
"""AMD Opteron 6174 ("Magny-Cours", two dies of six cores in a package, socket G34). Its dies are of the generation of the
Opteron 8431's, from which all but the identity comes. A chip of the machine is a die, and each is shown as a processor of
its own: how a package counts its dies (nodeid_msr) is masked.

Sources: as of `opteron8431`; x are AMD's product data and published CPUID listings of this part.
"""

import dataclasses
import runpy
from pathlib import Path

from moscope.config import Count

OPTERON8431 = runpy.run_path(str(Path(__file__).with_name("opteron8431.py")))["processor"]

processor = dataclasses.replace(
    OPTERON8431,
    brand="AMD Opteron(tm) Processor 6174",
    model=Count(9, "x"),
    stepping=Count(1, "x"),
    masked={**OPTERON8431.masked, "nodeid_msr": "a die is shown as a processor of its own"},
)
