// SPDX-License-Identifier: BSD-3-Clause
// Classes of misses and of waiting, from hand-made transactions.
#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "attribution/attribution.hh"
#include "mem/ruby/runtime/prelude_enums.hh"
#include "rows.hh"

using namespace moscope;

namespace {

constexpr Addr kLine = 0x1000;

struct Transactions : testing::Test {
    Attribution a{{0, 0, 1, 1}, 1 << 21};

    void transaction(unsigned core, AccessKind kind, Addr at = kLine, Tick exposed = 10, bool held = false) {
        Access x;
        x.addr = PhysAddr(at);
        x.size = 8;
        x.kind = kind;
        x.held = held;
        x.issued = 0;
        x.done = 100;
        a.transaction({&x, core, 0x400000 + core, at, exposed, false, true, 0});
    }
    void load(unsigned core, Addr at = kLine) { transaction(core, AccessKind::load, at); }
    /// A store out of the buffer that needs a transaction, for which no core waits. `held`: it had the line when it asked.
    void store(unsigned core, Addr at = kLine, bool held = false) {
        transaction(core, AccessKind::store, at, 0, held);
        a.stored(core, at, 8, 0x500000 + core);
    }
    void rmw(unsigned core, bool held = false, Addr at = kLine) {
        transaction(core, AccessKind::rmw, at, 10, held);
        a.stored(core, at, 8, 0x500000 + core);
    }
    unsigned count(const char *miss) const { return a.totals()["classes"][miss]["count"]; }
};

} // namespace

TEST_F(Transactions, AStoreToALineThatOthersHaveReadIsAnUpgrade) {
    load(0);
    load(1);
    store(0, kLine, true);
    EXPECT_EQ(count("upgrade"), 1u);
    load(1);
    EXPECT_EQ(count("true_sharing"), 1u);
    store(0, kLine, true); // again, after the other has read it
    EXPECT_EQ(count("upgrade"), 2u);
    EXPECT_EQ(count("capacity"), 0u);
}

TEST_F(Transactions, AStoreToALineThatTheCoreHoldsCleanAndAloneIsAnUpgrade) {
    load(0);
    store(0, kLine, true); // from E to M: nothing is sent
    EXPECT_EQ(count("upgrade"), 1u);
    load(0, 2 * kLine);
    rmw(0, true, 2 * kLine);
    EXPECT_EQ(count("upgrade"), 2u);
    EXPECT_EQ(count("cold"), 2u);
    EXPECT_EQ(count("capacity"), 0u);
}

TEST_F(Transactions, AStoreToAPrefetchedLineIsAnUpgrade) {
    a.prefetched(0, kLine);
    store(0, kLine, true);
    EXPECT_EQ(count("upgrade"), 1u);
    store(1);
    a.prefetched(0, kLine); // what the other has written comes with it
    store(0, kLine, true);
    EXPECT_EQ(count("upgrade"), 2u);
    EXPECT_EQ(count("cold"), 1u);
    EXPECT_EQ(count("true_sharing") + count("false_sharing"), 0u);
}

TEST_F(Transactions, ALoadOfALineThatWasReplacedSinceItWasPrefetchedIsACapacityMiss) {
    store(1);
    a.prefetched(0, kLine);
    load(0);
    EXPECT_EQ(count("capacity"), 1u);
    store(1, kLine, true);
    load(0);
    EXPECT_EQ(count("true_sharing"), 1u);
}

TEST_F(Transactions, AStoreToALineThatOthersHaveReadAndThatWasReplacedSinceIsNoUpgrade) {
    load(0);
    load(1);
    store(0);
    EXPECT_EQ(count("capacity"), 1u);
    EXPECT_EQ(count("upgrade"), 0u);
}

