// SPDX-License-Identifier: BSD-3-Clause
// The virtio transport and its queues, with the entropy device as the simplest one behind them: negotiation,
// interrupts, event indices, indirect descriptors, and rings that no honest driver would write.
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "dev/virtio/virtio_driver.hh"
#include "dev/virtio/virtio_rng.hh"

using namespace moscope;
using namespace moscope::dev;
using namespace moscope::dev::test;

namespace {

constexpr std::uint64_t kPlain = VirtioPci::kVersion1;
constexpr std::uint64_t kAll = VirtioPci::kVersion1 | VirtioPci::kIndirect | VirtioPci::kEventIndex;
constexpr Addr kData = 0x100000, kTable = 0x40000;

struct Entropy {
    GuestBoard b;
    VirtioRng device{"rng", 42, b.dma, b.messages};
    Driver d{b, device};
};

} // namespace

TEST(VirtioPci, IsFoundAsAModernDevice) {
    Entropy e;
    EXPECT_EQ(e.d.config(0), 0x10441af4u);
    EXPECT_GE(e.d.config(pci::kRevision, 1u), 1u);
    for (const unsigned type : {1u, 2u, 3u, 4u, 5u})
        EXPECT_NE(e.d.capability[type], 0u) << type;
    EXPECT_NE(e.d.msix_capability, 0u);
    EXPECT_EQ(e.d.config(e.d.msix_capability + 2, 2u) & 0x7ff, 1u); // two vectors
    EXPECT_EQ(e.d.common(0x12, 2), 1u);
    EXPECT_EQ(e.d.common(0x18, 2), 256u);
}

TEST(VirtioPci, RefusesFeaturesThatItDidNotOfferOrVersionZero) {
    Entropy e;
    EXPECT_EQ(e.d.offered(), kAll);
    e.d.negotiate(kAll);
    EXPECT_TRUE(e.d.status() & VirtioPci::kFeaturesOk);
    e.d.negotiate(kAll | 1);
    EXPECT_FALSE(e.d.status() & VirtioPci::kFeaturesOk);
    e.d.negotiate(VirtioPci::kIndirect);
    EXPECT_FALSE(e.d.status() & VirtioPci::kFeaturesOk);
}

TEST(VirtioPci, QueueSizesArePowersOfTwoUpToTheLargest) {
    Entropy e;
    e.d.negotiate(kAll);
    for (const unsigned size : {0u, 3u, 512u, 0xffffu}) {
        e.d.common(0x18, size, 2);
        EXPECT_EQ(e.d.common(0x18, 2), 256u);
    }
    e.d.common(0x18, 16, 2);
    EXPECT_EQ(e.d.common(0x18, 2), 16u);
    e.d.common(0x16, 1, 2); // no such queue
    EXPECT_EQ(e.d.common(0x18, 2), 0u);
    e.d.common(0x16, 0, 2);
    e.d.common(0x1a, 2, 2); // no such vector
    EXPECT_EQ(e.d.common(0x1a, 2), 0xffffu);
}

TEST(VirtioPci, FillsBuffersAndRaisesIntxUntilTheStatusIsRead) {
    Entropy e;
    e.d.start(kPlain);
    e.d.add({{kData, 100, true}, {kData + 0x1000, 28, true}});
    e.d.notify();
    EXPECT_EQ(e.d.used_index(), 1);
    EXPECT_EQ(e.d.used_length(0), 128u);
    EXPECT_TRUE(e.b.lines.level);
    EXPECT_EQ(e.b.memory.read(0, e.d.region[3], 1), 1u);
    EXPECT_FALSE(e.b.lines.level);
    EXPECT_EQ(e.b.memory.read(0, e.d.region[3], 1), 0u);
    std::set<unsigned> values;
    for (unsigned i = 0; i < 100; ++i)
        values.insert(e.b.get<std::uint8_t>(kData + i));
    EXPECT_GT(values.size(), 50u);
    EXPECT_TRUE(e.b.messages.sent.empty());
}

TEST(VirtioPci, TheHostKnowsTheAreasOfARingFromItsStartToItsReset) {
    Entropy e;
    EXPECT_TRUE(e.b.host.rings().empty());
    e.d.start(kPlain);
    e.d.common(0x16, 0, 2);
    const std::uint64_t size = e.d.common(0x18, 2);
    const std::vector<RingArea> rings = e.b.host.rings();
    ASSERT_EQ(rings.size(), 3u);
    const std::uint64_t bytes[] = {16 * size, 6 + 2 * size, 6 + 8 * size};
    for (unsigned part = 0; part < 3; ++part) {
        EXPECT_EQ(rings[part].device, "rng");
        EXPECT_EQ(rings[part].queue, 0u);
        EXPECT_EQ(rings[part].first, e.d.common(0x20 + 8 * part, 4) | e.d.common(0x24 + 8 * part, 4) << 32);
        EXPECT_EQ(rings[part].bytes, bytes[part]);
    }
    e.d.common(0x14, 0, 1);
    EXPECT_TRUE(e.b.host.rings().empty());
}

