// SPDX-License-Identifier: BSD-3-Clause
// Messages, their accounts, sets of destinations, and buffers with stalled messages.
#include <gtest/gtest.h>

#include "mem/ruby/runtime/message_buffer.hh"
#include "mem/ruby/runtime/slicc_util.hh"

using namespace moscope;
using namespace moscope::ruby;

namespace {

struct TestMessage : Message {
    NetDest Destination;
    int value = 0;
};

NodeMap map_of(unsigned caches, unsigned homes) {
    NodeMap m;
    m.base[MachineType_L1Cache] = 0;
    m.count[MachineType_L1Cache] = static_cast<NodeIndex>(caches);
    m.base[MachineType_Directory] = static_cast<NodeIndex>(caches);
    m.count[MachineType_Directory] = static_cast<NodeIndex>(homes);
    m.total = caches + homes;
    for (unsigned i = 0; i < m.total; ++i)
        m.id[i] = i < caches ? MachineID{MachineType_L1Cache, static_cast<NodeID>(i)}
                             : MachineID{MachineType_Directory, static_cast<NodeID>(i - caches)};
    return m;
}

TEST(Message, SegmentsOfAPathAddUpToTheTimeAccounted) {
    Message m;
    m.path = {};
    m.stamp = 100;
    m.account(Segment::link, 130);
    m.account(Segment::queue, 130);
    m.account(Segment::dram, 200);
    m.account(Segment::link, 210);
    EXPECT_EQ(m.path.total(), 110);
    EXPECT_EQ(m.path[Segment::link], 40);
    EXPECT_EQ(m.path[Segment::dram], 70);
}

TEST(MessagePool, ACloneIsIndependentAndHasANumberOfItsOwn) {
    const NodeMap map = map_of(4, 1);
    NodeMap::current = &map;
    auto &pool = message_pool();
    const auto live = pool.live();
    auto *a = pool.make<TestMessage>();
    a->value = 5;
    a->dest_offset =
        static_cast<std::uint16_t>(reinterpret_cast<char *>(&a->Destination) - reinterpret_cast<char *>(a));
    a->Destination.add({MachineType_L1Cache, 3});
    auto *b = static_cast<TestMessage *>(pool.clone(a));
    b->destination().clear();
    EXPECT_EQ(b->value, 5);
    EXPECT_NE(a->uid, b->uid);
    EXPECT_TRUE(a->Destination.isElement({MachineType_L1Cache, 3}));
    EXPECT_TRUE(b->Destination.isEmpty());
    pool.free(a);
    pool.free(b);
    EXPECT_EQ(pool.live(), live);
    NodeMap::current = nullptr;
}

TEST(NetDest, FollowsTheAlgebraOfSets) {
    const NodeMap map = map_of(48, 8);
    NodeMap::current = &map;
    NetDest a, b;
    a.broadcast(MachineType_L1Cache);
    EXPECT_EQ(a.count(), 48);
    b.add({MachineType_Directory, 7});
    b.add({MachineType_L1Cache, 47});
    EXPECT_FALSE(a.intersectionIsEmpty(b));
    EXPECT_FALSE(a.isSuperset(b));
    EXPECT_EQ(a.AND(b).count(), 1);
    EXPECT_EQ(a.OR(b).count(), 49);
    EXPECT_EQ(b.smallestElement(MachineType_Directory), (MachineID{MachineType_Directory, 7}));
    a.removeNetDest(b);
    EXPECT_EQ(a.count(), 47);
    a.clear();
    EXPECT_THROW(a.smallestElement(), ProtocolError);
    NodeMap::current = nullptr;
}

struct Buffered : testing::Test {
    MessageBuffer buffer;
    void TearDown() override {
        while (!buffer.isEmpty())
            message_pool().free(buffer.pop(buffer.head_tick()));
    }
    void put(int value, Tick arrival, Addr line = 0) {
        auto *m = message_pool().make<TestMessage>();
        m->value = value;
        m->line = line;
        m->stamp = arrival;
        buffer.enqueue(m, arrival);
    }
    int take(Tick now) {
        auto *m = static_cast<TestMessage *>(buffer.pop(now));
        const int v = m->value;
        EXPECT_EQ(m->path[Segment::queue], now - (m->stamp - m->path.total()));
        message_pool().free(m);
        return v;
    }
};

TEST_F(Buffered, AMessageIsReadyFromItsArrivalOn) {
    put(1, 10);
    EXPECT_FALSE(buffer.isReady(9));
    EXPECT_TRUE(buffer.isReady(10));
}

TEST_F(Buffered, StalledMessagesComeBackBeforeYoungerOnesInTheirOrder) {
    for (int i = 1; i <= 3; ++i)
        put(i, i, 64);
    put(4, 4, 128);
    for (int i = 0; i < 3; ++i)
        buffer.stall(64);
    EXPECT_EQ(buffer.getStallMapSize(), 1); // lines, as in gem5
    EXPECT_EQ(buffer.getSize(9), 1);        // without stalled messages
    static_assert(intToTick(2) == 2000);    // picoseconds
    EXPECT_EQ(buffer.held(), 4);
    EXPECT_TRUE(buffer.hasStalledMsg(64));
    EXPECT_FALSE(buffer.wake(128));
    EXPECT_TRUE(buffer.wake(64));
    for (int i = 1; i <= 4; ++i)
        EXPECT_EQ(take(9), i);
}

TEST_F(Buffered, WakingALineLeavesTheStalledMessagesOfOtherLinesInTheirOrder) {
    for (int i = 1; i <= 6; ++i) {
        put(i, i);
        buffer.stall(i == 2 || i == 4 ? 64 : 128);
    }
    EXPECT_TRUE(buffer.wake(64));
    for (int i : {2, 4})
        EXPECT_EQ(take(9), i);
    EXPECT_FALSE(buffer.hasStalledMsg(64));
    EXPECT_EQ(buffer.getStallMapSize(), 1);
    EXPECT_TRUE(buffer.wake(128));
    for (int i : {1, 3, 5, 6})
        EXPECT_EQ(take(9), i);
    EXPECT_TRUE(buffer.isStallMapEmpty());
}

TEST_F(Buffered, RecyclingPutsTheHeadBehindWhatIsDueEarlier) {
    put(1, 1);
    put(2, 2);
    buffer.recycle(2, 12);
    EXPECT_EQ(take(2), 2);
    EXPECT_FALSE(buffer.isReady(11));
    EXPECT_EQ(take(12), 1);
}

TEST_F(Buffered, ABoundedBufferCountsWaitingAndStalledMessages) {
    buffer.capacity = 2;
    put(1, 1, 64);
    EXPECT_TRUE(buffer.areNSlotsAvailable(1, 0));
    EXPECT_FALSE(buffer.areNSlotsAvailable(2, 0));
    put(2, 2, 64);
    buffer.stall(64);
    EXPECT_FALSE(buffer.areNSlotsAvailable(1, 0));
    buffer.wake_all();
}

TEST(WriteMask, CountsAndCombinesBytes) {
    WriteMask a, b;
    a.setMask(4, 8);
    EXPECT_EQ(a.count(), 8);
    EXPECT_TRUE(a.getMask(4, 8));
    EXPECT_FALSE(a.getMask(3, 2));
    EXPECT_EQ(a.firstBitSet(true), 4);
    b.setInvertedMask(a);
    EXPECT_FALSE(a.isOverlap(b));
    b.orMask(a);
    EXPECT_TRUE(b.isFull());
    EXPECT_EQ(b.count(63), 1);
    EXPECT_EQ(b.count(b.getBlockSize()), 0);
}

} // namespace
