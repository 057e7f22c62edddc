// SPDX-License-Identifier: BSD-3-Clause
// Placement in memory, each limit from both sides; the entry state as a core's state.
#include "board/loader/fixture.hh"

namespace moscope::loader::testing {
namespace {

using Memory = Loader;

TEST_F(Memory, ARangeIsUsableUpToItsLastByte) {
    EXPECT_TRUE(memory.usable(kMiB, 47 * kMiB));
    EXPECT_FALSE(memory.usable(kMiB, 47 * kMiB + 1));
    EXPECT_FALSE(memory.usable(kMiB - 1, 2));
    EXPECT_FALSE(memory.usable(0xe0000, 16)); // reserved
    EXPECT_FALSE(memory.usable(2 * kMiB, ~std::uint64_t{0}));
}

TEST_F(Memory, TheHighestPlaceRespectsBothLimitsAndTheAlignment) {
    EXPECT_EQ(memory.highest(100, 4096, 0, PhysMap::kTop - 1), 48 * kMiB - 4096);
    EXPECT_EQ(memory.highest(4096, 4096, 0, 48 * kMiB - 2), 48 * kMiB - 8192);
    EXPECT_EQ(memory.highest(4096, 4096, 0, 48 * kMiB - 1), 48 * kMiB - 4096);
    EXPECT_EQ(memory.highest(4096, 4096, 48 * kMiB - 4095, PhysMap::kTop - 1), 0u);
    EXPECT_EQ(memory.highest(4096, 4096, 0, ~Addr{0}), PhysMap::kTop + 16 * kMiB - 4096);
    EXPECT_EQ(memory.highest(48 * kMiB, 4096, 0, ~Addr{0}), 0u);
}

TEST_F(Memory, LowMemoryEndsBelowItsLimit) {
    const std::uint64_t room = BootMemory::kLowEnd - BootMemory::kLow;
    EXPECT_EQ(memory.take_low(room - 1, 1), BootMemory::kLow);
    EXPECT_EQ(memory.take_low(1, 1), BootMemory::kLowEnd - 1);
    EXPECT_THROW(memory.take_low(1, 1), UserError);
}

TEST_F(Memory, WritesAboveTheHoleLandInTheDramBehindIt) {
    const Image bytes{1, 2, 3};
    memory.write(PhysMap::kTop, bytes, "test");
    EXPECT_EQ(std::to_integer<int>(dram.base()[48 * kMiB + 2]), 3);
    EXPECT_THROW(memory.write(PhysMap::kTop - 1, bytes, "test"), UserError);
}

TEST_F(Memory, ACoreTakesOverTheEntryState) {
    x86::State s;
    s.r[x86::rcx] = 5;
    s.halted = true;
    EntryState e = identity_64bit(memory, 0x1234);
    e.rsi = 77;
    apply(e, s);
    EXPECT_EQ(s.rip, 0x1234u);
    EXPECT_EQ(s.r[x86::rsi], 77u);
    EXPECT_EQ(s.r[x86::rcx], 0u);
    EXPECT_TRUE(s.code64() && s.paging() && !s.halted);
    EXPECT_EQ(s.mode(), x86::Mode::code64);
    apply(flat_32bit(memory, 0x100000), s);
    EXPECT_EQ(s.mode(), x86::Mode::code32);
    EXPECT_FALSE(s.paging() || s.long_mode());
    EXPECT_EQ(s.stack_bytes(), 4u);
}

} // namespace
} // namespace moscope::loader::testing
