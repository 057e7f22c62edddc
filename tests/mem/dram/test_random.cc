// SPDX-License-Identifier: BSD-3-Clause
// Random traffic on random controllers: every command obeys the standards' rules by an independent checker, every
// request is served once, the bus time adds up, and when the controller is woken makes no difference.
#include <map>
#include <memory>
#include <tuple>

#include <gtest/gtest.h>

#include "base/rng.hh"
#include "mem/dram/checker.hh"
#include "mem/dram/fixture.hh"

namespace moscope::dram::testing {
namespace {

/// Issues random requests at random times, as fast as the controller takes them.
class Traffic : public Component {
  public:
    Traffic(EventQueue &q, DramController &d, std::uint64_t seed, unsigned requests)
        : Component(q, "traffic", &Traffic::wake), dram_(d), rng_(seed), left_(requests) {
        lines_ = 64u << rng_.below(9);
        think_ = Tick{1} << (10 + rng_.below(18));
        writes_ = rng_.below(100);
        d.set_done(&Traffic::done, this);
        d.set_space(&Traffic::space, this);
        schedule(0);
    }
    std::map<std::uintptr_t, Tick> completed;
    unsigned twice = 0, early = 0;
    std::uint64_t issued = 0;

  private:
    static void wake(Component &c, Tick now) {
        auto &t = static_cast<Traffic &>(c);
        while (t.left_) {
            if (!t.drawn_) {
                t.next_.write = t.rng_.below(100) < t.writes_;
                t.next_.addr = t.rng_.below(t.lines_) * kLineBytes + (t.rng_.below(4) << 20);
                t.next_.context = reinterpret_cast<void *>(static_cast<std::uintptr_t>(++t.issued));
                t.drawn_ = true;
            }
            if (!t.dram_.can_accept(t.next_.write))
                return;
            t.drawn_ = false;
            --t.left_;
            t.dram_.push(t.next_, now);
            if (t.rng_.below(8) == 0) {
                t.schedule_no_later_than(now + 1 +
                                         static_cast<Tick>(t.rng_.below(static_cast<std::uint64_t>(t.think_))));
                return;
            }
        }
    }
    static void done(void *self, const DramRequest &r, Tick when) {
        auto *t = static_cast<Traffic *>(self);
        t->early += when < t->queue().now();
        t->twice += !t->completed.emplace(reinterpret_cast<std::uintptr_t>(r.context), when).second;
    }
    static void space(void *self, Tick now) { static_cast<Traffic *>(self)->schedule_no_later_than(now); }

