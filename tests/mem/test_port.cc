// SPDX-License-Identifier: BSD-3-Clause
// The slots in which a port remembers lines that hit: which of them two lines share.
#include <gtest/gtest.h>

#include "mem/port.hh"

using namespace moscope;

namespace {

struct Slots : testing::Test {
    /// Whether a port remembers `first` after a fill of both.
    bool both(Addr first, Addr second) {
        Port port;
        for (const Addr line : {first, second})
            port.fill(false, line, Port::right_load, &touched, &byte);
        return port.remembers(first) && port.remembers(second);
    }
    Tick touched = 0;
    std::byte byte{};
};

constexpr Addr kBlock = Addr{Port::kSlots} * kLineBytes;

} // namespace

TEST_F(Slots, LinesOfABlockDoNotShareASlot) {
    for (Addr line = kLineBytes; line < kBlock; line += kLineBytes)
        EXPECT_TRUE(both(0, line)) << line;
}

TEST_F(Slots, LinesAtTheSameOffsetOfBlocksDoNotShareASlot) {
    for (Addr block = 1; block < 64; ++block)
        EXPECT_TRUE(both(0x12340, 0x12340 + block * kBlock)) << block;
}

TEST_F(Slots, AHitNeedsItsLineAndItsRight) {
    Port port;
    port.fill(false, 0x1000, Port::right_load, &touched, &byte);
    EXPECT_TRUE(port.hit(0x1000, Port::right_load, 5));
    EXPECT_EQ(touched, 5);
    EXPECT_FALSE(port.hit(0x1000, Port::right_store, 6));
    EXPECT_FALSE(port.fetch_hit(0x1000, 6));
    EXPECT_FALSE(port.hit(0x1040, Port::right_load, 6));
    port.fill(false, 0x1000, Port::right_load | Port::right_store, &touched, &byte);
    EXPECT_TRUE(port.hit(0x1000, Port::right_store, 7));
    EXPECT_TRUE(port.hit(0x1000, Port::right_load, 7));
    port.forget(0x1000);
    EXPECT_FALSE(port.hit(0x1000, Port::right_load, 8));
}
