// SPDX-License-Identifier: BSD-3-Clause
// Counts of transactions by key agree with those of a std::map, and a line's counts are the sums of its rows.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <tuple>

#include "attribution/attribution.hh"
#include "rows.hh"

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

TEST(TransactionCounts, AgreeWithAMapForFewAndForManyTransactions) {
    for (const unsigned few : {2u, 40u}) {
        std::mt19937_64 random(few);
        TransactionCounts counts;
        for (unsigned round = 0; round < 2; ++round) { // the second after a reset
            std::map<decltype(key(TransactionKey{})), std::pair<Tick, std::uint64_t>> model;
            std::vector<decltype(key(TransactionKey{}))> order;
            const unsigned n =
                few == 2 ? 5 : 300'000; // fewer than are under way at a time; more than the table's initial cells
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

TEST(TransactionCounts, KeptOnesStayUnchangedWhileMoreArrive) {
    std::mt19937_64 random(3);
    TransactionCounts counts;
    const auto all = [](const std::vector<TransactionCounts::Entry> &entries) {
        std::vector<std::tuple<Addr, std::uint32_t, Tick, std::uint64_t>> found;
        for (const auto &e : entries)
            found.emplace_back(e.key.waiter, e.key.line, e.time, e.count);
        return found;
    };
    EXPECT_TRUE(counts.kept().empty());
    for (unsigned run = 0; run < 2; ++run) {
        for (const unsigned more : {20'000u, 60'000u, 0u, 3u}) { // beyond a chunk of entries, and the table grows
            for (unsigned i = 0; i < more; ++i)
                counts.add(some(random, 1'000'000), 1 + i, 1);
            counts.settle();
            std::vector<TransactionCounts::Entry> then;
            counts.for_each_piece([&then](auto piece) { then.insert(then.end(), piece.begin(), piece.end()); });
            ASSERT_EQ(then.size(), counts.size());
            counts.keep();
            for (unsigned i = 0; i < 30'000; ++i) // known keys among them
                counts.add(i % 3 && !then.empty() ? then[random() % then.size()].key : some(random, 1'000'000), 5, 1);
            ASSERT_EQ(all(counts.kept()), all(then)) << "while counts are in the ring";
        }
        counts.reset();
        EXPECT_TRUE(counts.kept().empty());
    }
}

TEST(TransactionCounts, OfPairsAndOfClassesAddUpToThoseOfTheirLine) {
    std::mt19937_64 random(1);
    TransactionCounts counts;
    for (unsigned i = 0; i < 20'000; ++i)
        counts.add(some(random, 9), 1 + i, 1);
    counts.settle();
    Tick of_all = 0, of_lines = 0;
    for (std::size_t i = 0; i < counts.size(); ++i)
        of_all += counts[i].time;
    std::vector<std::span<const TransactionCounts::Entry>> pieces;
    counts.for_each_piece([&pieces](auto piece) { pieces.push_back(piece); });
    const AttributionRows rows = rows_of(pieces, [](std::uint32_t, Addr) { return AttributionPart::LineUseInfo{}; });
    const auto lines = unpacked<LineRow>(rows.lines);
    ASSERT_EQ(lines.size(), 18u) << "of nine lines two uses each";
    struct Sums {
        Tick stall = 0, spin = 0;
        std::uint64_t count = 0, transferred = 0;
    };
    std::vector<Sums> sums(lines.size());
    for (const PairRow &p : unpacked<PairRow>(rows.pairs)) {
        sums[p.line].stall += p.stall;
        sums[p.line].spin += p.spin;
        sums[p.line].count += p.count;
    }
    for (const TransferRow &t : unpacked<TransferRow>(rows.transfers))
        sums[t.line].transferred += t.count;
    std::uint64_t transactions = 0, turns = 0;
    std::pair<Addr, std::uint32_t> before{};
    for (std::size_t n = 0; n < lines.size(); ++n) {
        const LineRow &l = lines[n];
        EXPECT_TRUE(std::pair(l.line, l.use) > before || !n);
        before = {l.line, l.use};
        Tick of_classes = 0;
        std::uint64_t by_class = 0;
        for (unsigned k = 0; k < kMissClasses; ++k) {
            of_classes += l.class_stall[k];
            by_class += l.class_count[k];
        }
        const Sums &s = sums[n];
        EXPECT_EQ(std::tuple(s.stall, s.spin, s.count), std::tuple(Tick{l.stall}, Tick{l.spin}, l.transfers));
        EXPECT_EQ(std::pair(of_classes, by_class), std::pair(Tick{l.stall}, l.transfers));
        EXPECT_LT(s.transferred, l.transfers);
        EXPECT_GT(s.transferred, l.transfers / 3);
        of_lines += l.stall + l.spin;
        transactions += l.transfers;
        turns += l.spin_iterations;
    }
    EXPECT_EQ(of_lines, of_all);
    EXPECT_EQ(transactions + turns, 20'000u);
}
