// SPDX-License-Identifier: BSD-3-Clause
// The network device: frames through its queues to the hosts and back, checksums, merged buffers, queues chosen by policy and
// by driver, limits and drops, checkpoints, and drivers that break the rules.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "dev/virtio/net_card.hh"
#include "net/checksum.hh"

using namespace moscope;
using namespace moscope::dev;
using namespace moscope::dev::test;
using net::Frame;

std::uint64_t dropped(const Card &c, Drop reason) { return c.device.counts().dropped[static_cast<unsigned>(reason)]; }

TEST(VirtioNet, TellsItsAddressAndQueues) {
    Card c;
    EXPECT_EQ(c.d.config(0), 0x10411af4u);
    const auto field = [&](unsigned at, unsigned size) { return c.b.memory.read(0, c.d.region[4] + at, size); };
    EXPECT_EQ(field(0, 4), 0x010a0002u);
    EXPECT_EQ(field(6, 2), 1u); // link up
    EXPECT_EQ(field(8, 2), kPairs);
    EXPECT_EQ(c.d.common(0x12, 2), 2 * kPairs + 1u);
    EXPECT_EQ(field(12, 4), 10'000u);
    NicSettings one = settings();
    one.queues = 1;
    one.link_megabits = 1000;
    GuestBoard b;
    VirtioNet device("nic", one, 1, b.dma, b.messages, b.queue, b.time, [](std::uint64_t) {});
    Driver d(b, device);
    EXPECT_FALSE(d.offered() & (VirtioNet::kMultiQueue | VirtioNet::kRss));
    EXPECT_EQ(b.memory.read(0, d.region[4] + 12, 4), 1000u) << "the link's rate in Mbit/s";
}

TEST(VirtioNet, AFrameComesBackFromTheEchoWithItsChecksumChecked) {
    Card c;
    c.use_all_pairs();
    c.offer(2, 2);
    Frame f = echo(1002);
    // The driver leaves the sum of the pseudo header.
    const std::size_t length = f.size() - net::kIpPayload;
    net::put16(
        f, net::kIpPayload + 6,
        static_cast<std::uint16_t>(~net::pseudo_header(kGuest, net::Services::host(0), net::kUdp, length).checksum()));
    c.b.messages.sent.clear();
    c.send(1, f, 0, true);
    EXPECT_EQ(c.used(3), 1);
    c.b.queue.run();
    ASSERT_EQ(c.used(4), 1);
    EXPECT_EQ(c.b.get<std::uint8_t>(Card::buffer(4, 0)), 2); // checksum right
    EXPECT_EQ(c.b.get<std::uint16_t>(Card::buffer(4, 0) + 10), 1);
    const Frame back = c.received(4, 0);
    EXPECT_EQ(net::transport_checksum_right(back), true);
    EXPECT_EQ(net::flow_of(back), net::flow_of(f).reverse());
    const std::vector<std::pair<std::uint64_t, std::uint32_t>> expected = {{0xfee00000, 0x43}, {0xfee00000, 0x44}};
    EXPECT_EQ(c.b.messages.sent, expected);
    EXPECT_EQ(c.device.counts().in_packets, 1u);
    EXPECT_EQ(c.device.counts().out_packets, 1u);
}

TEST(VirtioNet, ItsReportHasEachDescribedCountAndOneForEachReasonToDrop) {
    Card c;
    c.send(0, echo(1000)); // without a buffer for the answer
    c.b.queue.run();
    ASSERT_EQ(dropped(c, Drop::no_buffer), 1u);
    auto counts = c.device.report().counts;
    EXPECT_EQ(counts.at("out_packets"), 1u);
    EXPECT_EQ(counts.at("dropped_no_buffer"), 1u);
    EXPECT_EQ(counts.at("deepest_fifo_bytes"), c.device.counts().deepest_fifo);
    for (const char *reason : kDropNames)
        EXPECT_EQ(counts.erase(std::string("dropped_") + reason), 1u) << reason;
    CardStats::visit([&](const std::string &name,
                         const auto &...) { EXPECT_EQ(counts.erase(name), name == "dropped" ? 0u : 1u) << name; },
                     CardStats{});
    for (const auto &[name, count] : counts)
        EXPECT_EQ(name.rfind("queue", 0), 0u) << name << " is not described";
}

TEST(VirtioNet, LongFramesAreSpreadOverSmallBuffersIfTheDriverAgreed) {
    for (const bool merge : {true, false}) {
        Card c(settings(), merge ? kUsual : kUsual & ~VirtioNet::kMergeBuffers);
        c.offer(0, 8, 200);
        c.send(0, echo(1000, 900));
        c.b.queue.run();
        const std::size_t bytes = kHeader + 14 + 28 + 900;
        EXPECT_EQ(c.used(0), merge ? (bytes + 199) / 200 : 0);
        EXPECT_EQ(dropped(c, Drop::no_buffer), merge ? 0u : 1u);
        if (merge) {
            EXPECT_EQ(c.b.get<std::uint16_t>(Card::buffer(0, 0) + 10), (bytes + 199) / 200);
        }
    }
}

TEST(VirtioNet, BuffersThatWereTooFewAreUsedByTheNextFrame) {
    Card c;
    c.offer(0, 2, 200);
    c.send(0, echo(1000, 900));
    c.b.queue.run();
    EXPECT_EQ(dropped(c, Drop::no_buffer), 1u);
    EXPECT_EQ(c.used(0), 0);
    c.send(0, echo(1000, 100), 1);
    c.b.queue.run();
    EXPECT_EQ(c.used(0), 1);
    EXPECT_EQ(c.received(0, 0).size(), 142u);
}

TEST(VirtioNet, OneQueuePairIsUsedAtFirstAndAllOnceTheDriverEnablesThem) {
    Card c;
    for (unsigned pair = 0; pair < kPairs; ++pair)
        c.offer(pair, 4);
    c.send(0, echo(1003));
    c.b.queue.run();
    EXPECT_EQ(c.used(0), 1); // one pair is in use at first
    c.use_all_pairs();
    for (unsigned i = 0; i < kPairs; ++i)
        c.send(0, echo(static_cast<std::uint16_t>(1000 + i)), 1 + i);
    c.b.queue.run();
    for (unsigned i = 1; i < kPairs; ++i)
        EXPECT_EQ(c.used(2 * i), 1) << i;
}

TEST(VirtioNet, ControlCommandsAreChecked) {
    Card c;
    EXPECT_EQ(c.command({4, 0, 0, 0}), 1);
    EXPECT_EQ(c.command({4, 0, kPairs + 1, 0}), 1);
    EXPECT_EQ(c.command({4, 0, 3, 0}), 0);
    EXPECT_EQ(c.device.active_pairs(), 3u);
    EXPECT_EQ(c.command({0, 0, 1}), 1); // receive modes
    std::vector<std::uint8_t> rss = {4, 1, 7, 0, 0, 0, 1, 0, 0, 0, 2, 0, 1, 0, 4, 0, 40};
    for (unsigned i = 0; i < 40; ++i)
        rss.push_back(static_cast<std::uint8_t>(i));
    EXPECT_EQ(c.command(rss), 0);
    EXPECT_EQ(c.device.active_pairs(), 4u);
    EXPECT_EQ(c.device.rss().table, (std::vector<std::uint16_t>{2, 1}));
    EXPECT_EQ(c.device.rss().key.size(), 40u);
    for (const auto &[at, value] : {std::pair{6, 2}, {6, 0xff}, {10, 9}, {14, 0}, {14, 5}, {16, 41}}) {
        auto wrong = rss;
        wrong[static_cast<std::size_t>(at)] = static_cast<std::uint8_t>(value);
        EXPECT_EQ(c.command(wrong), 1) << at << " " << value;
    }
    rss.pop_back();
    EXPECT_EQ(c.command(rss), 1);
}

TEST(VirtioNet, TheFifoDropsWhatArrivesTooFast) {
    NicSettings s = settings();
    s.in_fifo_bytes = 2048;
    s.in_per_second = 1'000'000;
    Card c(s);
    c.offer(0, 16);
    const Frame f(1000);
    for (unsigned i = 0; i < 3; ++i)
        c.device.arrived(f, c.b.queue.now());
    EXPECT_EQ(dropped(c, Drop::fifo_full), 1u);
    EXPECT_EQ(c.device.counts().deepest_fifo, 2000u);
    c.send(0, echo(1000)); // sets the alarm
    const Tick us = 1'000 * kTicksPerNs;
    c.b.queue.run(us);
    EXPECT_EQ(c.used(0), 0);
    c.b.queue.run(us + 1);
    EXPECT_EQ(c.used(0), 1);
    c.b.queue.run(2 * us);
    EXPECT_EQ(c.used(0), 1);
    c.b.queue.run(2 * us + 1);
    EXPECT_EQ(c.used(0), 2);
}

TEST(VirtioNet, SendsNoFasterThanItsLimitAndTheLink) {
    for (const unsigned limit : {0u, 100'000u}) {
        NicSettings s = settings();
        s.out_fifo_bytes = 4096;
        s.out_per_second = limit;
        Card c(s);
        for (unsigned i = 0; i < 8; ++i)
            c.send(0, echo(1000, 1400), i);
        EXPECT_EQ(c.used(1), 3); // what the FIFO holds
        c.b.queue.run();
        EXPECT_EQ(c.used(1), 8);
        const Tick wire = c.device.lan().link().wire_time(1442);
        EXPECT_EQ(c.device.lan().link().busy_until(net::Link::kToClients),
                  limit ? 7 * kTicksPerSecond / 100'000 + wire : 8 * wire);
    }
}

/// The times in nanoseconds of a capture's frames. Removes the file.
static std::vector<std::uint64_t> taken_times(const std::string &path) {
    std::ifstream file(path, std::ios::binary);
    const std::vector<char> all{std::istreambuf_iterator<char>(file), {}};
    std::vector<std::uint64_t> times;
    for (std::size_t at = 24; at + 16 <= all.size();) {
        std::uint32_t header[4]; // seconds, nanoseconds, bytes kept, bytes of the frame
        std::memcpy(header, all.data() + at, sizeof header);
        times.push_back(header[0] * 1'000'000'000ull + header[1]);
        at += sizeof header + header[2];
    }
    std::filesystem::remove(path);
    return times;
}

TEST(VirtioNet, FramesOfACaptureAreInTheOrderOfTheirTimes) {
    NicSettings s = settings();
    s.pcap = (std::filesystem::path(testing::TempDir()) / "moscope-order.pcap").string();
    s.out_per_second = 100'000;
    {
        Card c(s);
        c.offer(0, 16);
        for (unsigned i = 0; i < 4; ++i)
            c.send(0, echo(1000), i); // they leave 10 us apart, and the answers come in between
        c.b.queue.run();
    }
    const auto times = taken_times(s.pcap);
    EXPECT_EQ(times.size(), 8u);
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end())) << testing::PrintToString(times);
}

TEST(VirtioNet, ASentFrameIsCapturedWhenItsLastBitHasLeft) {
    NicSettings s = settings();
    s.pcap = (std::filesystem::path(testing::TempDir()) / "moscope-wire.pcap").string();
    s.link_megabits = 100;
    {
        Card c(s); // without receive buffers: the echoes are dropped, and are in the capture all the same
        for (unsigned i = 0; i < 3; ++i)
            c.send(0, echo(1000, 1472), i); // 1514 bytes
        c.b.queue.run();
    }
    constexpr std::uint64_t wire = 8 * (1514 + 24) * 10; // ns; the link's latency is less than one
    const std::vector<std::uint64_t> expected{wire, 2 * wire, 2 * wire, 3 * wire, 3 * wire, 4 * wire};
    EXPECT_EQ(taken_times(s.pcap), expected);
}

TEST(VirtioNet, ReturnsBuffersOfSentFramesInBatchesOrAfterATimeout) {
    NicSettings s = settings();
    s.sent_together = 3;
    s.sent_after_fs = 1'000 * kTicksPerNs;
    Card c(s), copy(s);
    for (unsigned i = 0; i < 4; ++i) {
        EXPECT_EQ(c.used(1), i == 3 ? 3 : 0);
        c.send(0, echo(1000), i);
    }
    EXPECT_EQ(c.device.counts().out_packets, 4u);
    c.b.queue.run(s.sent_after_fs);
    EXPECT_EQ(c.used(1), 3);
    Archive save;
    c.b.host.archive(save);
    Archive load(save.bytes());
    copy.b.host.archive(load);
    for (Card *card : {&c, &copy}) {
        card->b.queue.run(s.sent_after_fs + 1);
        EXPECT_EQ(card->used(1), 4);
    }
}

TEST(VirtioNet, BlockedQueuesResumeInOrderAndTheFifoStaysWithinItsSize) {
    NicSettings s = settings();
    s.out_fifo_bytes = 8192;
    s.out_per_second = 1'000'000;
    Card c(s);
    c.use_all_pairs();
    for (unsigned pair = 0; pair < kPairs; ++pair)
        for (unsigned i = 0; i < 8; ++i)
            c.send(pair, echo(static_cast<std::uint16_t>(1000 + pair), 1400), i);
    std::uint64_t most = 0;
    for (Tick at = 0; at < 32'000 * kTicksPerNs; at += 100 * kTicksPerNs) {
        c.b.queue.run(at);
        most = std::max(most, c.device.report().depths.out_fifo_frames);
    }
    c.b.queue.run();
    EXPECT_LE(most, 6u); // of 1442 bytes; the last may exceed the end
    EXPECT_GE(most, 5u);
    for (unsigned pair = 0; pair < kPairs; ++pair)
        EXPECT_EQ(c.used(2 * pair + 1), 8) << pair;
    EXPECT_EQ(c.device.report().depths.out_fifo_frames, 0u);
}

TEST(VirtioNet, QueuesBeyondTheFullRateSlowEachPacket) {
    for (const bool all : {false, true}) {
        NicSettings s = settings();
        s.in_per_second = s.out_per_second = 1'000'000;
        s.full_rate_queues = 2;
        s.queue_cost = 250;
        Card c(s);
        if (all)
            c.use_all_pairs();
        const Tick each = (all ? 1'500 : 1'000) * kTicksPerNs; // kPairs - 2 further queues
        for (unsigned i = 0; i < 8; ++i)
            c.send(0, echo(1000), i);
        c.b.queue.run();
        const net::Link &link = c.device.lan().link();
        EXPECT_EQ(link.busy_until(net::Link::kToClients), 7 * each + link.wire_time(net::kLeastFrame + 22));
        EXPECT_EQ(c.device.counts().out_busy, static_cast<std::uint64_t>(8 * each));
        c.offer(0, 16);
        const Tick start = c.b.queue.now();
        const std::uint64_t before = c.device.counts().in_busy;
        for (unsigned i = 0; i < 3; ++i)
            c.device.arrived(Frame(100), start);
        EXPECT_EQ(c.device.report().depths.fifo_frames, 3u);
        EXPECT_EQ(c.device.counts().in_busy - before, static_cast<std::uint64_t>(3 * each));
        c.send(0, echo(1000)); // sets the alarm
        c.b.queue.run(start + 3 * each);
        EXPECT_EQ(c.used(0), 2);
        c.b.queue.run(start + 3 * each + 1);
        EXPECT_EQ(c.used(0), 3);
    }
}

TEST(VirtioNet, BadRequestsAreDroppedAndReturned) {
    Card c;
    c.send(0, Frame(4)); // shorter than an Ethernet header
    c.send(0, Frame(1600), 1);
    Frame f = echo(1000);
    c.send(0, f, 2);
    std::uint8_t gso = 1;
    std::memcpy(c.b.map.host(PhysAddr(Card::buffer(1, 3) + 1)), &gso, 1);
    c.add(1, {{Card::buffer(1, 3), kHeader, false}, {Card::buffer(1, 2) + kHeader, 60, false}}, 6);
    EXPECT_EQ(c.used(1), 4);
    EXPECT_EQ(dropped(c, Drop::bad_request), 3u);
    EXPECT_EQ(c.device.counts().out_packets, 1u);
    EXPECT_EQ(c.device.fault(), nullptr);
}

TEST(VirtioNet, ReadOnlyReceiveBuffersAskForAReset) {
    Card c;
    c.add(0, {{Card::buffer(0, 0), 0x800, false}});
    c.send(0, echo(1000));
    c.b.queue.run();
    EXPECT_TRUE(c.d.status() & VirtioPci::kNeedsReset);
    c.start(kUsual);
    c.offer(0, 1);
    c.send(0, echo(1000));
    c.b.queue.run();
    EXPECT_EQ(c.used(0), 1);
}

TEST(VirtioNet, FramesThatWaitWhenTheDriverResetsTheCardAreDropped) {
    NicSettings s = settings();
    s.in_per_second = 1'000'000;
    Card c(s);
    c.offer(0, 16);
    for (unsigned i = 0; i < 3; ++i)
        c.device.arrived(Frame(1000), c.b.queue.now());
    c.send(0, echo(1000)); // sets the alarm
    c.b.queue.run(1'000 * kTicksPerNs + 1);
    EXPECT_EQ(c.device.counts().in_packets, 1u);
    EXPECT_EQ(c.device.report().depths.fifo_frames, 3u); // with the echo
    c.d.common(0x14, 0, 1);
    EXPECT_EQ(c.device.report().depths.fifo_frames, 0u);
    EXPECT_EQ(dropped(c, Drop::not_ready), 3u);
}

TEST(VirtioNet, AFrameWhoseTransferTheDriversResetEndsIsNoBadRequest) {
    Card c;
    c.dma.reads = [&c](PhysAddr from) {
        if (from == PhysAddr(Card::buffer(1, 0)))
            c.d.common(0x14, 0, 1);
    };
    c.send(0, echo(1000));
    EXPECT_EQ(c.d.status(), 0);
    EXPECT_EQ(c.device.counts().out_packets, 0u);
    EXPECT_EQ(dropped(c, Drop::bad_request), 0u);
    EXPECT_EQ(dropped(c, Drop::not_ready), 1u);
}

TEST(VirtioNet, AFrameWhoseBuffersTheDriversResetTakesAwayIsNotReady) {
    Card c;
    c.offer(0, 1, kHeader + 64);
    c.dma.reads = [&c](PhysAddr from) {
        if (from.value < Card::ring(1, 0)) // of the receive queue
            c.d.common(0x14, 0, 1);
    };
    c.device.arrived(Frame(1000), c.b.queue.now());
    c.send(0, Frame(1000)); // sets the alarm
    c.b.queue.run(1'000 * kTicksPerNs + 1);
    EXPECT_EQ(c.d.status(), 0);
    EXPECT_EQ(c.device.counts().in_packets, 0u);
    EXPECT_EQ(dropped(c, Drop::no_buffer), 0u);
    EXPECT_EQ(dropped(c, Drop::not_ready), 1u);
}

TEST(VirtioNet, WithoutBusMasteringNoFrameReachesMemory) {
    Card c;
    c.offer(0, 2);
    c.send(0, echo(1000));
    c.b.queue.run(); // the card has fetched both buffers
    c.send(0, echo(1000), 1);
    c.d.config(pci::kCommand, pci::kMemorySpace, 2);
    c.b.queue.run();
    EXPECT_EQ(c.b.get<std::uint32_t>(Card::buffer(0, 1) + kHeader), 0u);
    EXPECT_EQ(dropped(c, Drop::not_ready), 1u);
}

TEST(VirtioNet, ACheckpointInTheMiddleOfFramesChangesNothing) {
    NicSettings s = settings();
    s.in_per_second = 1'000'000;
    Card a(s), copy(s);
    a.use_all_pairs();
    for (unsigned pair = 0; pair < kPairs; ++pair)
        a.offer(pair, 2 * kPairs);
    for (unsigned i = 0; i < kPairs; ++i)
        a.send(i, echo(static_cast<std::uint16_t>(1000 + i)));
    a.b.queue.run(1500 * kTicksPerNs);
    EXPECT_EQ(a.device.counts().in_packets, 1u);
    Archive save;
    a.b.host.archive(save);
    Archive load(save.bytes());
    copy.b.host.archive(load);
    EXPECT_TRUE(load.at_end());
    copy.b.bytes = a.b.bytes;
    copy.b.map.memory = copy.b.bytes.data();
    for (Card *c : {&a, &copy})
        c->b.queue.run();
    EXPECT_EQ(a.device.counts().in_packets, kPairs);
    EXPECT_EQ(a.b.bytes, copy.b.bytes);
    Archive one, other;
    a.b.host.archive(one);
    copy.b.host.archive(other);
    EXPECT_EQ(one.bytes(), other.bytes());
}

namespace {

/// Random chains on all queues and random writes to rings and registers, `writes` of them; more than half are nearly right.
void fuzz(unsigned writes) {
    Rng rng(17);
    unsigned broken = 0;
    const auto pick = [&](std::uint64_t below) { return static_cast<unsigned>(rng.below(below)); };
    for (unsigned done = 0; done < writes;) {
        Card c(settings(), pick(4) ? kUsual : kPlain);
        for (unsigned i = 0; i < 500; ++i, ++done) {
            const unsigned queue = pick(kControl + 1);
            switch (pick(8)) {
            case 0: c.offer(queue / 2 % kPairs, 1 + pick(3), 1 + pick(0x800)); break;
            case 1:
                c.send(pick(kPairs), echo(static_cast<std::uint16_t>(990 + pick(30)), pick(1400)), pick(8), pick(2));
                break;
            case 2: {
                std::vector<std::uint8_t> bytes = {4, static_cast<std::uint8_t>(pick(3))};
                for (unsigned n = pick(60); n; --n)
                    bytes.push_back(static_cast<std::uint8_t>(pick(4) ? pick(5) : pick(256)));
                c.command(bytes);
                break;
            }
            case 3: // any descriptor
                c.d.descriptor(pick(kSize), Card::buffer(queue, pick(16)), pick(3000),
                               static_cast<std::uint16_t>(pick(8)), static_cast<std::uint16_t>(pick(kSize + 1)),
                               Card::ring(queue, 0));
                c.b.put<std::uint16_t>(Card::ring(queue, 1) + 2,
                                       static_cast<std::uint16_t>(c.available[queue] += pick(3)));
                c.d.notify(queue);
                break;
            case 4:
                c.b.put<std::uint32_t>(Card::buffer(queue, pick(16)) + pick(64),
                                       static_cast<std::uint32_t>(rng.next()));
                break;
            case 5: c.b.queue.run(c.b.queue.now() + pick(1000) * 100 * kTicksPerNs); break;
            case 6: c.d.scribble(rng); break;
            default: c.b.put<std::uint16_t>(Card::ring(queue, 1) + pick(40), static_cast<std::uint16_t>(pick(32)));
            }
            if (c.d.status() & VirtioPci::kNeedsReset) {
                ++broken;
                EXPECT_NE(c.device.fault(), nullptr);
                c.start(pick(2) ? kUsual : kPlain);
            }
        }
    }
    EXPECT_GT(broken, writes / 1000);
}

} // namespace

TEST(VirtioNetHostile, RandomChainsAndRegistersDoNoHarm) { fuzz(20'000); }
TEST(VirtioNetHostileLong, AMillionRandomChainsAndWritesDoNoHarm) { fuzz(1'000'000); }
