# SPDX-License-Identifier: BSD-3-Clause
"""Model-specific registers of family 10h that the model remembers without an effect, but for DEBUGCTL.BTF. Reset values are those that
firmware leaves behind. Sources: B is AMD 31116 (BIOS and kernel developer's guide, family 10h), A is AMD 24593 (architecture).

Time-stamp counter, APIC base, SYSENTER, SYSCALL, EFER, PAT and the FS and GS bases have effects and are not here; TOP_MEM, the
MTRRs and the P-state status get their values from the machine (src/cpu/x86/system/msr.cc)."""

from moscope.config.cpu import ALL, Msr

WORD = (1 << 32) - 1
ADDRESS = (1 << 48) - 1
BANKS = 6  # machine-check banks (B)

MACHINE_CHECK = (
    Msr(0x179, "MCG_CAP", "B: six banks, MCG_CTL", 0x100 | BANKS, 0),
    Msr(0x17A, "MCG_STATUS", "B", 0, 7),
    Msr(0x17B, "MCG_CTL", "B", 0, (1 << BANKS) - 1),
    *(Msr(0x400 + 4 * bank + i, f"MC{bank}_{name}", "B") for bank in range(BANKS)
      for i, name in enumerate(("CTL", "STATUS", "ADDR", "MISC"))),
    *(Msr(0xC0010044 + bank, f"MC{bank}_CTL_MASK", "B", 0, WORD) for bank in range(BANKS)),
)

MEMORY_TYPES = (
    Msr(0xFE, "MTRRcap", "B: eight ranges, fixed ones, write combining", 0x508, 0),
    *(Msr(0x200 + 2 * n, f"MTRRphysBase{n}", "B", 0, ADDRESS & ~0xF00) for n in range(8)),
    *(Msr(0x201 + 2 * n, f"MTRRphysMask{n}", "B", 0, ADDRESS & ~0x7FF) for n in range(8)),
    *(Msr(n, "MTRRfix", "B") for n in (0x250, 0x258, 0x259, *range(0x268, 0x270))),
    Msr(0x2FF, "MTRRdefType", "B", 0, 0xCFF),
    Msr(0xC0010010, "SYS_CFG", "B: MtrrFixDramEn, MtrrVarDramEn", 5 << 18, 0x7E0000),
    *(Msr(0xC0010016 + n, "IORR", "B", 0, ADDRESS) for n in range(4)),
    Msr(0xC001001A, "TOP_MEM", "B", 0, ADDRESS & ~0x7FFFFF),
    Msr(0xC001001D, "TOP_MEM2", "B", 0, ADDRESS & ~0x7FFFFF),
)

# Counting is not modelled: the counters keep what is written to them.
PERFORMANCE = (
    *(Msr(0xC0010000 + n, f"PERF_CTL{n}", "B", 0, 0x30F_FFFF_FFFF) for n in range(4)),
    *(Msr(0xC0010004 + n, f"PERF_CTR{n}", "B", 0, ADDRESS) for n in range(4)),
)

CONFIGURATION = (
    Msr(0x8B, "PATCH_LEVEL", "x: microcode of this stepping", 0x010000DA, 0),
    Msr(0x1D9, "DEBUGCTL", "A", 0, 0x3F),
    *(Msr(0x1DB + n, name, "A", 0, 0) for n, name in enumerate(("BR_FROM", "BR_TO", "LASTEXCP_FROM", "LASTEXCP_TO"))),
    Msr(0xC0010015, "HWCR", "B: the counter runs at the clock of P-state 0; INVD writes back", 1 << 24 | 1 << 4, WORD),
    Msr(0xC001001F, "NB_CFG", "B: APIC identifiers with the core's number in the low bits", 1 << 54),
    Msr(0xC0010055, "interrupt pending, C1E", "B: off", 0, WORD),
    Msr(0xC0010058, "MMIO configuration base", "B: on, for 64 buses from E0000000h, where the board has it", 0xE0000019, 0),
    Msr(0xC0010061, "P-state limit", "B: P-state 0 only", 0, 0),
    Msr(0xC0010062, "P-state control", "B", 0, 7),
    Msr(0xC0010063, "P-state status", "B", 0, 0),
    Msr(0xC0010070, "COFVID control", "B"),
    Msr(0xC0010074, "CPU watchdog timer", "B: off", 0, 0x7F),
    Msr(0xC0010111, "SMM_BASE", "B", 0x30000, WORD),
    Msr(0xC0010112, "SMM_ADDR", "B", 0, ADDRESS),
    Msr(0xC0010113, "SMM_MASK", "B", 0, ADDRESS),
    Msr(0xC0010114, "VM_CR", "B: SVM disabled and locked", 1 << 4 | 1 << 3, 0),
    Msr(0xC0010140, "OSVW_ID_LENGTH", "B: four identifiers", 4, 0xFFFF),
    Msr(0xC0010141, "OSVW_STATUS", "chosen: the model has none of the errata", 0, ALL),
    *(Msr(number, name, "B") for number, name in (
        (0xC0011020, "LS_CFG"), (0xC0011021, "IC_CFG"), (0xC0011022, "DC_CFG"), (0xC0011023, "BU_CFG"),
        (0xC0011028, "FP_CFG"), (0xC0011029, "DE_CFG"), (0xC001102A, "BU_CFG2"))),
)

MSRS = (*MACHINE_CHECK, *MEMORY_TYPES, *PERFORMANCE, *CONFIGURATION)