TEST(VirtioPci, EqualSeedsGiveEqualBytes) {
    std::uint64_t got[3];
    for (unsigned i = 0; i < 3; ++i) {
        GuestBoard b;
        VirtioRng rng("rng", i == 2 ? 2 : 1, b.dma, b.messages);
        Driver d(b, rng);
        d.start(kPlain);
        d.add({{kData, 8, true}});
        d.notify();
        got[i] = b.get<std::uint64_t>(kData);
    }
    EXPECT_EQ(got[0], got[1]);
    EXPECT_NE(got[0], got[2]);
}

TEST(VirtioPci, SendsItsMessageAndKeepsItWhileMasked) {
    Entropy e;
    e.d.negotiate(kPlain);
    e.d.use_msix();
    e.d.go();
    e.d.add({{kData, 8, true}});
    e.d.notify();
    ASSERT_EQ(e.b.messages.sent.size(), 1u);
    EXPECT_EQ(e.b.messages.sent[0], std::make_pair(std::uint64_t{0xfee00000}, 0x41u));
    EXPECT_EQ(e.b.lines.raised, 0u);

    e.d.config(e.d.msix_capability + 2, 0xc000, 2); // all masked
    e.d.add({{kData, 8, true}}, 1);
    e.d.notify();
    EXPECT_EQ(e.b.messages.sent.size(), 1u);
    const Addr pending = e.d.bar() + (e.d.config(e.d.msix_capability + 8) & ~7u);
    EXPECT_EQ(e.b.memory.read(0, pending, 8), 2u);
    e.d.config(e.d.msix_capability + 2, 0x8000, 2);
    EXPECT_EQ(e.b.messages.sent.size(), 2u);
    EXPECT_EQ(e.b.memory.read(0, pending, 8), 0u);
}

TEST(VirtioPci, NoInterruptWhereTheDriverAsksForNone) {
    Entropy e;
    e.d.start(kPlain);
    e.b.put<std::uint16_t>(Driver::kAvailable, 1); // the flag
    e.d.add({{kData, 8, true}});
    e.d.notify();
    EXPECT_EQ(e.d.used_index(), 1);
    EXPECT_EQ(e.b.lines.raised, 0u);
}

TEST(VirtioPci, EventIndexInterruptsWhenItIsPassed) {
    Entropy e;
    e.d.start(kAll);
    const Addr used_event = Driver::kAvailable + 4 + 2 * 8, avail_event = Driver::kUsed + 4 + 8 * 8;
    e.b.put<std::uint16_t>(used_event, 1); // interrupt after the second
    e.d.add({{kData, 8, true}});
    e.d.notify();
    EXPECT_EQ(e.b.lines.raised, 0u);
    EXPECT_EQ(e.b.get<std::uint16_t>(avail_event), 1); // the next notification that it wants
    e.d.add({{kData, 8, true}}, 1);
    e.d.notify();
    EXPECT_EQ(e.b.lines.raised, 1u);
    EXPECT_EQ(e.b.get<std::uint16_t>(avail_event), 2);
}

TEST(VirtioPci, IndirectTablesAreFollowed) {
    Entropy e;
    e.d.start(kAll);
    e.d.add({{kData, 16, true}, {kData + 0x100, 16, true}, {kData + 0x200, 16, true}}, 0, kTable);
    e.d.descriptor(0, kTable, 48, Driver::kIndirect, 0);
    e.d.make_available(0);
    e.d.notify();
    EXPECT_EQ(e.d.used_length(0), 48u);
    EXPECT_NE(e.b.get<std::uint64_t>(kData + 0x200), 0u);
}

TEST(VirtioPci, BuffersMayLieAboveTheHoleButNotInIt) {
    Entropy e;
    e.d.start(kPlain);
    const Addr high = (Addr{1} << 32) + (4 << 20) - 8; // the last bytes of memory
    e.d.add({{high, 8, true}});
    e.d.notify();
    EXPECT_EQ(e.d.used_index(), 1);
    EXPECT_NE(e.b.get<std::uint64_t>(high), 0u);
    e.d.add({{GuestBoard::kHole - 4, 8, true}});
    e.d.notify();
    EXPECT_TRUE(e.d.status() & VirtioPci::kNeedsReset);
}

TEST(VirtioPci, QueueWrapsAroundManyTimes) {
    Entropy e;
    e.d.start(kAll, 4);
    for (unsigned i = 0; i < 70000; ++i) { // past the 16 bits of the indices
        e.d.add({{kData, 8, true}}, i % 4);
        e.d.notify();
    }
    EXPECT_EQ(e.d.used_index(), 70000 % 65536);
    EXPECT_EQ(e.device.fault(), nullptr);
}

