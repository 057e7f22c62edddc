// SPDX-License-Identifier: BSD-3-Clause
// The network card at the rate of its link, with each of its transfers through the protocol of a whole machine: frames of
// 1500 bytes go out and come back from an echo host at 10 Gbit/s, which is 812 744 frames per second in either direction.
// The driver takes no time and the buffers are in no cache, so this is what the card can move. The machine is the file that
// MOSCOPE_CARD_MACHINE names, its protocol's library MOSCOPE_CARD_LIBRARY (test_card_throughput.py sets them).
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "board/timed_dma.hh"
#include "dev/virtio/virtio_driver.hh"
#include "dev/virtio/virtio_net.hh"
#include "machine/machine.hh"

using namespace moscope;
using namespace moscope::dev;
using namespace moscope::dev::test;

namespace {

constexpr Tick kMicrosecond = 1000 * kTicksPerNs;
constexpr unsigned kEntries = 64, kHeader = 12, kFrame = net::kEthernetHeader + 1500;
constexpr net::Ip kGuest = 0x0a010001;
constexpr net::Mac kGuestMac = {2, 0, 0x0a, 1, 0, 1};

/// A driver that looks at its rings each microsecond: it offers every receive buffer again and sends whatever has room.
class Guest final : public Component {
  public:
    Guest(Machine &m, unsigned pairs, unsigned transfers)
        : Component(m.queue(), "driver", [](Component &c, Tick now) { static_cast<Guest &>(c).poll(now); }),
          pairs_(pairs),
          b_(m.memory(), m.queue()),
          dma_(m.queue(), b_.map, {}, transfers),
          device_("nic", settings(pairs), 1, dma_, b_.messages, m.queue(), b_.time, [](std::uint64_t) {}),
          driver_(b_, device_),
          rings_(2 * pairs) {
        start();
        m.allow_device_accesses(transfers);
        dma_.through(&m.dma_port(0));
        poll(0);
    }
    const VirtioNet &device() const { return device_; }
    void stop() { schedule(kNever); }

  private:
    struct Ring {
        std::uint16_t available = 0, seen = 0;
    };
    static NicSettings settings(unsigned pairs) {
        NicSettings s;
        s.queues = pairs;
        s.steering = "fixed-port";
        s.first_port = 1000;
        return s;
    }
    static Addr ring(unsigned queue, unsigned part) { return 0x10000 + 0x3000 * queue + 0x1000 * part; }
    static Addr buffer(unsigned queue, unsigned i) { return 0x100000 + 0x800 * (kEntries * queue + i); }

