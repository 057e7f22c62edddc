// SPDX-License-Identifier: BSD-3-Clause
// The transmit FIFO: full by what it holds and by what is reserved, and when it will have room.
#include <gtest/gtest.h>

#include "dev/nic/out_fifo.hh"

using namespace moscope;
using namespace moscope::dev;

TEST(OutFifo, IsFullByFramesAndReservations) {
    OutFifo fifo(1000);
    fifo.reserve(600);
    EXPECT_FALSE(fifo.full());
    EXPECT_EQ(fifo.room(), 400u);
    fifo.push(500, 10);
    EXPECT_TRUE(fifo.full());
    EXPECT_EQ(fifo.room(), 0u);
    fifo.release(600);
    EXPECT_EQ(fifo.room(), 500u);
    fifo.push(900, 20); // exceeds the end
    EXPECT_TRUE(fifo.full());
    fifo.advance(9);
    EXPECT_EQ(fifo.frames(), 2u);
    fifo.advance(10);
    EXPECT_EQ(fifo.room(), 100u);
    fifo.advance(20);
    EXPECT_EQ(fifo.room(), 1000u);
}

TEST(OutFifo, HasRoomWhenEnoughFramesHaveLeft) {
    OutFifo fifo(1000);
    for (Tick leaves = 1; leaves <= 10; ++leaves)
        fifo.push(100, leaves);
    EXPECT_EQ(fifo.has_room(100), 1);
    EXPECT_EQ(fifo.has_room(250), 3);
    EXPECT_EQ(fifo.has_room(5000), 5);              // half of it is all that can be asked for
    EXPECT_EQ(OutFifo(1000).has_room(100), kNever); // an empty FIFO frees nothing
}
