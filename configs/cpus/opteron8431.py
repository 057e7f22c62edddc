# SPDX-License-Identifier: BSD-3-Clause
"""AMD Opteron 8431 ("Istanbul", six cores, socket F), the processor of the MOSBENCH machine.

Sources: B is AMD 31116 (BIOS and kernel developer's guide, family 10h), C is AMD 25481 (CPUID), x are published listings of
/proc/cpuinfo and CPUID of Istanbul parts, P is the MOSBENCH paper. Caches, cores per chip and clock are the machine's.
"""

import runpy
from pathlib import Path

from moscope.config import Count
from moscope.config.cpu import Processor, Tlb, Tlbs

FAMILY = runpy.run_path(str(Path(__file__).with_name("_family10h.py")))

BASIC = ("fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 ht pni monitor "
         "cx16 popcnt")
EXTENDED = ("syscall nx mmxext fxsr_opt pdpe1gb rdtscp lm lahf_lm cmp_legacy extapic abm sse4a misalignsse "
            "3dnowprefetch osvw wdt")
POWER = "hw_pstate invariant_tsc"

processor = Processor(
    brand="Six-Core AMD Opteron(tm) Processor 8431",
    family=Count(16, "x"),
    model=Count(8, "x"),
    stepping=Count(0, "x"),
    features=dict.fromkeys(f"{BASIC} {EXTENDED} {POWER}".split(), "B, x"),
    masked={
        "svm": "virtual machines inside the guest are not modelled",
        "skinit": "belongs to SVM",
        "ibs": "instruction-based sampling is not modelled; the simulator's own accounting does its work",
        "3dnow": "no program of the last ten years uses 3DNow!; PREFETCH and PREFETCHW stay (3dnowprefetch)",
        "3dnowext": "as 3dnow",
        "cr8_legacy": "LOCK MOV CR0 for CR8 outside 64-bit mode, which no system that runs here uses",
        "ts": "no temperatures",
        "ttp": "no temperatures",
        "htc": "no temperatures",
        "stc": "no temperatures",
        "100mhzsteps": "one P-state only",
    },
    tlbs=Tlbs(
        l1d=Tlb(48, None, "x: 48 entries, fully associative"),
        l1i=Tlb(32, None, "x: 32 entries, fully associative"),
        l1d_large=Tlb(48, None, "x"),
        l1i_large=Tlb(16, None, "x"),
        l2d=Tlb(512, 4, "x"),
        l2i=Tlb(512, 4, "x"),
        l2d_large=Tlb(128, 2, "x"),
        l1d_huge=Tlb(48, None, "B"),
        l2d_huge=Tlb(16, 8, "B"),
    ),
    monitor=(64, 64, 3, 0),  # C: lines of 64 bytes, MWAIT's interrupt-break extension, no C-states
    physical_bits=Count(48, "B"),
    linear_bits=Count(48, "B"),
    performance=Count(3, "B: 128-bit SSE, MOVU"),
    msrs=FAMILY["MSRS"],
)
