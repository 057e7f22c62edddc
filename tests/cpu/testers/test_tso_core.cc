// SPDX-License-Identifier: BSD-3-Clause
// The TSO core: forwarding, drains, fences; and litmus runs that show store buffering on a flat memory.
#include <gtest/gtest.h>

#include "cpu/testers/fake_memory.hh"
#include "cpu/testers/litmus.hh"

using namespace moscope;
using namespace moscope::testers;
using Kind = TsoOp::Kind;

namespace {

struct OneCore : ::testing::Test {
    EventQueue queue;
    FakeMemory memory{queue, 1, 4096};
    TsoCore core{queue, 0, memory.port(0), 1};
    bool finished = false;
    void run(std::initializer_list<TsoOp> program, unsigned drain_cycles = 0) {
        core.clear();
        for (const auto &op : program)
            core.add(op);
        core.context = this;
        core.on_finished = [](void *t, TsoCore &) { static_cast<OneCore *>(t)->finished = true; };
        finished = false;
        core.start(queue.now(), drain_cycles);
        queue.run();
        ASSERT_TRUE(finished);
    }
    std::uint32_t word(Addr a) const {
        std::uint32_t v;
        std::memcpy(&v, &memory.memory[a], 4);
        return v;
    }
};
using TsoCoreTest = OneCore;

TEST_F(TsoCoreTest, ALoadReadsTheYoungestStoreOfItsCoreFromTheBuffer) {
    run({{Kind::store, 0, PhysAddr(64), 1}, {Kind::store, 0, PhysAddr(64), 2}, {Kind::load, 0, PhysAddr(64), 0}}, 1000);
    EXPECT_EQ(core.reg(0), 2u);
    EXPECT_EQ(word(64), 2u);
    EXPECT_EQ(memory.performed, 2u); // the load sent no request
}

TEST_F(TsoCoreTest, MoreStoresThanTheBufferHoldsAllDrainInOrder) {
    core.clear();
    for (unsigned i = 0; i < TsoCore::kOps; ++i)
        core.add({Kind::store, 0, PhysAddr(64), i + 1});
    core.context = this;
    core.on_finished = [](void *t, TsoCore &) { static_cast<OneCore *>(t)->finished = true; };
    core.start(0, 50);
    queue.run();
    EXPECT_TRUE(finished);
    EXPECT_EQ(memory.performed, TsoCore::kOps);
    EXPECT_EQ(word(64), TsoCore::kOps);
}

TEST_F(TsoCoreTest, AFenceWaitsUntilStoresHaveDrained) {
    run({{Kind::store, 0, PhysAddr(64), 5}, {Kind::fence, 0, PhysAddr(), 0}, {Kind::load, 1, PhysAddr(64), 0}}, 100);
    EXPECT_EQ(core.reg(1), 5u);
    EXPECT_EQ(memory.performed, 2u); // the load found the buffer empty
}

TEST_F(TsoCoreTest, LockedOperationsReadAndWriteMemory) {
    run({{Kind::store, 0, PhysAddr(64), 5}, {Kind::swap, 2, PhysAddr(64), 7}, {Kind::add, 0, PhysAddr(64), 10}}, 30);
    EXPECT_EQ(core.reg(2), 5u);
    EXPECT_EQ(word(64), 17u);
}

TEST_F(TsoCoreTest, AnEmptyProgramEnds) { run({}); }

LitmusTest store_buffering(bool fences) {
    LitmusTest t;
    t.variables = 2;
    t.registers = 2;
    t.rounds = 300;
    for (unsigned i = 0; i < 2; ++i) {
        t.threads.push_back({{Kind::store, i, 0, 1}});
        if (fences)
            t.threads.back().push_back({Kind::fence, 0, 0, 0});
        t.threads.back().push_back({Kind::load, 1 - i, i, 0});
    }
    return t;
}

std::uint64_t both_zero(bool fences) {
    EventQueue queue;
    FakeMemory memory(queue, 4, 64 * 1024);
    Litmus litmus(queue, memory.ports(0, 4), {0x1000, 0x2000, 0x3000, 0x4000}, store_buffering(fences));
    litmus.start(0);
    queue.run();
    EXPECT_TRUE(litmus.finished());
    EXPECT_EQ(litmus.runs(), 600u); // two copies side by side
    std::uint64_t n = 0, all = 0;
    for (const auto &[values, count] : litmus.outcomes()) {
        all += count;
        EXPECT_EQ(values[2], 1u);
        EXPECT_EQ(values[3], 1u);
        if (values[0] == 0 && values[1] == 0)
            n += count;
    }
    EXPECT_EQ(all, litmus.runs());
    return n;
}

TEST(Litmus, StoreBufferingShowsWithoutFences) { EXPECT_GT(both_zero(false), 0u); }
TEST(Litmus, FencesTakeStoreBufferingAway) { EXPECT_EQ(both_zero(true), 0u); }

} // namespace
