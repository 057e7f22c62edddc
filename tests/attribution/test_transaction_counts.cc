// SPDX-License-Identifier: BSD-3-Clause
// Kinds of transactions are counted as a map would, and lines are sums of theirs.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "attribution/line_totals.hh"

using namespace moscope;

namespace {

auto key(const TransactionKey &k) {
    return std::tuple(k.writer, k.waiter, k.address_space, k.line, k.use, k.miss, k.offset, k.supplier, k.from, k.to);
}

TransactionKey some(std::mt19937_64 &random, unsigned few) {
    const auto one = [&](unsigned of) { return random() % of; };
    TransactionKey k;
    k.writer = one(2) ? 0xffffffff81000000 + one(few) : 0;
    k.waiter = 0x400000 + one(few);
    k.address_space = 0x1000 * one(3);
    k.line = static_cast<std::uint32_t>(one(few));
    k.use = static_cast<std::uint32_t>(one(2));
    k.miss = static_cast<MissClass>(one(kMissClasses + 1));
    k.offset = static_cast<std::uint8_t>(one(2) * 8);
    if (one(2)) {
        k.supplier = static_cast<std::uint8_t>(one(3));
        k.from = static_cast<std::uint8_t>(one(8));
    }
    return k;
}

} // namespace

TEST(TransactionCounts, AreThoseOfAMapWhetherFewOrMany) {
    for (const unsigned few : {2u, 40u}) {
        std::mt19937_64 random(few);
        TransactionCounts counts;
        for (unsigned round = 0; round < 2; ++round) { // the second after a reset
            std::map<decltype(key(TransactionKey{})), std::pair<Tick, std::uint64_t>> model;
            std::vector<decltype(key(TransactionKey{}))> order;
            const unsigned n =
                few == 2 ? 5 : 300'000; // fewer than are under way at a time; more than the cells at first
            for (unsigned i = 0; i < n; ++i) {
                const TransactionKey k = some(random, few);
                counts.add(k, i, i % 2);
                const auto [at, fresh] = model.try_emplace(key(k));
                at->second.first += i;
                at->second.second += i % 2;
                if (fresh)
                    order.push_back(key(k));
                if (i == n / 2)
                    counts.settle();
            }
            counts.settle();
            ASSERT_EQ(counts.size(), model.size());
            for (std::size_t i = 0; i < counts.size(); ++i) {
                ASSERT_EQ(key(counts[i].key), order[i]) << "in the order of their coming";
                ASSERT_EQ(std::pair(counts[i].time, counts[i].count), model.at(order[i]));
            }
            counts.reset();
            EXPECT_EQ(counts.size(), 0u);
        }
    }
}

TEST(TransactionCounts, OfALineAddUp) {
    std::mt19937_64 random(1);
    TransactionCounts counts;
    for (unsigned i = 0; i < 20'000; ++i)
        counts.add(some(random, 9), 1 + i, 1);
    counts.settle();
    Tick of_all = 0, of_lines = 0, of_code = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
        of_all += counts[i].time;
    const LineIndex lines({&counts});
    ASSERT_EQ(lines.lines().size(), 18u) << "of nine lines two uses each";
    std::uint64_t transactions = 0, turns = 0;
    std::pair<Addr, std::uint32_t> before{};
    for (const auto &sum : lines.lines()) {
        EXPECT_TRUE(std::pair(sum.line, sum.use) > before || &sum == &lines.lines().front());
        before = {sum.line, sum.use};
        const LineTotals t = lines.totals(sum);
        EXPECT_EQ(t.waiting(), sum.waited);
        WaitSums of_fights, of_classes;
        for (const auto &[f, w] : t.pairs) {
            of_fights.stall += w.stall;
            of_fights.spin += w.spin;
            of_fights.count += w.count;
        }
        for (unsigned k = 0; k < kMissClasses; ++k) {
            of_classes.stall += t.stall_by_class[k];
            of_classes.count += t.by_class[k];
        }
        EXPECT_EQ(std::tuple(of_fights.stall, of_fights.spin, of_fights.count), std::tuple(t.stall, t.spin, t.count));
        EXPECT_EQ(std::pair(of_classes.stall, of_classes.count), std::pair(t.stall, t.count));
        std::uint64_t moved = 0;
        for (const auto &[transfer, w] : t.transfers)
            moved += w.count;
        EXPECT_LT(moved, t.count);
        EXPECT_GT(moved, t.count / 3);
        of_lines += t.waiting();
        transactions += t.count;
        turns += t.turns;
    }
    for (const auto &[at, w] : lines.by_code())
        of_code += w.waiting();
    EXPECT_EQ(of_lines, of_all);
    EXPECT_EQ(of_code, of_all);
    EXPECT_EQ(transactions + turns, 20'000u);
}
