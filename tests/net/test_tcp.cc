// SPDX-License-Identifier: BSD-3-Clause
// TCP against itself through a link that loses, repeats and delays segments in both directions: every byte arrives once and
// in order, every connection ends, nothing is left over; openings that fail; checkpoints in the middle.
#include <gtest/gtest.h>

#include <map>

#include "base/rng.hh"
#include "net/tcp/tcp.hh"

using namespace moscope;
using namespace moscope::net;

namespace {

constexpr Ip kA = 0x0a010001, kB = 0x0a010101;
constexpr std::uint16_t kPort = 80;
constexpr Tick kMs = 1'000'000 * kTicksPerNs;

/// Byte i of what a connection sends.
std::uint8_t byte_of(std::uint64_t key, std::uint64_t i) {
    return static_cast<std::uint8_t>((key * 131 + i) * 2654435761u >> 13);
}
std::vector<std::uint8_t> text(std::uint64_t key, std::size_t size) {
    std::vector<std::uint8_t> t(size);
    for (std::size_t i = 0; i < size; ++i)
        t[i] = byte_of(key, i);
    return t;
}

struct Faults {
    unsigned lost = 0, repeated = 0, delayed = 0; ///< of a thousand segments
};

/// Two ends and the way between them.
struct Pair {
    Faults faults;
    Rng rng{7};
    std::multimap<Tick, std::pair<bool, Frame>> flying; ///< to A?
    Tick now = 0;
    Tcp a, b;

    explicit Pair(Faults f, Tcp::Parameters p = {})
        : faults(f),
          a(p, [this](const Segment &s, Tick) { fly(false, s); }),
          b(p, [this](const Segment &s, Tick) { fly(true, s); }) {}

    void fly(bool to_a, const Segment &s) {
        const auto chance = [&](unsigned of_1000) { return rng.below(1000) < of_1000; };
        if (chance(faults.lost))
            return;
        const Frame f = segment_frame({}, s);
        for (unsigned n = chance(faults.repeated) ? 2 : 1; n; --n)
            flying.insert(
                {now + kMs / 100 + (chance(faults.delayed) ? static_cast<Tick>(rng.below(kMs)) : 0), {to_a, f}});
    }
    /// Runs until nothing is due any more, or for the given time.
    void run(Tick until = kNever - 1) {
        while (true) {
            const Tick next = std::min({flying.empty() ? kNever : flying.begin()->first, a.next(), b.next()});
            if (next > until || next == kNever)
                return;
            now = next;
            while (!flying.empty() && flying.begin()->first <= now) {
                const auto [to_a, frame] = std::move(flying.begin()->second);
                flying.erase(flying.begin());
                (to_a ? a : b).receive(*ipv4_of(frame), now);
            }
            a.run(now);
            b.run(now);
        }
    }
};

/// Sends the given number of bytes on each connection, closes, and compares what arrives with what the other end sends.
struct Peer final : TcpUser {
    Tcp &tcp;
    bool client;
    std::size_t bytes;
    unsigned number = tcp.add_user(*this);
    struct Stream {
        std::uint64_t key = 0, got = 0;
        bool finished = false;
    };
    std::map<ConnectionId, Stream> streams;
    std::map<TcpEnd, unsigned> ends;
    unsigned wrong = 0, whole = 0;