TEST(VirtioPci, NothingHappensBeforeDriverOkOrWithoutBusMastering) {
    Entropy e;
    e.d.negotiate(kPlain);
    e.d.set_up_queue(8);
    e.d.add({{kData, 8, true}});
    e.d.notify();
    EXPECT_EQ(e.d.used_index(), 0);
    e.d.config(pci::kCommand, pci::kMemorySpace, 2);
    e.d.common(0x14, 15, 1);
    e.d.notify();
    EXPECT_EQ(e.d.used_index(), 0);
    e.d.config(pci::kCommand, pci::kMemorySpace | pci::kBusMaster, 2);
    e.d.notify();
    EXPECT_EQ(e.d.used_index(), 1);
}

TEST(VirtioPci, RegistersCanBeReachedThroughConfigurationSpace) {
    Entropy e;
    const unsigned at = e.d.capability[5];
    e.d.config(at + 4, 0, 1);
    e.d.config(at + 8, 0x12, 4); // number of queues
    e.d.config(at + 12, 2, 4);
    EXPECT_EQ(e.d.config(at + 16, 2u), 1u);
    e.d.config(at + 8, 0x14, 4); // device status
    e.d.config(at + 12, 1, 4);
    e.d.config(at + 16, 1, 1);
    EXPECT_EQ(e.d.status(), 1u);
    e.d.config(at + 8, 0xfffffff0, 4); // outside
    e.d.config(at + 16, 1, 4);
    e.d.config(at + 16, 4u);
}

// --- rings that break the rules ------------------------------------------------------------------------------------

namespace {

/// Writes of descriptors, of which the first becomes available, or any other write.
struct Hostile {
    struct Written {
        unsigned index;
        Addr at;
        std::uint32_t size;
        unsigned flags, next;
        Addr table = Driver::kDescriptors;
    };
    const char *name;
    std::vector<Written> descriptors;
    std::function<void(Entropy &)> write = nullptr;

    void operator()(Entropy &e) const {
        for (const Written &d : descriptors)
            e.d.descriptor(d.index, d.at, d.size, static_cast<std::uint16_t>(d.flags),
                           static_cast<std::uint16_t>(d.next), d.table);
        if (write)
            write(e);
        else
            e.d.make_available(0);
    }
};

constexpr unsigned kNext = Driver::kNext, kWrite = Driver::kWrite, kIndirect = Driver::kIndirect;

const Hostile kHostile[] = {
    {"a chain that points at itself", {{0, kData, 8, kWrite | kNext, 0}}},
    {"a loop of two", {{0, kData, 8, kWrite | kNext, 1}, {1, kData, 8, kWrite | kNext, 0}}},
    {"a head beyond the table", {}, [](Entropy &e) { e.d.make_available(8); }},
    {"a next beyond the table", {{0, kData, 8, kWrite | kNext, 0xffff}}},
    {"an index that leaps", {}, [](Entropy &e) { e.d.set_available(9); }},
    {"an index that goes back", {}, [](Entropy &e) { e.d.set_available(0xffff); }},
    {"a buffer without bytes", {{0, kData, 0, kWrite, 0}}},
    {"a buffer outside memory", {{0, 0x80000000, 8, kWrite, 0}}},
    {"a buffer that wraps around", {{0, ~Addr{0} - 3, 8, kWrite, 0}}},
    {"a buffer that ends outside", {{0, kData, 0xffffffff, kWrite, 0}}},
    {"readable after writable", {{0, kData, 8, kWrite | kNext, 1}, {1, kData, 8, 0, 0}}},
    {"an indirect table in an indirect table", {{0, kTable, 16, kIndirect, 0, kTable}, {0, kTable, 16, kIndirect, 0}}},
    {"an indirect table with a next", {{0, kTable, 16, kIndirect | kNext, 1}}},
    {"an indirect table whose length is 0", {{0, kTable, 0, kIndirect, 0}}},
    {"an indirect table whose length is not a multiple of 16", {{0, kTable, 17, kIndirect, 0}}},
    {"an indirect table outside memory", {{0, ~Addr{0} - 15, 0x10000, kIndirect, 0}}},
    {"a chain of too many buffers",
     {{0, 0x200000, 2000 * 16, kIndirect, 0}},
     [](Entropy &e) {
         for (unsigned i = 0; i < 2000; ++i)
             e.d.descriptor(i, kData, 8, kWrite | kNext, static_cast<std::uint16_t>(i + 1), 0x200000);
         e.d.make_available(0);
     }},
};

} // namespace

