// SPDX-License-Identifier: BSD-3-Clause
// Devices whose transfers take simulated time: lines one after another or several at a time, the interrupt after the
// last byte, and resets that wait. No request is lost that a driver makes while the device reports its progress.
#include <gtest/gtest.h>

#include <deque>
#include <map>

#include "board/timed_dma.hh"
#include "dev/virtio/virtio_driver.hh"
#include "dev/virtio/virtio_rng.hh"

using namespace moscope;
using namespace moscope::dev;
using namespace moscope::dev::test;

namespace {

constexpr Tick kAccess = 100 * kTicksPerNs;
constexpr Addr kData = 0x200000;
constexpr std::uint64_t kFeatures = VirtioPci::kVersion1 | VirtioPci::kEventIndex;

/// A memory system in which each access takes kAccess.
struct SlowPort : Port, Component {
    SlowPort(EventQueue &queue, std::byte *bytes) : Component(queue, "slow port", wake), bytes_(bytes) {
        memory_ = this;
        issue_ = [](void *self, Access &a) {
            auto &p = *static_cast<SlowPort *>(self);
            EXPECT_EQ(p.access, nullptr);
            EXPECT_EQ(line_of(a.addr.value), line_of(a.addr.value + a.size - 1));
            p.access = &a;
            ++p.accesses;
            p.schedule(a.issued + kAccess);
        };
    }
    static void wake(Component &c, Tick now) {
        auto &p = static_cast<SlowPort &>(c);
        Access &a = *std::exchange(p.access, nullptr);
        std::byte *at = p.bytes_ + a.addr.value;
        a.kind == AccessKind::store ? std::memcpy(at, a.data, a.size) : std::memcpy(a.data, at, a.size);
        a.done = now;
        a.on_done(a);
    }
    Access *access = nullptr;
    unsigned accesses = 0;

  private:
    std::byte *bytes_;
};

struct Timed {
    GuestBoard b;
    SlowPort port{b.queue, b.bytes.data()};
    std::vector<Addr> written;
    TimedDma dma{b.queue, b.map, [this](PhysAddr a, std::uint64_t) { written.push_back(a.value); }};
    VirtioRng device{"entropy", 1, dma, b.messages};
    Driver d{b, device};

    Timed() {
        d.start(kFeatures);
        d.use_msix();
        dma.through(&port);
    }
    bool filled(Addr at, unsigned size) {
        unsigned zeros = 0;
        for (unsigned i = 0; i < size; ++i)
            zeros += b.get<std::uint8_t>(at + i) == 0;
        return zeros < size / 8;
    }
};

} // namespace

/// While chips run on host threads, the access ends on the thread of the port's chip, which must not touch the devices' queue.
TEST(TimedDma, AnAccessThatEndsWhileChipsRunWakesTheLaneAtTheNextBarrier) {
    Timed t;
    t.d.add({{kData, 64, true}});
    t.d.notify();
    while (!t.port.access)
        t.b.queue.run(t.b.queue.next() + 1);
    Access &a = *t.port.access;
    t.b.queue.set_others_run(true);
    const Tick planned = t.b.queue.next();
    a.done = a.issued + kAccess / 2;
    a.on_done(a);
    EXPECT_EQ(t.b.queue.next(), planned);
    t.b.queue.set_others_run(false);
    t.b.queue.do_deferred();
    EXPECT_EQ(t.b.queue.next(), a.issued + kAccess / 2);
}

TEST(TimedDma, ATransferLastsAsLongAsItsLinesAndTheInterruptComesAfterTheLastByte) {
    Timed t;
    t.d.add({{kData + 40, 200, true}}); // four lines
    t.d.notify();
    EXPECT_EQ(t.port.accesses, 0u); // the driver's access does not wait for it
    while (t.b.messages.sent.empty()) {
        EXPECT_FALSE(t.filled(kData + 192, 48) && t.d.used_index() == 0 && t.port.access == nullptr);
        ASSERT_NE(t.b.queue.next(), kNever);
        t.b.queue.run(t.b.queue.next() + 1);
    }
    EXPECT_TRUE(t.filled(kData + 40, 200));
    EXPECT_EQ(t.d.used_index(), 1);
    const unsigned done = t.port.accesses - (t.port.access != nullptr);
    EXPECT_EQ(t.b.queue.now(), done * kAccess);
    EXPECT_EQ(std::count_if(t.written.begin(), t.written.end(), [](Addr a) { return a >= kData && a < kData + 256; }),
              4);
    t.b.queue.run();
    EXPECT_TRUE(t.dma.idle());
}