    Peer(Tcp &t, bool c, std::size_t n) : tcp(t), client(c), bytes(n) {}
    void begin(ConnectionId id, Tick now) {
        // Both ends know the client's port, which is the key.
        const std::vector<std::uint8_t> t = text(streams[id].key + (client ? 0 : 1), bytes);
        for (std::size_t i = 0; i < t.size(); i += 700)
            tcp.send(id, Bytes(t).subspan(i, std::min<std::size_t>(700, t.size() - i)), now);
        tcp.finish(id, now);
    }
    void connected(ConnectionId id, Tick now) override {
        if (client)
            streams[id].key = tcp.local(id).port;
        else
            streams[id].key = tcp.remote(id).port;
        begin(id, now);
    }
    void received(ConnectionId id, Bytes b, Tick) override {
        Stream &s = streams[id];
        for (const std::uint8_t x : b)
            wrong += x != byte_of(s.key + (client ? 1 : 0), s.got++);
    }
    void finished(ConnectionId id, Tick) override { whole += streams[id].got == bytes; }
    void ended(ConnectionId id, TcpEnd why, Tick) override {
        ++ends[why];
        streams.erase(id);
    }
};

void exchange(Faults faults, unsigned connections, std::size_t bytes, unsigned at_a_time) {
    Pair p(faults);
    Peer server(p.b, false, bytes), client(p.a, true, bytes);
    p.b.listen(server.number, kPort);
    for (unsigned n = 0; n < connections;) {
        for (unsigned i = 0; i < at_a_time && n < connections; ++i, ++n)
            ASSERT_NE(p.a.connect(client.number, {kA + n / 50'000, static_cast<std::uint16_t>(10'000 + n % 50'000)},
                                  {kB, kPort}, p.now),
                      0u);
        p.run(p.now + 20 * kMs);
    }
    p.run();
    EXPECT_EQ(client.ends[TcpEnd::finished], connections);
    EXPECT_EQ(server.ends[TcpEnd::finished], connections);
    EXPECT_EQ(client.whole, connections);
    EXPECT_EQ(server.whole, connections);
    EXPECT_EQ(client.wrong + server.wrong, 0u);
    EXPECT_TRUE(client.streams.empty() && server.streams.empty());
    EXPECT_EQ(p.a.connections() + p.b.connections(), 0u);
}

} // namespace

TEST(Tcp, ExchangesBytesOnACleanLink) {
    exchange({}, 1, 0, 1);
    exchange({}, 1, 1, 1);
    exchange({}, 10, 300'000, 10); // more than the window
}

TEST(Tcp, EveryByteArrivesOnceOnABadLink) {
    exchange({.lost = 10, .repeated = 10, .delayed = 10}, 3000, 3000, 100);
    exchange({.lost = 200, .repeated = 100, .delayed = 300}, 100, 10'000, 100);
    exchange({.lost = 50, .repeated = 50, .delayed = 500}, 5, 400'000, 5);
}

TEST(TcpLong, AMillionConnectionsOnABadLinkEnd) {
    exchange({.lost = 10, .repeated = 10, .delayed = 10}, 1'000'000, 500, 2000);
}

TEST(Tcp, AConnectionToAPortWithoutAListenerIsRefused) {
    Pair p({});
    Peer client(p.a, true, 10);
    p.a.connect(client.number, {kA, 1000}, {kB, 81}, 0);
    EXPECT_EQ(p.a.connect(client.number, {kA, 1000}, {kB, 81}, 0), 0u) << "the pair is in use";
    p.run();
    EXPECT_EQ(client.ends[TcpEnd::refused], 1u);
    EXPECT_EQ(p.a.connections(), 0u);
}

TEST(Tcp, AConnectionSendsTheSixPacketsOfALinuxClient) {
    std::vector<unsigned> flags;
    std::uint32_t start = 0; // of the connection's data
    Tcp tcp{{}, [&](const Segment &s, Tick) {
                flags.push_back(s.flags);
                if (s.has(Segment::kSyn))
                    start = s.sequence + 1;
            }};
    struct Asks final : TcpUser {
        Tcp &tcp;
        explicit Asks(Tcp &t) : tcp(t) {}
        void connected(ConnectionId id, Tick now) override { tcp.send(id, std::vector<std::uint8_t>(40), now); }
        void finished(ConnectionId id, Tick now) override { tcp.finish(id, now); }
    } client(tcp);
    tcp.connect(tcp.add_user(client), {kA, 1000}, {kB, kPort}, 0);
    const std::vector<std::uint8_t> answer(300);
    tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 0, start, Segment::kSyn | Segment::kAck, 1000, 1460, {}}, 0);
    tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 1, start + 40, Segment::kAck, 1000, 0, answer}, 0);
    tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 301, start + 40, Segment::kAck | Segment::kFin, 1000, 0, {}}, 0);
    EXPECT_EQ(flags, (std::vector<unsigned>{Segment::kSyn, Segment::kAck, Segment::kAck | Segment::kPsh, Segment::kAck,
                                            Segment::kAck, Segment::kAck | Segment::kFin}));
}

