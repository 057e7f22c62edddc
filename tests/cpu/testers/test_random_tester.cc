// SPDX-License-Identifier: BSD-3-Clause
// The random tester on a correct memory, and on memories with one fault each.
#include <gtest/gtest.h>

#include "cpu/testers/fake_memory.hh"
#include "cpu/testers/random_tester.hh"

using namespace moscope;
using namespace moscope::testers;

namespace {

struct Bench {
    EventQueue queue;
    FakeMemory memory{queue, 6, 64 * 1024};
    std::vector<Addr> lines;
    std::unique_ptr<RandomTester> tester;

    explicit Bench(std::uint64_t ops = 30'000, std::uint64_t seed = 1,
                   unsigned in_flight = RandomTesterParams{}.in_flight) {
        for (unsigned i = 0; i < 8; ++i)
            lines.push_back(Addr{0x1000} + i * kLineBytes);
        RandomTesterParams p;
        p.ops = ops;
        p.seed = seed;
        p.in_flight = in_flight;
        p.inline_hits = false;
        tester = std::make_unique<RandomTester>(queue, memory.ports(0, 4), memory.ports(4, 2), lines, p);
        tester->start(0);
    }
    void run() { queue.run(); }
    std::string first() const { return tester->violations().empty() ? "" : tester->violations()[0]; }
};

TEST(RandomTester, FindsNothingWrongWithAMemoryThatIsRight) {
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
        Bench b(30'000, seed);
        b.run();
        EXPECT_EQ(b.first(), "");
        EXPECT_TRUE(b.tester->finished());
        EXPECT_EQ(b.tester->counts().finished, 30'000u);
        for (unsigned i = 0; i < b.lines.size(); ++i)
            b.tester->check_final(i, &b.memory.memory[b.lines[i]]);
        EXPECT_EQ(b.first(), "");
    }
}

TEST(RandomTester, MakesEveryKindOfAccess) {
    Bench b;
    b.run();
    const auto &n = b.tester->counts();
    for (unsigned k = 0; k < kAccessKinds; ++k)
        EXPECT_GT(n.by_kind[k], 100u) << kind_name(static_cast<AccessKind>(k));
    EXPECT_GT(n.device_reads, 100u);
    EXPECT_GT(n.device_writes, 100u);
    EXPECT_GT(n.checked_loads, 15'000u);
}

/// The tester reports a memory with this fault, with this text.
void expect_report(FakeMemory::Fault fault, const char *text = "") {
    Bench b;
    b.memory.fault = fault;
    b.run();
    EXPECT_FALSE(b.tester->violations().empty());
    EXPECT_NE(b.first().find(text), std::string::npos) << b.first();
}

TEST(RandomTester, NoticesALoadThatReturnsAnOutdatedValue) {
    expect_report(FakeMemory::Fault::stale_load, "; expected ");
}

TEST(RandomTester, NoticesAStoreThatIsLost) { expect_report(FakeMemory::Fault::lost_store); }

TEST(RandomTester, NoticesALockedOperationThatSawAnOlderValue) { expect_report(FakeMemory::Fault::torn_rmw, "rmw"); }

TEST(RandomTester, NoticesAStoreThatChangesItsNeighbours) { expect_report(FakeMemory::Fault::neighbour); }

TEST(RandomTester, DoesNotFinishWhileAnAccessIsMissing) {
    Bench b;
    b.memory.fault = FakeMemory::Fault::lost_access;
    b.run();
    EXPECT_FALSE(b.tester->finished());
}

TEST(RandomTester, NoticesWrongBytesAtTheEnd) {
    Bench b(5'000);
    b.run();
    const Location &l = b.tester->reference().at(0);
    b.memory.memory[l.addr] ^= std::byte{1};
    b.tester->check_final(0, &b.memory.memory[b.lines[0]]);
    EXPECT_NE(b.first().find("at the end"), std::string::npos);
}

TEST(RandomTester, SameSeedSameRun) {
    Bench a(10'000, 7), b(10'000, 7), c(10'000, 8);
    for (Bench *x : {&a, &b, &c})
        x->run();
    EXPECT_EQ(a.queue.now(), b.queue.now());
    EXPECT_EQ(a.memory.memory, b.memory.memory);
    EXPECT_NE(a.queue.now(), c.queue.now());
}

TEST(RandomTester, KeepsAsManyAccessesOfACoreInFlightAsItIsAskedTo) {
    for (const unsigned in_flight : {4u, 9u, kMostInFlight}) {
        Bench b(30'000, 1, in_flight);
        b.run();
        EXPECT_EQ(b.memory.most_of_one, in_flight);
        EXPECT_EQ(b.first(), "");
        EXPECT_TRUE(b.tester->finished());
    }
}

TEST(RandomTester, StopsAtTheLimitOfViolations) {
    Bench b;
    b.memory.fault = FakeMemory::Fault::stale_load;
    b.memory.one_in = 2;
    b.run();
    EXPECT_EQ(b.tester->violations().size(), RandomTesterParams{}.max_violations);
    EXPECT_TRUE(b.tester->finished());
    EXPECT_LT(b.tester->counts().finished, 30'000u);
}

} // namespace