TEST(TimedDma, WithoutAPortTransfersTakeNoTime) {
    Timed t;
    t.dma.through(nullptr);
    t.d.add({{kData, 256, true}});
    t.d.notify();
    EXPECT_TRUE(t.filled(kData, 256));
    EXPECT_EQ(t.d.used_index(), 1);
    EXPECT_EQ(t.b.queue.next(), kNever);
}

TEST(TimedDma, AResetWaitsForWhatIsUnderWayAndNothingMovesAfterIt) {
    Timed t;
    t.d.add({{kData, 512, true}});
    t.d.add({{kData + 0x1000, 512, true}}, 1);
    t.d.notify();
    while (!t.filled(kData, 64))
        t.b.queue.run(t.b.queue.next() + 1);
    t.d.common(0x14, 0, 1);
    EXPECT_NE(t.d.status(), 0);
    t.b.queue.run();
    EXPECT_EQ(t.d.status(), 0);
    EXPECT_EQ(t.d.used_index(), 0);
    EXPECT_FALSE(t.filled(kData + 0x1000, 512));
    EXPECT_TRUE(t.b.messages.sent.empty());
    t.d.start(kFeatures);
    t.d.add({{kData + 0x2000, 64, true}});
    t.d.notify();
    t.b.queue.run();
    EXPECT_EQ(t.d.used_index(), 1);
    EXPECT_TRUE(t.filled(kData + 0x2000, 64));
}

TEST(TimedDma, ABufferAddedWhileTheDeviceReportsItsIndexIsServedWithoutANotification) {
    Timed t;
    t.d.add({{kData, 64, true}});
    t.d.notify();
    const Addr index = Driver::kUsed + 4 + 8 * 8; // the avail_event field: for which chain the driver is to notify
    while (!t.port.access || t.port.access->addr.value != index)
        t.b.queue.run(t.b.queue.next() + 1);
    t.d.add({{kData + 0x1000, 64, true}}, 1);
    t.b.queue.run();
    EXPECT_EQ(t.d.used_index(), 2);
}

namespace {

/// A memory system in which each access takes kAccess, however many are under way.
struct WidePort : Port, Component {
    explicit WidePort(EventQueue &queue) : Component(queue, "wide port", wake) {
        memory_ = this;
        issue_ = [](void *self, Access &a) {
            auto &p = *static_cast<WidePort *>(self);
            p.open.push_back(&a);
            p.most = std::max(p.most, p.open.size());
            p.schedule_no_later_than(a.issued + kAccess);
        };
    }
    static void wake(Component &c, Tick now) {
        auto &p = static_cast<WidePort &>(c);
        while (!p.open.empty() && p.open.front()->issued + kAccess <= now) {
            Access &a = *p.open.front();
            p.open.pop_front();
            a.done = now;
            a.on_done(a);
        }
        if (!p.open.empty())
            p.schedule_no_later_than(p.open.front()->issued + kAccess);
    }
    std::deque<Access *> open;
    std::size_t most = 0;
};

struct Wide {
    GuestBoard b;
    WidePort port{b.queue};
    TimedDma dma{b.queue, b.map, {}, 4};
    std::uint8_t bytes[1024] = {};
    Wide() { dma.through(&port); }
    /// Writes this many bytes from the start of a line, on a lane; `ended` gets the tick at which the transfer ends.
    void transfer(unsigned lane, std::size_t size, Tick &ended) {
        dma.perform(lane, [this, size, &ended] {
            EXPECT_TRUE(dma.write(PhysAddr(kData), std::span(bytes).first(size)));
            ended = b.queue.now();
        });
    }
};

} // namespace

