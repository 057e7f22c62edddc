// SPDX-License-Identifier: BSD-3-Clause
// Translations for debuggers, which change no core.
#include <gtest/gtest.h>

#include "cpu/x86/flat_machine.hh"
#include "cpu/x86/mmu/paging.hh"

namespace moscope::x86::test {
namespace {

/// The tables of another address space, which maps 1 GiB at 3 GiB.
constexpr Addr kOther = FlatMachine::kTables + 0x8000;
constexpr Addr kMapped = Addr{3} << 30;

struct PeekTranslation : testing::Test {
    FlatMachine m;
    PhysAddr at{0};

    PeekTranslation() {
        m.long_mode();
        m.write<std::uint64_t>(kOther, (kOther + 0x1000) | 7);
        m.write<std::uint64_t>(kOther + 0x1000 + 8 * 3, 0x87);
    }
};

TEST_F(PeekTranslation, AnotherAddressSpaceIsReadWithoutAChangeOfTheCore) {
    const Core &core = m.core;
    ASSERT_TRUE(peek_translation(core, kOther, kMapped + 0x1234, at));
    EXPECT_EQ(at.value, 0x1234u);
    ASSERT_TRUE(peek_translation(core, kMapped + 0x1234, at));
    EXPECT_EQ(at.value, kMapped + 0x1234);
    EXPECT_EQ(core.cr3, FlatMachine::kTables);
}

TEST_F(PeekTranslation, AnAddressThatIsNotMappedLeavesTheFaultOfTheCore) {
    m.core.fault = {exc_gp, true, 8, 0};
    EXPECT_FALSE(peek_translation(m.core, kOther, 0x1234, at));
    EXPECT_EQ(m.core.fault.vector, exc_gp);
    EXPECT_EQ(m.core.fault.error, 8u);
}

TEST_F(PeekTranslation, TheTablesKeepTheirAccessedBits) {
    ASSERT_TRUE(peek_translation(m.core, kOther, kMapped, at));
    EXPECT_EQ(m.read<std::uint64_t>(kOther), (kOther + 0x1000) | 7);
}

} // namespace
} // namespace moscope::x86::test