TEST_F(Transactions, AnUpgradeThatAnotherCoresStoreHasOvertakenIsSharing) {
    load(0);
    load(1);
    store(1, kLine + 8, true);
    store(0, kLine, true); // it had the line when it asked, and no more when it was answered
    store(1, kLine, true); // likewise
    EXPECT_EQ(count("upgrade"), 1u);
    EXPECT_EQ(count("false_sharing"), 1u);
    EXPECT_EQ(count("true_sharing"), 1u);
}

TEST_F(Transactions, AMissOnALineThatAnotherCoresBufferedStoreTookIsSharing) {
    load(1);
    load(0);
    transaction(0, AccessKind::store, kLine, 0, true); // has the line, but waits in the buffer behind an older store
    load(1);
    EXPECT_EQ(count("true_sharing"), 1u);
    transaction(0, AccessKind::store, kLine, 0, true);
    load(1, kLine + 8);
    EXPECT_EQ(count("false_sharing"), 1u);
    EXPECT_EQ(count("capacity"), 0u);
}

TEST_F(Transactions, AWaitForAStoreIsChargedToThePreviousWriter) {
    store(0);
    store(1);
    Access x;
    x.addr = PhysAddr(kLine);
    x.kind = AccessKind::store;
    a.transaction({&x, 1, 0x400001, kLine, 500, false, true, 0, true});
    std::map<Addr, std::pair<Tick, std::uint32_t>> by_writer; // stall, transactions
    for (const PairRow &p : pairs_of(a)) {
        by_writer[p.writer].first += p.stall;
        by_writer[p.writer].second += p.count;
    }
    EXPECT_EQ(by_writer, (decltype(by_writer){{0, {0, 1}}, {0x500000, {500, 1}}}));
}

TEST_F(Transactions, ALoadBehindAStoreThatIsYetToBePerformedIsChargedToThePreviousWriter) {
    store(0);
    transaction(1, AccessKind::store, kLine, 0); // waits in the buffer behind an older store
    Access x;
    x.addr = PhysAddr(kLine + 8);
    x.secondary = true;
    x.done = 100;
    a.transaction({&x, 1, 0x400008, kLine + 8, 70, false, true, 0});
    a.stored(1, kLine, 8, 0x500001);
    a.transaction({&x, 1, 0x400009, kLine + 8, 30, false, true, 0});
    std::map<Addr, Addr> writers;
    for (const PairRow &p : pairs_of(a))
        writers[p.waiter] = p.writer;
    EXPECT_EQ(writers[0x400008], 0x500000u);
    EXPECT_EQ(writers[0x400009], 0u);
}

TEST_F(Transactions, UserCodeIsCountedByAddressSpaceAndKernelCodeIsNot) {
    Access x;
    x.addr = PhysAddr(kLine);
    x.done = 100;
    for (const Addr space : {0x1000, 0x2000, 0x2000})
        for (const Addr pc : {Addr{0x400000}, ~Addr{0xfff}})
            a.transaction({&x, 0, pc, kLine, 10, false, pc < 1 << 30, space});
    a.spun({1, {kLine + 4, 0x400000, kLine + 4, 0x1000, true}, 1000, 7});
    std::map<std::pair<Addr, Addr>, std::pair<std::uint64_t, Tick>> seen;
    for (const PairRow &p : pairs_of(a)) {
        seen[{p.waiter, p.address_space}].first += p.count;
        seen[{p.waiter, p.address_space}].second += p.stall + p.spin;
    }
    EXPECT_EQ(seen, (decltype(seen){
                        {{0x400000, 0x1000}, {1, 1010}}, {{0x400000, 0x2000}, {2, 20}}, {{~Addr{0xfff}, 0}, {3, 30}}}));
}