    DramController &dram_;
    Rng rng_;
    unsigned left_;
    std::uint64_t lines_, writes_;
    Tick think_;
    DramRequest next_;
    bool drawn_ = false;
};

DramParams random_controller(Rng &rng) {
    DramParams p = small_part();
    p.tCK_fs = 1'250'000 + static_cast<Tick>(rng.below(4)) * 625'000;
    p.t = {.tCL = 5,
           .tCWL = 4,
           .tRCD = 5,
           .tRP = 5,
           .tRAS = 18,
           .tRC = 23,
           .tWR = 6,
           .tWTR = 3,
           .tRTP = 3,
           .tRRD = 3,
           .tFAW = 14,
           .tCCD = 2,
           .tRTRS = 1,
           .tRTW = 1,
           .tREFI = 900,
           .tRFC = 42}; // clocks
    TimingParams::visit(
        [&](const std::string_view name, Tick &value, Tick, Tick) {
            if (name != "tRC") // follows from the others
                value = (value + static_cast<Tick>(rng.below(5))) * p.tCK_fs - static_cast<Tick>(rng.below(1000));
        },
        p.t);
    p.t.tRAS = std::max(p.t.tRAS, p.t.tRCD);
    p.t.tRC = p.t.tRAS + p.t.tRP + static_cast<Tick>(rng.below(3)) * p.tCK_fs;
    if (rng.below(3) == 0)
        p.t.tFAW = 0;
    p.channels = rng.below(2) ? 2 : 1;
    p.ganged = p.channels == 2 && rng.below(2);
    p.burst_lengths = 1u << 8 | 1u << 4;
    p.ranks = 1u << rng.below(3);
    p.banks = 4u << rng.below(2);
    constexpr const char *kMappings[] = {"row rank bank column channel", "rank row column bank channel",
                                         "row:3 rank column:3 row bank column channel", "row column bank channel rank"};
    p.mapping = kMappings[rng.below(4)];
    p.bank_swizzle = rng.below(2);
    p.channel_hash = p.bus_channels() == 2 && rng.below(2);
    p.page_policy = static_cast<PagePolicy>(rng.below(4));
    p.idle_close_fs = static_cast<Tick>(1 + rng.below(40)) * p.tCK_fs;
    p.read_entries = 1 + static_cast<unsigned>(rng.below(48));
    p.scheduler_depth = 1 + static_cast<unsigned>(rng.below(p.read_entries));
    p.write_entries = 2 + static_cast<unsigned>(rng.below(32));
    p.write_high = 1 + static_cast<unsigned>(rng.below(p.write_entries));
    p.write_low = static_cast<unsigned>(rng.below(p.write_high));
    constexpr unsigned kBypass[] = {0, 1, 4, 15, 1000};
    p.bypass_max = kBypass[rng.below(5)];
    p.frontend_fs = static_cast<Tick>(rng.below(10'000'000));
    p.backend_fs = static_cast<Tick>(rng.below(10'000'000));
    p.critical_word_first = rng.below(2);
    return p;
}

struct Outcome {
    std::vector<DramCommand> commands;
    ChannelStats stats;
    std::map<std::uintptr_t, Tick> completed;
};

Outcome simulate(const DramParams &p, std::uint64_t seed, bool eager) {
    EventQueue queue;
    DramController dram(queue, "dram", p);
    Recorder trace;
    dram.set_trace(&Recorder::record, &trace);
    dram.set_eager(eager);
    Traffic traffic(queue, dram, seed, 600);
    queue.run();
    dram.sync(queue.now() + 200'000 * kNs); // what is left of the writes
    EXPECT_TRUE(dram.idle());
    EXPECT_EQ(traffic.twice, 0u);
    EXPECT_EQ(traffic.early, 0u);
    EXPECT_EQ(traffic.completed.size(), 600u);
    const ChannelStats s = dram.stats();
    EXPECT_EQ(s.reads + s.writes + s.forwarded + s.merged, 600u);
    return {trace.commands, s, traffic.completed};
}

/// Of a counter with one value, or of one by reason.
template <class T> void expect_same(unsigned part, const char *name, const T &a, const T &b) {
    EXPECT_EQ(a, b) << name << " of part " << part;
}
template <class N, class T> void expect_same(unsigned part, const char *name, const N &, const T &a, const T &b) {
    EXPECT_EQ(a, b) << name << " of part " << part;
}

TEST(DramRandom, EveryCommandKeepsEveryRule) {
    Rng rng(7);
    for (unsigned i = 0; i < 120; ++i) {
        const DramParams p = random_controller(rng);
        p.validate();
        const Outcome r = simulate(p, i, false);
        for (unsigned channel = 0; channel < p.bus_channels(); ++channel) {
            Checker checker(p);
            for (const DramCommand &c : r.commands)
                if (c.channel == channel)
                    checker.see(c);
            ASSERT_TRUE(checker.errors.empty()) << "machine " << i << ": " << checker.errors.front();
        }
    }
}

TEST(DramRandom, BusTimeAddsUp) {
    Rng rng(8);
    for (unsigned i = 0; i < 60; ++i) {
        const DramParams p = random_controller(rng);
        EventQueue queue;
        DramController dram(queue, "dram", p);
        Recorder trace;
        dram.set_trace(&Recorder::record, &trace);
        Traffic traffic(queue, dram, i, 600);
        queue.run();
        dram.sync(queue.now());
        for (unsigned c = 0; c < dram.channels(); ++c) {
            const ChannelStats s = dram.stats(c);
            Cycle sum = s.busy, bursts = 0, last_end = 0;
            for (unsigned r = 0; r < kLostReasons; ++r) {
                EXPECT_GE(s.lost[r], 0) << kLostNames[r];
                sum += s.lost[r];
            }
            const Cycle burst = p.burst_length() / 2;
            for (const DramCommand &d : trace.commands)
                if (d.channel == c && (d.kind == CommandKind::read || d.kind == CommandKind::write)) {
                    ++bursts;
                    const Tick latency = d.kind == CommandKind::read ? p.t.tCL : p.t.tCWL;
                    last_end = d.cycle + (latency + p.tCK_fs - 1) / p.tCK_fs + burst;
                }
            EXPECT_EQ(sum, s.accounted);
            EXPECT_EQ(s.busy, bursts * burst) << "counted from the commands";
            EXPECT_GE(s.accounted, last_end) << "all the time to the last burst";
            EXPECT_EQ(s.row_hits + s.row_misses + s.row_conflicts, s.reads + s.writes);
        }
    }
}

TEST(DramRandom, BusTimeOfShortWindowsAddsUp) {
    Rng rng(11);
    for (unsigned i = 0; i < 60; ++i) {
        const DramParams p = random_controller(rng);
        EventQueue queue;
        DramController dram(queue, "dram", p);
        Traffic traffic(queue, dram, i, 600);
        std::vector<ChannelStats> begin(dram.channels());
        for (Tick end = 0; queue.next() != kNever;) {
            end = std::max(end, queue.next()) + static_cast<Tick>(rng.below(100)) * p.tCK_fs;
            queue.run(end);
            dram.sync(end);
            for (unsigned c = 0; c < dram.channels(); ++c) {
                const ChannelStats now = dram.stats(c), s = counted_between(begin[c], now);
                begin[c] = now;
                Cycle sum = s.busy;
                for (unsigned r = 0; r < kLostReasons; ++r) {
                    EXPECT_GE(s.lost[r], 0) << kLostNames[r];
                    sum += s.lost[r];
                }
                EXPECT_EQ(sum, s.accounted);
            }
        }
    }
}

TEST(DramRandom, WakingAtEveryCommandChangesNothing) {
    Rng rng(9);
    for (unsigned i = 0; i < 60; ++i) {
        const DramParams p = random_controller(rng);
        const Outcome lazy = simulate(p, i, false), eager = simulate(p, i, true);
        EXPECT_EQ(lazy.completed, eager.completed) << "machine " << i;
        std::map<unsigned, std::vector<Cycle>> a, b;
        for (const DramCommand &c : lazy.commands)
            a[c.channel].push_back(c.cycle * 8 + static_cast<Cycle>(c.kind));
        for (const DramCommand &c : eager.commands)
            b[c.channel].push_back(c.cycle * 8 + static_cast<Cycle>(c.kind));
        // The runs end at different ticks, and refreshes go on: compare what both have.
        for (auto &[channel, commands] : a) {
            auto &other = b[channel];
            const std::size_t n = std::min(commands.size(), other.size());
            commands.resize(n), other.resize(n);
            EXPECT_EQ(commands, other) << "machine " << i;
        }
    }
}

TEST(DramRandom, WorkThatAChannelDefersHasTheSameResults) {
    Rng rng(12);
    for (unsigned i = 0; i < 60; ++i) {
        DramParams p = random_controller(rng);
        p.page_policy = static_cast<PagePolicy>(i % 4);
        Traced whole(p), lagging(p);
        const Cycle think = 1 + static_cast<Cycle>(rng.below(60));
        Cycle now = 0;
        for (unsigned n = 0; n < 600; ++n) {
            now += 1 + static_cast<Cycle>(rng.below(static_cast<std::uint64_t>(think)));
            whole.run(now), lagging.run_reads(now);
            ASSERT_EQ(whole.next_read(), lagging.next_read()) << "part " << i << ", clock " << now;
            const bool write = rng.below(8) == 0;
            if (write ? whole.writes() == p.write_entries : whole.reads() == p.read_entries)
                continue;
            const Wanted w{static_cast<unsigned>(rng.below(p.ranks)), static_cast<unsigned>(rng.below(p.banks)),
                           static_cast<unsigned>(rng.below(3)), write, now + 5};
            add(whole, w, n), add(lagging, w, n);
        }
        whole.run(now + 10'000), lagging.run(now + 10'000);
        const ChannelStats a = whole.stats(), b = lagging.stats();
        ChannelStats::visit([i](const char *name, const auto &...of) { expect_same(i, name, of...); }, a, b);
        ASSERT_EQ(whole.trace.commands.size(), lagging.trace.commands.size());
        for (std::size_t c = 0; c < whole.trace.commands.size(); ++c) {
            EXPECT_EQ(whole.trace.commands[c].cycle, lagging.trace.commands[c].cycle);
            EXPECT_EQ(whole.trace.commands[c].kind, lagging.trace.commands[c].kind);
        }
    }
}

TEST(DramRandom, SameSeedSameRun) {
    Rng rng(10);
    const DramParams p = random_controller(rng);
    const Outcome a = simulate(p, 1, false), b = simulate(p, 1, false);
    EXPECT_EQ(a.completed, b.completed);
    EXPECT_EQ(a.stats.lost, b.stats.lost);
}

} // namespace
} // namespace moscope::dram::testing