TEST(Tcp, ALaterConnectionOfAPairBeginsAtAHigherSequenceNumber) {
    std::uint32_t first = 0;
    Tcp tcp{{}, [&](const Segment &s, Tick) {
                if (s.has(Segment::kSyn))
                    first = s.sequence;
            }};
    TcpUser client;
    const unsigned user = tcp.add_user(client);
    std::map<std::uint16_t, std::uint32_t> before;
    Tick now = 0;
    for (unsigned n = 0; n < 5000; ++n, now += kMs) {
        const auto port = static_cast<std::uint16_t>(1000 + n % 70);
        const ConnectionId id = tcp.connect(user, {kA, port}, {kB, kPort}, now);
        if (n >= 70) {
            ASSERT_GT(static_cast<std::int32_t>(first - before[port]), 0) << "connection " << n;
        }
        before[port] = first;
        tcp.abort(id, now);
        tcp.run(now);
        tcp.receive(Segment{{kB, 1}, {kA, 1}, 0, 0, Segment::kRst, 0, 0, {}}, now); // removes what has ended
    }
}

TEST(Tcp, SilenceIsReportedAsAStall) {
    Pair p({.lost = 1000});
    Peer client(p.a, true, 10);
    p.a.connect(client.number, {kA, 1000}, {kB, kPort}, 0);
    p.run();
    EXPECT_EQ(client.ends[TcpEnd::stalled], 1u);
    EXPECT_EQ(p.a.counts().stalled, 1u);
    EXPECT_EQ(p.a.counts().segments_out, 11u); // the first, and ten repetitions
}

/// A connection to a peer that takes one segment and then has no room.
struct ClosedWindow {
    std::vector<std::pair<std::uint32_t, std::size_t>> sent; ///< sequence number and bytes of each segment with data
    std::uint32_t start = 0;
    Tcp tcp{{}, [this](const Segment &s, Tick) {
                if (s.has(Segment::kSyn))
                    start = s.sequence + 1;
                else if (!s.payload.empty())
                    sent.emplace_back(s.sequence - start, s.payload.size());
            }};
    Peer client{tcp, true, 5000};
    Tick now = 0;

    ClosedWindow() {
        tcp.connect(client.number, {kA, 1000}, {kB, kPort}, now);
        tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 0, start, Segment::kSyn | Segment::kAck, 1000, 1460, {}}, now);
        answer(1000, 0);
        sent.clear();
    }
    /// The peer has so many bytes, and room for so many.
    void answer(std::uint32_t bytes, std::uint16_t window) {
        tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 1, start + bytes, Segment::kAck, window, 0, {}}, now);
    }
    void until_time_out() {
        now = tcp.next();
        tcp.run(now);
    }
};

TEST(Tcp, AClosedWindowIsProbedAsLongAsTheOtherSideAnswers) {
    ClosedWindow p;
    for (unsigned n = 1; n <= 30; ++n) {
        p.until_time_out();
        ASSERT_EQ(p.sent.size(), n);
        EXPECT_EQ(p.sent.back(), std::pair(1000u, std::size_t{1}));
        p.answer(1000, 0);
    }
    EXPECT_TRUE(p.client.ends.empty());
    for (unsigned n = 0; n < 6; ++n) {
        p.until_time_out();
        EXPECT_TRUE(p.client.ends.empty()) << n + 1 << " probes without an answer";
    }
    p.until_time_out();
    EXPECT_EQ(p.client.ends[TcpEnd::stalled], 1u) << "ten time-outs less the four that made the interval 3.2 s";
}

