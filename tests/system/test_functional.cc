// SPDX-License-Identifier: BSD-3-Clause
// The scheduler of functional mode around a core of its own: what it keeps tidy between slices.
#include <algorithm>

#include <gtest/gtest.h>

#include "cpu/x86/flat_machine.hh"
#include "system/functional.hh"

namespace moscope {
namespace {

TEST(Functional, CodeThatIsRewrittenAllTheTimeDoesNotPileUp) {
    x86::test::FlatMachine m;
    m.long_mode();
    // l: mov [rdi], al; call rdi; inc rcx; jmp l, and at rdi in another page: nop; ret
    m.code(0x3000, {0x90, 0xc3});
    m.code(0x1000, {0x88, 0x07, 0xff, 0xd7, 0x48, 0xff, 0xc1, 0xeb, 0xf7});
    m.core.r[x86::rdi] = 0x3000;
    m.core.r[x86::rax] = 0x90;
    EventQueue queue;
    FunctionalScheduler scheduler(queue, Clock{});
    scheduler.add_core(m.core);
    std::size_t most = 0;
    for (unsigned i = 0; i < 250; ++i) {
        EXPECT_EQ(scheduler.run([] { return true; }), FunctionalScheduler::Outcome::running);
        most = std::max(most, m.blocks.garbage());
    }
    EXPECT_GT(m.core.r[x86::rcx], 40'000u) << "times the code was written and run";
    EXPECT_GT(most, 5'000u);
    EXPECT_LT(most, 12'000u);
}

} // namespace
} // namespace moscope
