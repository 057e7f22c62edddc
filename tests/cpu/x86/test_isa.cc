// SPDX-License-Identifier: BSD-3-Clause
// What CPUID does not promise is undefined, whether the model has it or not; what it promises and the model lacks ends
// the run.
#include <gtest/gtest.h>

#include "cpu/x86/decode/isa.hh"
#include "cpu/x86/system_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using test::SystemMachine;

namespace {

constexpr Addr kCode = 0x1000;

TEST(Isa, AnInstructionThatTheProcessorLacksIsUndefinedThoughTheModelHasIt) {
    SystemMachine with, without;
    without.model.leaves[{0x80000001, 0}].ecx &= ~(1u << 6); // SSE4a
    for (SystemMachine *m : {&with, &without}) {
        m->kernel64();
        m->code(kCode, {0x66, 0x0f, 0x79, 0xc1, 0xf4}); // extrq xmm0, xmm1; hlt
    }
    EXPECT_EQ(with.run(), Exit::halt);
    EXPECT_EQ(with.core.rip, kCode + 5);
    EXPECT_EQ(without.vector_taken(), exc_ud);
}

TEST(Isa, AnInstructionThatCpuidPromisesAndTheModelLacksEndsTheRun) {
    SystemMachine m;
    m.model.leaves[{1, 0}].ecx |= 1 << 9; // SSSE3
    m.kernel64();
    m.code(kCode, {0x90, 0x66, 0x0f, 0x38, 0x00, 0xc1}); // nop; pshufb xmm0, xmm1
    EXPECT_EQ(m.run(), Exit::unmodelled);
    EXPECT_EQ(m.core.rip, kCode + 1);
}

TEST(Isa, EveryInstructionThatTheFamilyPromisesIsImplemented) {
    for (const IsaRow &r : isa_table(test::family10h_model()))
        EXPECT_TRUE(!r.promised || r.lacking.empty()) << r.mnemonic << " " << (r.lacking.empty() ? "" : r.lacking[0]);
}

} // namespace
