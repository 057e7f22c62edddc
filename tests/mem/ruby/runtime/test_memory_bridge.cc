// SPDX-License-Identifier: BSD-3-Clause
// Requests of a home on their way to DRAM that has no room.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "mem/ruby/runtime/memory_bridge.hh"

using namespace moscope;
using namespace moscope::ruby;

namespace {

/// DRAM with room for a given number of reads and writes, which complete when the test says so.
struct Dram {
    unsigned room[2] = {1, 1};
    std::vector<std::pair<Addr, bool>> taken;
    bool can_accept(bool write) const { return room[write] > 0; }
    void push(Addr line, bool write, Tick, void *m) {
        --room[write];
        taken.emplace_back(line, write);
        messages.push_back(m);
    }
    std::vector<void *> messages;
};

struct Bridged : testing::Test {
    EventQueue queue;
    Dram dram;
    MessageBuffer requests, responses;
    MemoryBridge<Dram> bridge{queue, "bridge", dram, {}, requests, responses, nullptr, false};

    void send(Addr addr, bool write, Tick at) {
        auto *m = message_pool().make<MemoryMsg>();
        m->addr = addr;
        m->stamp = at;
        m->Type = write ? MemoryRequestType_MEMORY_WB : MemoryRequestType_MEMORY_READ;
        requests.enqueue(m, at);
    }
    void TearDown() override {
        for (void *m : dram.messages)
            bridge.done(m, queue.now());
        while (!responses.isEmpty())
            message_pool().free(responses.pop(responses.head_tick()));
    }
};

using Taken = std::vector<std::pair<Addr, bool>>;

TEST_F(Bridged, ReadsPassWritesThatFindNoRoom) {
    for (Addr line = 0; line < 3; ++line)
        send(64 * line, true, 10);
    send(640, false, 20);
    queue.run();
    EXPECT_EQ(dram.taken, (Taken{{0, true}, {640, false}}));
    EXPECT_EQ(bridge.held(), 4u);
    dram.room[1] = 5;
    bridge.schedule_no_later_than(30);
    queue.run();
    EXPECT_EQ(dram.taken, (Taken{{0, true}, {640, false}, {64, true}, {128, true}})) << "in their order";
}

TEST_F(Bridged, AReadOfALineWhoseWriteFindsNoRoomIsAnsweredAtOnce) {
    send(0, true, 10);
    send(64, true, 10);
    send(64, false, 20);
    queue.run();
    EXPECT_EQ(dram.taken, (Taken{{0, true}}));
    ASSERT_TRUE(responses.isReady(20));
    EXPECT_EQ(static_cast<MemoryMsg *>(responses.peek())->Type, MemoryRequestType_MEMORY_READ);
    dram.room[1] = 1;
    bridge.schedule_no_later_than(30);
    queue.run();
    send(64, false, 40); // the write is with DRAM now, which answers from its own queue
    queue.run();
    EXPECT_EQ(dram.taken, (Taken{{0, true}, {64, true}, {64, false}}));
}

} // namespace
