// SPDX-License-Identifier: BSD-3-Clause
// Events from the chips' journals have the same effect as events that reach attribution directly.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "attribution/attribution.hh"
#include "attribution/journal.hh"
#include "base/rng.hh"
#include "rows.hh"
#include "sim/event_queue.hh"

using namespace moscope;

namespace {

constexpr unsigned kCores = 4, kPerChip = 2;
constexpr Addr kBytes = 1 << 21;

/// Runs one function after another, each at its own tick.
struct At final : Component {
    std::function<void()> what;
    explicit At(EventQueue &q) : Component(q, "at", [](Component &c, Tick) { static_cast<At &>(c).what(); }) {}
};

/// Two chips of two cores with a journal each, and an attribution that gets the same events directly.
struct Journals : testing::Test {
    EventQueue queue;
    At at{queue};
    Attribution directly{{0, 0, 1, 1}, kBytes}, replayed{{0, 0, 1, 1}, kBytes};
    unsigned full = 0;
    std::vector<std::unique_ptr<Journal>> journals;

    void open(bool in_parts) {
        for (unsigned chip = 0; chip < kCores / kPerChip; ++chip)
            journals.push_back(std::make_unique<Journal>(queue, replayed, in_parts, [this] { ++full; }));
    }
    Journal &of(unsigned core) { return *journals[core / kPerChip]; }
    void when(Tick t, std::function<void()> what) {
        at.what = std::move(what);
        at.schedule(t);
        queue.run();
    }
    template <class F> void both(unsigned core, F &&f) {
        f(static_cast<x86::TransactionObserver &>(directly));
        f(static_cast<x86::TransactionObserver &>(of(core)));
    }
    void transaction(unsigned core, AccessKind kind, Addr dram, Tick exposed) {
        Access x;
        x.addr = PhysAddr(dram);
        x.size = 8;
        x.kind = kind;
        x.done = 100;
        both(core, [&](x86::TransactionObserver &to) {
            to.transaction({&x, core, 0x400000 + core, dram, exposed, false, true, 0});
        });
        x = {}; // the journal has copied what it needs
    }
    void store(unsigned core, Addr dram, unsigned size, Addr pc) {
        both(core, [&](x86::TransactionObserver &to) { to.stored(core, dram, size, pc); });
    }
    void replay() {
        for (const auto &j : journals)
            j->close();
        for (unsigned part = 0; part < Attribution::kParts; ++part)
            Journal::replay(journals, part, replayed);
    }
    void same() {
        replay();
        EXPECT_EQ(replayed.totals(), directly.totals());
        const AttributionRows of_replayed = replayed.rows(), of_direct = directly.rows();
        EXPECT_EQ(of_replayed.lines, of_direct.lines);
        EXPECT_EQ(of_replayed.pairs, of_direct.pairs);
        EXPECT_EQ(of_replayed.transfers, of_direct.transfers);
    }
};

} // namespace

TEST_F(Journals, AreReplayedInTheOrderOfTimeNotOfChips) {
    open(true);
    when(10, [&] { transaction(2, AccessKind::store, 0x1000, 5), store(2, 0x1000, 8, 0x500002); });
    when(20, [&] { transaction(0, AccessKind::load, 0x1000, 7); });
    when(30, [&] { transaction(3, AccessKind::store, 0x1008, 0), store(3, 0x1008, 8, 0x500003); });
    when(40, [&] { transaction(0, AccessKind::load, 0x1000, 9); });
    EXPECT_EQ(replayed.exposed(), 0) << "nothing before the replay";
    same();
    EXPECT_EQ(replayed.exposed(), 21);
}

TEST_F(Journals, AStoreAfterATransactionIsNotPutBeforeIt) {
    open(true);
    when(10, [&] { store(0, 0x1000, 8, 0x500000); });
    when(20, [&] { transaction(2, AccessKind::store, 0x1000, 3), store(2, 0x1000, 8, 0x500002); });
    when(30, [&] {
        transaction(0, AccessKind::store, 0x1000, 3), store(0, 0x1010, 8, 0x500001), store(0, 0x1000, 4, 0x500003);
    });
    when(40, [&] { transaction(2, AccessKind::load, 0x1010, 4); });
    same();
}

TEST_F(Journals, RunsOfStoresToOneLineAreOneEntry) {
    open(false);
    for (unsigned n = 0; n < 4000; ++n)
        when(10 + n, [&] { store(0, 0x1000 + n % 4 * 64 + n % 60, 4, 0x500000 + n); });
    EXPECT_EQ(full, 0u);
    same();
}

TEST_F(Journals, AStoreAfterAReplayIsANewEntry) {
    open(true);
    when(10, [&] { store(0, 0x1000, 8, 0x500000); });
    replay();
    when(20, [&] { store(0, 0x1008, 8, 0x500001); });
    replay();
    when(30, [&] { transaction(2, AccessKind::load, 0x1008, 4); });
    same();
    EXPECT_EQ(pairs_of(replayed).back().writer, 0x500001u) << "the second store's instruction";
}

TEST_F(Journals, ReportOnceThatTheyAreFullAndAreEmptyAfterTheReplay) {
    open(true);
    for (unsigned n = 0; n < 2000; ++n)
        when(10 + n, [&] { transaction(0, AccessKind::load, 0x1000 + n % 5 * 0x1000, 1); });
    EXPECT_EQ(full, 1u) << "said once";
    EXPECT_TRUE(of(0).full());
    EXPECT_FALSE(of(2).full());
    same();
    EXPECT_FALSE(of(0).full());
}

TEST_F(Journals, RandomEventsHaveTheSameEffectReplayedAsDirect) {
    for (const bool in_parts : {true, false}) {
        SCOPED_TRACE(in_parts);
        journals.clear();
        open(in_parts);
        Rng rng(in_parts + 1);
        const Tick begin = queue.now();
        for (unsigned n = 0; n < 20'000; ++n) {
            when(begin + 1 + 2 * n, [&] {
                const auto core = static_cast<unsigned>(rng.below(kCores));
                // Lines in both parts; more lines of one page than those whose stores a journal remembers.
                const Addr dram = rng.below(3) * 0x1000 + rng.below(6) * 64 + rng.below(8) * 8;
                switch (rng.below(6)) {
                case 0: return transaction(core, AccessKind::load, dram, static_cast<Tick>(rng.below(50)));
                case 1:
                    both(core, [&](x86::TransactionObserver &to) {
                        to.spun({core, {dram, 0x400000, dram, 0x1000, true}, 1000, 7});
                    });
                    return;
                case 3: return both(core, [&](x86::TransactionObserver &to) { to.prefetched(core, dram); });
                case 2: directly.stored_by_device(dram, 8); return of(core).stored_by_device(dram, 8);
                default: // a transaction brings the right to write
                    transaction(core, AccessKind::store, dram, 0);
                    for (auto more = rng.below(4); more-- > 0;)
                        store(core, dram, 8, 0x500000 + core + rng.below(3) * 16);
                }
            });
            if (rng.below(700) == 0)
                replay();
        }
        same();
    }
}