TEST_F(Transactions, AWaitForTheStoreBufferHasTheMissClassOfTheStoreWaitedFor) {
    constexpr Addr kOther = kLine + kLineBytes;
    load(0);
    load(1);
    store(0, kLine, true);
    store(0, kOther); // its transaction ends first though its line is waited for later, or not at all
    Access x;
    x.addr = PhysAddr(kLine);
    x.kind = AccessKind::store;
    a.transaction({&x, 0, 0x400000, kLine, 500, false, true, 0, true});
    const auto all = a.totals();
    EXPECT_EQ(all["classes"]["upgrade"], (nlohmann::json{{"count", 1}, {"stall", 500}}));
    EXPECT_EQ(all["classes"]["cold"]["stall"], 20);
    EXPECT_EQ(all["exposed"], 520);
    EXPECT_EQ(all["transactions"], 4) << "the wait is none of its own";
}

TEST_F(Transactions, TransfersAreCountedBySupplierAndByChips) {
    Access x;
    x.addr = PhysAddr(kLine);
    x.kind = AccessKind::store;
    x.done = 100;
    x.supplier = ruby::MachineType_Directory;
    x.supplier_chip = 0;
    a.transaction({&x, 1, 0x400000, kLine, 10, false, true, 0});
    x.supplier = ruby::MachineType_L1Cache;
    for (const unsigned core : {2, 3}) // of one chip
        a.transaction({&x, core, 0x400000, kLine, 10, false, true, 0});
    a.transaction({&x, 3, 0x400000, kLine, 500, false, true, 0, true}); // the buffer, after the same store
    load(0);                                                            // of its own chip, or without a supplier
    std::map<unsigned, std::tuple<unsigned, unsigned, std::uint64_t, Tick>>
        found; // by supplier: from, to, count, stall
    for (const TransferRow &t : transfers_of(a))
        found[t.supplier] = {t.from, t.to, t.count, t.stall};
    EXPECT_EQ(found, (decltype(found){{ruby::MachineType_L1Cache, {0, 1, 2, 520}},
                                      {ruby::MachineType_Directory, {0, 0, 1, 10}}}));
}

TEST_F(Transactions, ALockedOperationOnALineThatOthersHaveReadIsAnUpgradeToo) {
    rmw(0);
    load(1);
    rmw(0, true);
    EXPECT_EQ(count("upgrade"), 1u);
    EXPECT_EQ(count("capacity"), 0u);
}

TEST_F(Transactions, AStoreToALineThatWasReplacedIsACapacityMiss) {
    store(0);
    store(0);
    EXPECT_EQ(count("capacity"), 1u);
    EXPECT_EQ(count("upgrade"), 0u);
}

TEST_F(Transactions, ALineHasTheFirstVirtualAddressThatAnAccessUsed) {
    Access x;
    x.addr = PhysAddr(kLine);
    x.kind = AccessKind::fetch;
    x.done = 100;
    a.transaction({&x, 0, 0x400000, 0, 10, false, true, 0x1000}); // fetches have none
    load(1, kLine);
    load(1, kLine + 8);
    const LineRow line = lines_of(a)[0];
    EXPECT_EQ(line.va, kLine);
    EXPECT_TRUE(line.flags & LineRow::kFetch) << "a fetch";
}

TEST_F(Transactions, LinesOfBothPagePartitionsAreInOneReport) {
    constexpr Addr kOther = kLine + 0x2000; // its page's number has another parity
    ASSERT_NE(Attribution::part_of(kLine), Attribution::part_of(kOther));
    load(0, kOther);
    load(0, kLine);
    store(1, kOther);
    load(0, kOther);
    EXPECT_EQ(a.totals()["transactions"], 4);
    const auto lines = lines_of(a);
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(std::pair(lines[0].line, lines[0].transfers), std::pair(kLine, std::uint64_t{1})) << "by address";
    EXPECT_EQ(std::pair(lines[1].line, lines[1].transfers), std::pair(kOther, std::uint64_t{3}));
    EXPECT_EQ(count("true_sharing"), 1u);
}