TEST(Tcp, TheByteThatAClosedWindowRefusedIsSentAgainAsSoonAsItOpens) {
    ClosedWindow p;
    p.until_time_out();
    p.answer(1000, 0);
    p.sent.clear();
    p.answer(1000, 2000);
    ASSERT_FALSE(p.sent.empty());
    EXPECT_EQ(p.sent.front(), std::pair(1000u, std::size_t{1460}));
    EXPECT_EQ(p.tcp.next() - p.now, Tcp::Parameters{}.time_out) << "not the longer one of the probes";
}

TEST(Tcp, ThreeEqualAcknowledgementsRepeatNothingThatWasNotSent) {
    ClosedWindow p;
    for (unsigned equal = 0; equal <= 3; ++equal)
        p.answer(1000, 100);
    ASSERT_EQ(p.sent.size(), 2u);
    EXPECT_EQ(p.sent[0], std::pair(1000u, std::size_t{100}));
    EXPECT_EQ(p.sent[1], p.sent[0]);
    const std::uint32_t taken = 1000 + static_cast<std::uint32_t>(p.sent[1].second); // Linux takes all of a segment
    p.answer(taken, 2000);
    ASSERT_EQ(p.sent.size(), 4u);
    EXPECT_EQ(p.sent[2], std::pair(taken, std::size_t{1460}));
}

TEST(Tcp, TheWindowOfAnOvertakenSegmentIsNotTaken) {
    ClosedWindow p;
    const std::uint8_t byte = 0;
    const auto receive = [&](std::uint32_t sequence, std::uint16_t window) {
        p.tcp.receive(Segment{{kB, kPort}, {kA, 1000}, sequence, p.start + 1000, Segment::kAck, window, 0, {&byte, 1}},
                      p.now);
    };
    receive(2, 0);
    receive(1, 2000); // sent before the window closed
    EXPECT_TRUE(p.sent.empty());
    receive(3, 2000);
    EXPECT_FALSE(p.sent.empty());
}

TEST(Tcp, SegmentsAreNoLongerThanTheOtherSideTakes) {
    const auto longest = [](std::uint16_t option) {
        std::size_t bytes = 0;
        std::uint32_t start = 0;
        Tcp tcp{{}, [&](const Segment &s, Tick) {
                    start = s.has(Segment::kSyn) ? s.sequence + 1 : start;
                    bytes = std::max(bytes, s.payload.size());
                }};
        Peer client(tcp, true, 5000);
        tcp.connect(client.number, {kA, 1000}, {kB, kPort}, 0);
        tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 0, start, Segment::kSyn | Segment::kAck, 9000, option, {}}, 0);
        return bytes;
    };
    EXPECT_EQ(longest(256), 256u);
    EXPECT_EQ(longest(0), 536u) << "without the option";
}

TEST(Tcp, BytesBeyondAGapAreAcknowledgedThoughAnAnswerWentBeforeThem) {
    std::uint32_t start = 0, acknowledged = 0;
    Tcp tcp{{}, [&](const Segment &s, Tick) {
                if (s.has(Segment::kSyn))
                    start = s.sequence + 1;
                else
                    acknowledged = s.acknowledgement;
            }};
    struct AnswersOnce final : TcpUser {
        Tcp &tcp;
        bool answered = false;
        explicit AnswersOnce(Tcp &t) : tcp(t) {}
        void received(ConnectionId id, Bytes b, Tick now) override {
            if (!std::exchange(answered, true))
                tcp.send(id, b, now);
        }
    } client(tcp);
    const std::vector<std::uint8_t> bytes(100);
    tcp.connect(tcp.add_user(client), {kA, 1000}, {kB, kPort}, 0);
    tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 0, start, Segment::kSyn | Segment::kAck, 9000, 1460, {}}, 0);
    tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 101, start, Segment::kAck, 9000, 0, bytes}, 0);
    tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 1, start, Segment::kAck, 9000, 0, bytes}, 0);
    EXPECT_EQ(acknowledged, 201u);
}