    void start() {
        driver_.negotiate(VirtioPci::kVersion1 | VirtioPci::kEventIndex | VirtioNet::kMergeBuffers |
                          VirtioNet::kControl | (pairs_ > 1 ? VirtioNet::kMultiQueue + 0ull : 0ull));
        for (unsigned q = 0; q <= 2 * pairs_; ++q) {
            b_.put<std::uint32_t>(ring(q, 1), 0);
            b_.put<std::uint32_t>(ring(q, 2), 0);
            driver_.common(0x16, q, 2);
            driver_.common(0x18, kEntries, 2);
            for (unsigned part = 0; part < 3; ++part)
                driver_.common(0x20 + 8 * part, ring(q, part), 8);
            driver_.common(0x1c, 1, 2);
        }
        driver_.common(0x14, 15, 1);
        for (unsigned q = 0; q < 2 * pairs_; ++q)
            for (unsigned i = 0; i < kEntries; ++i) {
                const bool in = q % 2 == 0;
                driver_.descriptor(i, buffer(q, i), in ? 0x800 : kHeader + kFrame, in ? Driver::kWrite : 0, 0,
                                   ring(q, 0));
                b_.put<std::uint16_t>(ring(q, 1) + 4 + 2 * i, static_cast<std::uint16_t>(i));
                if (!in)
                    fill(q, i);
            }
        if (pairs_ > 1)
            use_all_pairs();
    }
    void use_all_pairs() {
        const unsigned control = 2 * pairs_;
        const std::uint8_t command[] = {4, 0, static_cast<std::uint8_t>(pairs_), 0};
        std::memcpy(b_.map.host(PhysAddr(buffer(control, 0))), command, sizeof command);
        driver_.add({{buffer(control, 0), sizeof command, false}, {buffer(control, 1), 1, true}}, 0, ring(control, 0));
        b_.put<std::uint16_t>(ring(control, 1) + 4, 0);
        b_.put<std::uint16_t>(ring(control, 1) + 2, 1);
        driver_.notify(control);
        MOSCOPE_CHECK(b_.get<std::uint8_t>(buffer(control, 1)) == 0);
    }
    /// A datagram to the echo service, whose answer the card steers to the same pair by its port.
    void fill(unsigned queue, unsigned i) {
        const auto port = static_cast<std::uint16_t>(1000 + queue / 2);
        const std::vector<std::uint8_t> payload(kFrame - net::kIpPayload - 8, static_cast<std::uint8_t>(i));
        net::Frame f =
            net::udp_frame(net::mac_of(net::Services::host(0)), {kGuest, port}, {net::Services::host(0), 7}, payload);
        std::copy(kGuestMac.begin(), kGuestMac.end(), f.begin() + 6);
        MOSCOPE_CHECK(f.size() == kFrame);
        std::memset(b_.map.host(PhysAddr(buffer(queue, i))), 0, kHeader);
        std::memcpy(b_.map.host(PhysAddr(buffer(queue, i) + kHeader)), f.data(), f.size());
    }
    void poll(Tick now) {
        for (unsigned q = 0; q < 2 * pairs_; ++q) {
            Ring &r = rings_[q];
            const auto used = b_.get<std::uint16_t>(ring(q, 2) + 2);
            const auto free = static_cast<std::uint16_t>(kEntries - (r.available - r.seen) + (used - r.seen));
            // Chains come back in order, so an entry of the ring is the buffer of its number.
            r.seen = used;
            if (free == 0)
                continue;
            r.available = static_cast<std::uint16_t>(r.available + free);
            b_.put<std::uint16_t>(ring(q, 1) + 2, r.available);
            driver_.notify(q);
        }
        schedule(now + kMicrosecond);
    }

    const unsigned pairs_;
    GuestBoard b_;
    TimedDma dma_;
    VirtioNet device_;
    Driver driver_;
    std::vector<Ring> rings_;
};

struct Rates {
    double out, in; ///< Gbit/s on the wire
    std::uint64_t dropped;
};

Rates measure(unsigned pairs, unsigned transfers) {
    std::ifstream file(std::getenv("MOSCOPE_CARD_MACHINE"));
    const std::string description{std::istreambuf_iterator<char>(file), {}};
    Machine m(description, std::getenv("MOSCOPE_CARD_LIBRARY"));
    Guest guest(m, pairs, transfers);
    constexpr Tick kFrom = 300 * kMicrosecond, kWindow = 3000 * kMicrosecond; // until then the transmit FIFO has filled
    m.run(kFrom);
    const VirtioNet::Counts before = guest.device().counts();
    m.run(kFrom + kWindow);
    const VirtioNet::Counts after = guest.device().counts();
    guest.stop();
    std::uint64_t dropped = 0;
    for (const std::uint64_t n : after.dropped)
        dropped += n;
    const auto rate = [](std::uint64_t frames) { return static_cast<double>(frames) * (kFrame + 24) * 8 / 3e6; };
    const Rates r{rate(after.out_packets - before.out_packets), rate(after.in_packets - before.in_packets), dropped};
    std::printf("pairs %u transfers %u: out %.2f in %.2f Gbit/s dropped %llu\n", pairs, transfers, r.out, r.in,
                static_cast<unsigned long long>(r.dropped));
    return r;
}

} // namespace

TEST(CardThroughput, FramesOf1500BytesGoBothWaysAtTenGigabits) {
    if (!std::getenv("MOSCOPE_CARD_MACHINE"))
        GTEST_SKIP() << "runs with a machine (test_card_throughput.py)";
    const Rates one = measure(1, 1), two = measure(1, 2), all = measure(1, 16), pairs = measure(4, 16);
    EXPECT_LT(one.out, 9); // a line at a time
    EXPECT_NEAR(one.in, one.out, 0.5);
    EXPECT_GT(two.out, one.out);
    for (const Rates &r : {all, pairs}) {
        EXPECT_EQ(r.dropped, 0u);
        EXPECT_NEAR(r.out, 10, 0.05);
        EXPECT_NEAR(r.in, 10, 0.05);
    }
}
