// SPDX-License-Identifier: BSD-3-Clause
// The store buffer on its own: it requests lines side by side and performs stores in program order.
#include <array>

#include <gtest/gtest.h>

#include "cpu/x86/timed/timed_machine.hh"

using namespace moscope;
using namespace moscope::x86;
using namespace moscope::x86::test;

namespace {

constexpr Addr kBase = 0x40000;
constexpr Tick kMiss = AmplePort::kMiss;

Addr line(unsigned i) { return kBase + i * kLineBytes; }

struct Stores : testing::Test {
    std::unique_ptr<StoreBuffer> buffer(unsigned most, unsigned entries = 32) {
        auto b = std::make_unique<StoreBuffer>(queue, "stores", port, entries, most);
        b->owner = this;
        b->on_drain = [](void *self, Tick t, const StoreBuffer::Entry &, const Access *brought) {
            static_cast<Stores *>(self)->left.push_back(t);
            static_cast<Stores *>(self)->brought.push_back(brought ? line_of(brought->addr.value) : 0);
        };
        b->on_access = [](void *, const Access &) {};
        return b;
    }
    /// One byte, `value`, into line i.
    void store(StoreBuffer &b, unsigned i, unsigned char value, Tick retired = 0) {
        b.push(line(i), &value, 1, retired, 0, line(i));
    }
    /// Stores of 1 and 2 to lines 0 and 1, of which the second comes first.
    std::unique_ptr<StoreBuffer> two_misses() {
        auto b = buffer(8);
        port.lose(line(0), 3 * kMiss);
        port.lose(line(1), kMiss);
        store(*b, 0, 1);
        store(*b, 1, 2);
        return b;
    }
    void lose(unsigned lines) {
        for (unsigned i = 0; i < lines; ++i)
            port.lose(line(i));
    }
    unsigned char at(unsigned i) const { return static_cast<unsigned char>(memory[line(i)]); }

    std::vector<std::byte> memory{2 * kBase};
    EventQueue queue;
    AmplePort port{queue, memory.data()};
    std::vector<Tick> left;    ///< when each store left the buffer
    std::vector<Addr> brought; ///< for each store, the line that it waited for; 0: the line was there
};

} // namespace

TEST_F(Stores, AHitCountsOnceThoughTheBufferHasLookedAheadAtItsLine) {
    for (const bool waits : {false, true}) {
        const auto b = buffer(8);
        std::uint64_t before = 0;
        for (const bool lines_are_known : {false, true}) {
            if (lines_are_known && waits)
                port.lose(line(0), 3 * kMiss);
            before = port.inline_hits;
            for (unsigned i = 0; i < 6; ++i)
                store(*b, i, 1);
            queue.run(queue.now() + 10 * kMiss);
        }
        EXPECT_EQ(port.inline_hits - before, waits ? 5u : 6u);
    }
}

TEST_F(Stores, LinesAreRequestedSideBySideUpToTheCoresLimitOfMisses) {
    for (const unsigned most : {1u, 4u, 8u}) {
        left.clear();
        const auto b = buffer(most);
        lose(8);
        const Tick begun = queue.now();
        for (unsigned i = 0; i < 8; ++i)
            store(*b, i, 1, begun);
        queue.run();
        ASSERT_EQ(left.size(), 8u);
        EXPECT_GE(left.back() - begun, 8 / most * kMiss) << most;
        EXPECT_LT(left.back() - begun, (8 / most + 1) * kMiss) << most;
    }
}

TEST_F(Stores, AreSeenInProgramOrderThoughTheirLinesArriveInAnother) {
    const auto b = two_misses();
    store(*b, 2, 3); // its line is here
    queue.run(2 * kMiss);
    EXPECT_EQ(port.asked, 2u);
    EXPECT_EQ(at(1), 0);
    EXPECT_EQ(at(2), 0);
    queue.run();
    EXPECT_EQ(at(0), 1);
    EXPECT_EQ(at(1), 2);
    EXPECT_EQ(at(2), 3);
    EXPECT_EQ(port.asked, 2u) << "the second line was kept";
    EXPECT_EQ(brought, (std::vector<Addr>{line(0), 0, 0})) << "only the oldest is waited for";
    EXPECT_TRUE(b->empty());
}

TEST_F(Stores, ALineThatIsLostBeforeItsStoresTurnIsAskedForAgain) {
    const auto b = two_misses();
    queue.run(2 * kMiss);
    port.lose(line(1));
    queue.run();
    EXPECT_EQ(port.asked, 3u);
    EXPECT_EQ(at(1), 2);
    EXPECT_EQ(left, (std::vector<Tick>{3 * kMiss, 4 * kMiss}));
    EXPECT_EQ(brought, (std::vector<Addr>{line(0), line(1)}));
}

TEST_F(Stores, NothingIsAskedForBeforeItsStoreHasRetired) {
    const auto b = buffer(8);
    lose(2);
    store(*b, 0, 1);
    store(*b, 1, 2, kMiss / 2);
    queue.run(kMiss / 2);
    EXPECT_EQ(port.asked, 1u);
    queue.run(kMiss / 2 + 1);
    EXPECT_EQ(port.asked, 2u);
    queue.run();
    EXPECT_EQ(left, (std::vector<Tick>{kMiss, kMiss + kMiss / 2}));
}

TEST_F(Stores, ToOneLineAskForItOnce) {
    const auto b = buffer(8);
    lose(2);
    for (unsigned char v = 1; v < 10; ++v)
        store(*b, v / 5, v);
    queue.run();
    EXPECT_EQ(port.asked, 2u);
    EXPECT_EQ(at(0), 4);
    EXPECT_EQ(at(1), 9);
}

TEST_F(Stores, TheBufferHoldsAsManyAsTheMachineSays) {
    for (const unsigned entries : {1u, 5u, 32u}) {
        left.clear();
        const auto b = buffer(1, entries);
        lose(entries);
        for (unsigned round = 0; round < 2; ++round) { // past the ring's end
            const Tick begun = queue.now();
            for (unsigned i = 0; i < entries; ++i) {
                EXPECT_FALSE(b->full()) << i << " of " << entries;
                store(*b, i, static_cast<unsigned char>(entries + round), begun);
            }
            EXPECT_TRUE(b->full());
            queue.run();
            EXPECT_TRUE(b->empty());
        }
        ASSERT_EQ(left.size(), 2 * entries);
        for (unsigned i = 0; i < entries; ++i)
            EXPECT_EQ(at(i), entries + 1);
    }
}

TEST_F(Stores, AnObserverSeesWhatTheCoreSeesTheYoungestStoreFirst) {
    const auto b = buffer(1);
    port.lose(line(0), 3 * kMiss);
    store(*b, 0, 1);
    const unsigned word = 0x0a0b0c0d;
    b->push(line(0) + 2, &word, 4, 0, 0, line(0) + 2);
    const unsigned char later = 9;
    b->push(line(0) + 3, &later, 1, 0, 0, line(0) + 3);
    std::array<std::byte, 4> seen{};
    seen.fill(std::byte{0xee});
    b->overlay(line(0) + 1, seen.data(), seen.size()); // bytes 1 to 4
    EXPECT_EQ(std::to_integer<int>(seen[0]), 0xee);
    EXPECT_EQ(std::to_integer<int>(seen[1]), 0x0d);
    EXPECT_EQ(std::to_integer<int>(seen[2]), 9);
    EXPECT_EQ(std::to_integer<int>(seen[3]), 0x0b);
    EXPECT_EQ(at(0), 0) << "memory has none of it yet";
}
