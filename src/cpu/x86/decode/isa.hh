// SPDX-License-Identifier: BSD-3-Clause
// The instructions that a processor has. The decoder knows all of today's x86, and CPUID (AMD 25481) selects from it.
// An instruction that CPUID does not promise raises #UD. One that it promises and the model lacks stops the run.
#pragma once

#include <bitset>
#include <set>
#include <string>
#include <vector>

#include <Zydis/Zydis.h>

#include "cpu/x86/system/cpuid.hh"

namespace moscope::x86 {

/// The CPUID bit on which an instruction set depends, named as in /proc/cpuinfo.
struct IsaFeature {
    const char *name; ///< "": every processor has it
    std::uint32_t function = 0;
    std::uint32_t CpuidLeaf::*word = nullptr;
    unsigned bit = 0;
};

/// Why native tests (tests/cpu/x86/native) cannot compare an instruction with these operands with the host's own in
/// user mode; null: they can. They leave out nothing else.
const char *not_beside_the_host(const ZydisDecodedInstruction &, const ZydisDecodedOperand *);

/// The CPUID bit of an instruction set. Null: the set is newer than the model knows, or another vendor's.
const IsaFeature *feature_of(ZydisISASet);

/// The instruction sets that a processor promises.
class Promises {
  public:
    explicit Promises(const CpuModel &);
    bool operator()(const ZydisDecodedInstruction &z) const {
        const bool legacy =
            z.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY || z.encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW;
        return legacy && sets_[z.meta.isa_set];
    }

  private:
    std::bitset<ZYDIS_ISA_SET_MAX_VALUE + 1> sets_;
};

/// One mnemonic of one instruction set, over all modes, prefixes and operands that the decoder accepts.
struct IsaRow {
    std::string mnemonic, set, feature; ///< feature "": every processor has it; "-": none that the model knows
    std::string group;                  ///< the instruction group that has it; empty: none
    bool promised = false;
    unsigned forms = 0;               ///< mnemonic, operand kinds and sizes, mode
    unsigned compared = 0;            ///< forms that native tests compare with the host's own
    std::set<std::string> apart;      ///< why they do not compare others
    std::vector<std::string> lacking; ///< bytes of an example of each form that no group takes
};

/// Every legacy-encoded instruction that the decoder knows, by mnemonic.
std::vector<IsaRow> isa_table(const CpuModel &);

} // namespace moscope::x86