TEST_F(Transactions, KeptRowsStayUnchangedUntilTheNextKeep) {
    constexpr Addr kOther = kLine + 0x2000; // in the other part
    const auto all = [](const AttributionRows &r) { return std::tuple(r.lines, r.pairs, r.transfers); };
    EXPECT_EQ(all(a.kept_rows()), all(AttributionRows{}));
    load(0);
    store(1, kOther);
    const auto then = all(a.rows());
    a.keep();
    load(0, kOther);
    load(2);
    load(0, kLine + 64);
    EXPECT_NE(all(a.rows()), then);
    EXPECT_EQ(all(a.kept_rows()), then);
    a.keep();
    EXPECT_EQ(all(a.kept_rows()), all(a.rows()));
    a.reset();
    EXPECT_EQ(all(a.kept_rows()), all(AttributionRows{}));
}

TEST_F(Transactions, AMissOnALineThatADeviceWroteIsSharing) {
    load(0);
    load(1);
    a.stored_by_device(kLine + 8, 8);
    load(0);
    load(1, kLine + 8);
    EXPECT_EQ(count("false_sharing"), 1u);
    EXPECT_EQ(count("true_sharing"), 1u);
}

TEST_F(Transactions, APairTellsADeviceThatWroteLastFromNoWriter) {
    load(0);
    a.stored_by_device(kLine + 8, 8);
    load(0);
    std::set<Addr> writers;
    for (const PairRow &pair : pairs_of(a))
        writers.insert(pair.writer);
    EXPECT_EQ(writers, (std::set<Addr>{0, 1}));
}

TEST_F(Transactions, SpinTimeIsApartFromStallAndHasTheLastWriterBeforeTheFetch) {
    rmw(0);
    load(1);
    a.spun({1, {kLine + 4, 0x600000, kLine + 4, 0, true}, 1000, 7});
    const auto all = a.totals();
    EXPECT_EQ(all["spin"], 1000);
    EXPECT_EQ(all["exposed"], 20);
    EXPECT_EQ(lines_of(a)[0].spin, 1000);
    EXPECT_EQ(lines_of(a)[0].spin_iterations, 7u);
    const auto pairs = pairs_of(a);
    const auto spun = std::ranges::find(pairs, 1000, &PairRow::spin);
    ASSERT_NE(spun, pairs.end());
    EXPECT_EQ(std::tuple(spun->writer, spun->waiter, spun->offset), std::tuple(0x500000u, 0x600000u, 4));
}

TEST_F(Transactions, ManyAreAllCountedAndResetForgetsThoseNotCountedYet) {
    load(0, 8 * kLine);
    a.reset();
    constexpr unsigned kMany = 5000, kLines = 700; // more than are counted at a time
    std::map<Addr, std::pair<std::uint64_t, Tick>> model;
    for (unsigned i = 0; i < kMany; ++i) {
        const Addr at = kLine + (i * 7919 % kLines) * kLineBytes;
        transaction(i % 4, i % 3 ? AccessKind::load : AccessKind::fetch, at, i);
        ++model[at].first;
        model[at].second += i;
        if (i == kMany / 2) {
            EXPECT_EQ(a.totals()["transactions"], i + 1) << "reading settles the counts";
        }
    }
    const auto all = a.totals();
    EXPECT_EQ(all["transactions"], kMany);
    EXPECT_EQ(all["exposed"], Tick{kMany} * (kMany - 1) / 2);
    const auto lines = lines_of(a);
    ASSERT_EQ(lines.size(), model.size());
    std::vector<std::pair<std::uint64_t, Tick>> of_pairs(lines.size());
    for (const PairRow &p : pairs_of(a)) {
        of_pairs[p.line].first += p.count;
        of_pairs[p.line].second += p.stall;
    }
    for (std::size_t n = 0; n < lines.size(); ++n) {
        EXPECT_EQ(std::pair(lines[n].transfers, Tick{lines[n].stall}), model.at(lines[n].line));
        EXPECT_EQ(of_pairs[n], model.at(lines[n].line));
    }
    transaction(0, AccessKind::load);
    a.reset();
    EXPECT_TRUE(lines_of(a).empty());
    load(0);
    EXPECT_EQ(lines_of(a)[0].transfers, 1u) << "nothing of before";
}