TEST(Tcp, AnAcknowledgedFinIsNotSentAgain) {
    std::vector<unsigned> flags;
    std::uint32_t start = 0;
    Tcp tcp{{}, [&](const Segment &s, Tick) {
                flags.push_back(s.flags);
                start = s.has(Segment::kSyn) ? s.sequence + 1 : start;
            }};
    Peer client(tcp, true, 0);
    tcp.connect(client.number, {kA, 1000}, {kB, kPort}, 0);
    tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 0, start, Segment::kSyn | Segment::kAck, 9000, 1460, {}}, 0);
    tcp.receive(Segment{{kB, kPort}, {kA, 1000}, 1, start + 1, Segment::kAck, 9000, 0, {}}, 0);
    EXPECT_EQ(flags, (std::vector<unsigned>{Segment::kSyn, Segment::kAck, Segment::kAck | Segment::kFin}));
    EXPECT_EQ(tcp.next(), kNever) << "the other side may take any time to finish";
}

TEST(Tcp, AnAbortResetsTheOtherEnd) {
    Pair p({});
    struct Aborts final : TcpUser {
        Tcp &tcp;
        explicit Aborts(Tcp &t) : tcp(t) {}
        void received(ConnectionId id, Bytes, Tick now) override { tcp.abort(id, now); }
    } server(p.b);
    p.b.listen(p.b.add_user(server), kPort);
    Peer client(p.a, true, 5000);
    p.a.connect(client.number, {kA, 1000}, {kB, kPort}, 0);
    p.run();
    EXPECT_EQ(client.ends[TcpEnd::reset], 1u);
    EXPECT_EQ(p.a.connections() + p.b.connections(), 0u);
}

TEST(Tcp, ACheckpointInTheMiddleChangesNothing) {
    const auto run = [](bool interrupted) {
        Pair p({.lost = 50, .repeated = 50, .delayed = 100});
        Peer server(p.b, false, 20'000), client(p.a, true, 20'000);
        p.b.listen(server.number, kPort);
        for (unsigned n = 0; n < 20; ++n)
            p.a.connect(client.number, {kA, static_cast<std::uint16_t>(1000 + n)}, {kB, kPort}, 0);
        for (Tick t = kMs; interrupted && t < 2000 * kMs; t += 40 * kMs) {
            p.run(t);
            for (Tcp *end : {&p.a, &p.b}) {
                Archive save;
                end->archive(save);
                Archive load(save.bytes());
                end->archive(load);
                EXPECT_TRUE(load.at_end());
                Archive again;
                end->archive(again);
                EXPECT_EQ(again.bytes(), save.bytes());
            }
        }
        p.run();
        EXPECT_EQ(client.wrong + server.wrong, 0u);
        EXPECT_EQ(client.ends[TcpEnd::finished], 20u);
        return std::pair(p.now, p.a.counts().segments_out);
    };
    EXPECT_EQ(run(true), run(false));
}

TEST(Tcp, RandomSegmentsDoNoHarm) {
    Pair p({});
    Peer server(p.b, false, 3000), client(p.a, true, 3000);
    p.b.listen(server.number, kPort);
    Rng rng(11);
    for (unsigned n = 0; n < 300'000; ++n) {
        const std::vector<std::uint8_t> payload(rng.below(5) ? 0 : rng.below(3000));
        const auto near = [&] { return static_cast<std::uint32_t>(rng.below(5) ? rng.below(8) : rng.next()); };
        Segment s{{kA, static_cast<std::uint16_t>(1000 + rng.below(4))},
                  {kB, kPort},
                  near(),
                  near(),
                  static_cast<std::uint8_t>(rng.below(32)),
                  static_cast<std::uint16_t>(rng.next()),
                  0,
                  payload};
        p.b.receive(s, p.now += 10);
        p.flying.clear();
        if (n % 1000 == 0)
            p.b.run(p.now += 300 * kMs);
    }
}
