# SPDX-License-Identifier: BSD-3-Clause
"""The feature bits of CPUID by name (AMD 25481), spelled as in /proc/cpuinfo: the function, register and bit of each, and the
instructions that a bit stands for (sets of the decoder, Zydis).
"""

from __future__ import annotations

from dataclasses import dataclass

REGISTERS = ("eax", "ebx", "ecx", "edx")


@dataclass(frozen=True)
class Bit:
    function: int
    register: str
    bit: int


def _bits(function: int, register: str, **numbers: int) -> dict[str, Bit]:
    return {name.lstrip("_"): Bit(function, register, n) for name, n in numbers.items()}


BITS: dict[str, Bit] = {
    **_bits(1, "edx", fpu=0, vme=1, de=2, pse=3, tsc=4, msr=5, pae=6, mce=7, cx8=8, apic=9, sep=11, mtrr=12, pge=13,
            mca=14, cmov=15, pat=16, pse36=17, clflush=19, mmx=23, fxsr=24, sse=25, sse2=26, ht=28),
    **_bits(1, "ecx", pni=0, pclmulqdq=1, monitor=3, ssse3=9, fma=12, cx16=13, sse4_1=19, sse4_2=20, movbe=22, popcnt=23,
            aes=25, xsave=26, avx=28, f16c=29, rdrand=30),
    **_bits(0x80000001, "ecx", lahf_lm=0, cmp_legacy=1, svm=2, extapic=3, cr8_legacy=4, abm=5, sse4a=6, misalignsse=7,
            _3dnowprefetch=8, osvw=9, ibs=10, xop=11, skinit=12, wdt=13, lwp=15, fma4=16, nodeid_msr=19, tbm=21),
    **_bits(0x80000001, "edx", syscall=11, nx=20, mmxext=22, fxsr_opt=25, pdpe1gb=26, rdtscp=27, lm=29, _3dnowext=30,
            _3dnow=31),
    **_bits(0x80000007, "edx", ts=0, ttp=3, htc=4, stc=5, _100mhzsteps=6, hw_pstate=7, invariant_tsc=8),
}
# Fn8000_0001 EDX repeats these of Fn0000_0001 EDX.
REPEATED = ("fpu", "vme", "de", "pse", "tsc", "msr", "pae", "mce", "cx8", "apic", "mtrr", "pge", "mca", "cmov", "pat",
            "pse36", "mmx", "fxsr")