namespace {

/// A memory system whose accesses end in an order other than that of their issue.
struct ShuffledPort : Port, Component {
    explicit ShuffledPort(EventQueue &queue) : Component(queue, "shuffled port", wake) {
        memory_ = this;
        issue_ = [](void *self, Access &a) {
            auto &p = *static_cast<ShuffledPort *>(self);
            const bool data = a.addr.value >= kData;
            p.most_data = std::max(p.most_data, p.data += data);
            p.passed += !data && p.data != 0;
            p.open.emplace(a.issued + (1 + ++p.accesses * 5 % 7) * kAccess, &a);
            p.schedule(p.open.begin()->first);
        };
    }
    static void wake(Component &c, Tick now) {
        auto &p = static_cast<ShuffledPort &>(c);
        Access &a = *p.open.begin()->second;
        p.open.erase(p.open.begin());
        p.data -= a.addr.value >= kData;
        if (!p.open.empty())
            p.schedule(p.open.begin()->first);
        if (a.kind == AccessKind::store)
            std::memcpy(p.bytes + a.addr.value, a.data, a.size);
        else
            std::memcpy(a.data, p.bytes + a.addr.value, a.size);
        a.done = now;
        a.on_done(a);
    }
    std::byte *bytes = nullptr;
    std::multimap<Tick, Access *> open;
    unsigned data = 0, most_data = 0; ///< lines of a request's data in flight
    unsigned accesses = 0, passed = 0;
};

} // namespace

TEST(TimedDma, RingAccessesNeverOvertakeTheDataOfTheirRequestWhateverOrderLinesEndIn) {
    GuestBoard b;
    ShuffledPort port(b.queue);
    port.bytes = b.bytes.data();
    TimedDma dma(b.queue, b.map, {}, 4);
    VirtioRng device("entropy", 1, dma, b.messages);
    Driver d(b, device);
    d.start(kFeatures);
    d.use_msix();
    dma.through(&port);
    for (unsigned i = 0; i < 4; ++i)
        d.add({{kData + 0x1000 * i + 40, 700, true}}, i);
    d.notify();
    b.queue.run();
    EXPECT_EQ(d.used_index(), 4);
    EXPECT_EQ(port.most_data, 4u);
    EXPECT_EQ(port.passed, 0u);
    EXPECT_FALSE(b.messages.sent.empty());
    EXPECT_TRUE(dma.idle());
}

TEST(TimedDma, ATransferHasAsManyLinesInFlightAsTheLimitAllows) {
    Wide w;
    Tick one = 0;
    w.transfer(0, 640, one); // ten lines: four, four, two
    w.b.queue.run();
    EXPECT_EQ(w.port.most, 4u);
    EXPECT_EQ(one, 3 * kAccess);
}

TEST(TimedDma, LanesGoOnSideBySideAndWorkOfOneLaneInOrder) {
    Wide w;
    const unsigned first = w.dma.make_lanes(6);
    Tick ended[6] = {}, second = 0;
    w.transfer(first, 64, ended[0]);
    w.transfer(first, 64, second);
    for (unsigned i = 1; i < 6; ++i)
        w.transfer(first + i, 64, ended[i]);
    w.b.queue.run();
    EXPECT_EQ(w.port.most, 4u);
    for (unsigned i = 0; i < 4; ++i)
        EXPECT_EQ(ended[i], kAccess) << i;
    for (unsigned i = 4; i < 6; ++i)
        EXPECT_EQ(ended[i], 2 * kAccess) << i;
    EXPECT_EQ(second, 2 * kAccess);
    EXPECT_TRUE(w.dma.idle());
}

TEST(TimedDma, LanesTakeTurnsIfOnlyOneLineMayBeInFlight) {
    GuestBoard b;
    WidePort port(b.queue);
    TimedDma dma(b.queue, b.map, {}, 1);
    dma.through(&port);
    const unsigned first = dma.make_lanes(2);
    Tick ended[2] = {};
    for (unsigned i = 0; i < 2; ++i)
        dma.perform(first + i, [&, i] {
            const std::uint8_t bytes[640] = {};
            EXPECT_TRUE(dma.write(PhysAddr(kData + 0x1000 * i), bytes));
            ended[i] = b.queue.now();
        });
    b.queue.run();
    EXPECT_EQ(port.most, 1u);
    EXPECT_EQ(ended[0], 19 * kAccess);
    EXPECT_EQ(ended[1], 20 * kAccess);
}
