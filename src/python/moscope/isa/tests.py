# SPDX-License-Identifier: BSD-3-Clause
"""The parts of the instruction set that cannot be compared with the host's own processor, and the tests that they have instead.

For each instruction, the engine's table gives the reasons why some forms are kept apart (src/cpu/x86/decode/isa.cc). This module
lists the tests for each such reason. tests/cpu/x86/test_isa_table.py compares the two: each test exists and names its instructions,
nothing is listed that has no such forms, and forms that are kept apart but not listed here are reported as untested.
"""

from dataclasses import dataclass

RARE = "tests/cpu/x86/test_rare_instructions.cc"
SYSTEM = "tests/cpu/x86/test_system_instructions.cc"
TRANSFERS = "tests/cpu/x86/test_control_transfers.cc"


@dataclass(frozen=True)
class Tested:
    """A test of those forms of the `mnemonics` that are kept apart for this reason."""

    reason: str
    mnemonics: tuple[str, ...]
    file: str
    test: str  # SUITE.NAME of the test

    @property
    def name(self) -> str:
        return f"{self.file}::{self.test}"


def _tested(reason: str, mnemonics: str, file: str, test: str) -> Tested:
    return Tested(reason, tuple(mnemonics.split()), file, test)


TESTS = [
    _tested("system", "arpl", RARE, "RareInstructionsOfLegacyMode.ArplRaisesTheRequestedPrivilegeAndReportsItInZf"),
    _tested("system", "bound into", RARE, "RareInstructionsOfLegacyMode.BoundInterruptsOnlyOutOfBoundsAndIntoOnlyOnOverflow"),
    _tested("system", "lds les lfs lgs lss", RARE, "RareInstructionsOfLegacyMode.FarPointersAreLoadedWithTheirSegment"),
    _tested("system", "clts lmsw smsw", RARE, "RareInstructions.ClearOfTheTaskSwitchFlagAndTheMachineStatusWord"),
    _tested("system", "lgdt sgdt", RARE, "RareInstructions.TheGlobalDescriptorTableIsReadAndWrittenWhole"),
    _tested("system", "lidt sidt", SYSTEM, "SystemInstructions.DescriptorTablesAreReadAndWrittenWhole"),
    _tested("system", "int1 int3 ud0 ud1", RARE, "RareInstructions.Int1AndInt3AreTrapsAndUd0AndUd1AreFaults"),
    _tested("system", "insb insd outsb outsd", RARE, "RareInstructions.PortStringsOfEachSize"),
    _tested("system", "insw outsw", SYSTEM, "SystemInstructions.RepeatedPortStringsMoveAllElements"),
    _tested("system", "in", SYSTEM, "SystemInstructions.TheIoPermissionMapDecidesForUsers"),
    _tested("system", "out ud2", SYSTEM, "SystemInstructions.IoPrivilegeLevelThreeOpensAllPorts"),
    _tested("system", "invd wbinvd", RARE, "RareInstructions.InvdAndWbinvdAreForTheKernelOnlyAndLeaveMemoryUnchanged"),
    _tested("system", "invlpg", SYSTEM, "SystemInstructions.FlushesOfATranslationAreSeenAtOnce"),
    _tested("system", "rdpmc", RARE, "RareInstructions.RdpmcReadsFourCountersAndIsForUsersOnlyWhereCr4SaysSo"),
    _tested("system", "rdtsc wrmsr", SYSTEM, "SystemInstructions.TheTimeStampCounterCanBeSetAndForbidden"),
    _tested("system", "rdtscp", SYSTEM, "SystemInstructions.RdtscpReadsTheAuxiliaryRegister"),
    _tested("system", "rdmsr", SYSTEM, "SystemInstructions.AddressesInRegistersMustBeCanonical"),
    _tested("system", "cpuid", SYSTEM, "SystemInstructions.CpuidCarriesTheApicIdentifierAndWhetherTheApicIsOn"),
    _tested("system", "swapgs", SYSTEM, "SystemInstructions.SwapgsExchangesTheBases"),
    _tested("system", "ltr", SYSTEM, "SystemInstructions.TheTaskRegisterBecomesBusyAndIsNotLoadedTwice"),
    _tested("system", "lldt", SYSTEM, "SystemInstructions.ALocalDescriptorTableIsUsed"),
    _tested("system", "lar lsl verr verw", SYSTEM, "SystemInstructions.LarLslVerrAndVerwAnswerInZf"),
    _tested("system", "rsm", SYSTEM, "SystemInstructions.Ud2RsmAndInstructionsThatAreMaskedOrTooNewAreUndefined"),
    _tested("system", "str sldt", RARE, "RareInstructions.StrAndSldtStoreSelectorsInMemoryAlwaysSixteenBits"),
    _tested("system", "hlt", "tests/cpu/x86/test_interrupts.cc", "Interrupts.WakeACoreThatHaltedRightAfterSti"),
    _tested("system", "int", TRANSFERS, "SoftwareInterrupt.NeedsAGateOfItsPrivilege"),
    _tested("system", "iretq", TRANSFERS, "InterruptReturn.GoesToUserCodeWithItsStackAndFlags"),
    _tested("system", "iret iretd", RARE, "RareInstructionsOfRealMode.IretAndIretdTakeFramesOfTheirSizes"),
    _tested("system", "syscall sysret", TRANSFERS, "SystemCall.SavesAndMasksAsTheRegistersSay"),
    _tested("system", "sysenter sysexit", TRANSFERS, "SystemEnter.WorksInProtectedMode"),
    _tested("system", "monitor mwait", "tests/board/test_functional.cc", "Waiting.MwaitDoesNotSleepIfTheLineWasWrittenSinceMonitor"),
    _tested("far", "call ret", TRANSFERS, "FarTransfer.ACallGateSwitchesStacksInLongMode"),
    _tested("far", "jmp", TRANSFERS, "FarTransfer.AJumpToInnerCodeIsRefused"),
    _tested("control register", "mov", SYSTEM, "SystemInstructions.Cr8IsTheApicsPriority"),
    _tested("segment register", "mov", SYSTEM, "SystemInstructions.SegmentLoadsCheckTypeAndPrivilege"),
    _tested("segment register", "push pop", RARE, "RareInstructions.SegmentRegistersArePushedAndPoppedAsStackWords"),
    _tested("16-bit near branch", "jmp", RARE, "CutBranches.JmpGoesToTheLow16BitsOfItsTarget"),
    _tested("16-bit near branch", "call ret", RARE, "CutBranches.CallPushesAndRetPopsTwoBytes"),
    _tested("16-bit near branch", "jo jno jb jnb jz jnz jbe jnbe js jns jp jnp jl jnl jle jnle loop loope loopne jecxz", RARE,
            "CutBranches.ConditionalAndLoopBranchesCutTheirTargetOnlyIfTaken"),
    _tested("16-bit near branch", "jcxz", RARE, "CutBranches.JcxzAndJmpInProtectedModeCutTheirTargetToo"),
]


def tests_of(mnemonic: str, reason: str) -> list[str]:
    return [t.name for t in TESTS if t.reason == reason and mnemonic in t.mnemonics]
