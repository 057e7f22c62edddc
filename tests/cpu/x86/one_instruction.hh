// SPDX-License-Identifier: BSD-3-Clause
// A single instruction, decoded, lowered and carried out on a core without the loop around it: what an instruction
// function did and which fault it raised stay visible.
#pragma once

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include <vector>

#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/flat_machine.hh"

namespace moscope::x86::test {

inline constexpr int kDone = -1;

class OneInstruction : public FlatMachine {
  public:
    OneInstruction() { long_mode(); }

    /// Carries it out; the vector of its fault, or kDone.
    int run(std::initializer_list<int> bytes) {
        std::array<std::uint8_t, 15> code{};
        std::copy(bytes.begin(), bytes.end(), code.begin());
        static constexpr ZydisMachineMode kModes[] = {ZYDIS_MACHINE_MODE_REAL_16, ZYDIS_MACHINE_MODE_LEGACY_32,
                                                      ZYDIS_MACHINE_MODE_LONG_64};
        static constexpr ZydisStackWidth kStacks[] = {ZYDIS_STACK_WIDTH_16, ZYDIS_STACK_WIDTH_32, ZYDIS_STACK_WIDTH_64};
        const auto mode = static_cast<unsigned>(core.mode());
        ZydisDecoder decoder;
        ZydisDecoderInit(&decoder, kModes[mode], kStacks[mode]);
        Insn insn;
        insn.mode = core.mode();
        EXPECT_TRUE(ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code.data(), code.size(), &insn.z, insn.op)));
        op = Op{};
        fill_operands(insn, op);
        if (!lower(insn, op)) {
            ADD_FAILURE() << "no group has " << ZydisMnemonicGetString(insn.z.mnemonic);
            return kDone;
        }
        return op.exec(core, &op) == &op + 1 ? kDone : core.fault.vector;
    }

    Op op; ///< the last one

    /// 32-bit protected mode, or real mode, without paging.
    void legacy_mode(bool is_protected) {
        core.cr0 = cr0::et | cr0::ne | (is_protected ? cr0::pe : 0);
        core.efer = 0;
        for (unsigned s = 0; s < kSegs; ++s) {
            core.seg[s].limit = is_protected ? 0xffffffff : 0xffff;
            core.seg[s].attr =
                static_cast<std::uint16_t>(s == cs ? (is_protected ? 0xc09b : 0x9b) : (is_protected ? 0xc093 : 0x93));
            core.seg[s].selector = static_cast<std::uint16_t>(is_protected ? (s == cs ? 8 : 16) : 0);
        }
        core.flush_tlb(true);
        core.mode_changed();
    }
};

} // namespace moscope::x86::test