TEST(VirtqueueHostile, EveryBrokenRingAsksForAResetAndIsUsableAfterIt) {
    for (const Hostile &h : kHostile) {
        Entropy e;
        e.d.start(kAll);
        h(e);
        e.d.notify();
        EXPECT_TRUE(e.d.status() & VirtioPci::kNeedsReset) << h.name;
        EXPECT_NE(e.device.fault(), nullptr) << h.name;
        EXPECT_EQ(e.d.used_index(), 0) << h.name;
        EXPECT_EQ(e.b.memory.read(0, e.d.region[3], 1), 2u) << h.name; // a change of configuration
        e.d.notify();
        EXPECT_EQ(e.d.used_index(), 0) << h.name;

        e.d.start(kAll);
        e.d.add({{kData, 8, true}});
        e.d.notify();
        EXPECT_FALSE(e.d.status() & VirtioPci::kNeedsReset) << h.name;
        EXPECT_EQ(e.d.used_index(), 1) << h.name;
    }
}

TEST(VirtqueueHostile, IndirectDescriptorsThatWereNotNegotiatedBreakTheQueue) {
    Entropy e;
    e.d.start(kPlain);
    e.d.descriptor(0, kTable, 16, Driver::kIndirect, 0);
    e.d.descriptor(0, kData, 8, Driver::kWrite, 0, kTable);
    e.d.make_available(0);
    e.d.notify();
    EXPECT_TRUE(e.d.status() & VirtioPci::kNeedsReset);
}

TEST(VirtqueueHostile, RingsOutsideMemoryAskForAReset) {
    for (const unsigned area : {0u, 1u, 2u}) {
        Entropy e;
        e.d.negotiate(kAll);
        e.d.set_up_queue(8);
        e.d.add({{kData, 8, true}});
        e.d.common(0x14, 0, 1);
        e.d.negotiate(kAll);
        const Addr good[3] = {Driver::kDescriptors, Driver::kAvailable, Driver::kUsed};
        for (unsigned a = 0; a < 3; ++a)
            e.d.common(0x20 + 8 * a, a == area ? 0xfffffffffffffff0 : good[a], 8);
        e.d.common(0x1c, 1, 2);
        e.d.common(0x14, 15, 1);
        EXPECT_TRUE(e.d.status() & VirtioPci::kNeedsReset) << area;
    }
}

namespace {

// Rounds of 400 random writes to rings and registers, many of them nearly right.
void fuzz(unsigned rounds) {
    Rng rng(3);
    const auto pick = [&](std::uint64_t below) { return static_cast<unsigned>(rng.below(below)); };
    const auto half = [&](std::uint64_t below) { return static_cast<std::uint16_t>(rng.below(below)); };
    for (unsigned round = 0; round < rounds; ++round) {
        Entropy e;
        e.d.start(kAll);
        for (unsigned i = 0; i < 400; ++i) {
            switch (rng.below(6)) {
            case 0: // a plausible descriptor
                e.d.descriptor(pick(8), pick(4) ? kData : kTable, pick(64), half(8), half(9),
                               pick(2) ? kTable : Driver::kDescriptors);
                break;
            case 1: e.d.make_available(half(9)); break;
            case 2: e.d.notify(pick(2)); break;
            default: e.d.scribble(rng);
            }
            if (e.d.status() & VirtioPci::kNeedsReset)
                e.d.start(kAll);
        }
    }
}

} // namespace

TEST(VirtqueueHostile, RandomRegistersAndRingsDoNoHarm) { fuzz(300); }
TEST(VirtqueueHostileLong, TenMillionRandomWritesDoNoHarm) { fuzz(25000); }

TEST(VirtioPci, StateSurvivesACheckpoint) {
    Entropy a, b;
    a.d.negotiate(kAll);
    a.d.use_msix();
    a.d.go();
    a.d.add({{kData, 8, true}});
    a.d.notify();
    Archive save;
    a.b.host.archive(save);
    Archive load(save.bytes());
    b.b.host.archive(load);
    EXPECT_TRUE(load.at_end());
    b.b.bytes = a.b.bytes;
    b.b.map.memory = b.b.bytes.data();
    for (Entropy *e : {&a, &b}) {
        e->b.put<std::uint16_t>(Driver::kAvailable + 4 + 2 * 1, 0);
        e->b.put<std::uint16_t>(Driver::kAvailable + 2, 2);
        e->b.put<std::uint16_t>(Driver::kAvailable + 4 + 2 * 8, 1);
        e->b.messages.sent.clear();
        e->b.memory.write(0, e->d.region[2], 0, 2);
        EXPECT_EQ(e->d.used_index(), 2);
        EXPECT_EQ(e->b.messages.sent.size(), 1u);
    }
    EXPECT_EQ(a.b.get<std::uint64_t>(kData), b.b.get<std::uint64_t>(kData));
}
