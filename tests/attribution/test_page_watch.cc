// SPDX-License-Identifier: BSD-3-Clause
// The use of a page at the moment of a miss is recorded, and kept when the page is used for something else.
#include <algorithm>
#include <bit>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "attribution/attribution.hh"
#include "attribution/journal.hh"
#include "cpu/x86/flat_machine.hh"
#include "rows.hh"
#include "sim/event_queue.hh"

using namespace moscope;

namespace {

constexpr unsigned kPage = 4096;
constexpr Addr kArray = 0x100000; ///< descriptions of 64 bytes, reached through page tables
constexpr std::uint64_t kSlab = 1 << 9;

struct Guest : x86::test::FlatMachine {
    Guest() {
        long_mode();
        core.cr3 = 0; // a process's, which does not map the array
    }
    PageWatch watch() {
        return {phys,
                core,
                {kTables, kArray, 64, 0, 8, 24, 32, 40, 48, kSlab, kSlab | 1, {0, 0}, {0xf0000200, 0xf0000000}, 0}};
    }
    void describe(unsigned page, std::uint64_t flags, std::uint64_t mapping, std::uint32_t type = 0xffffffff,
                  std::uint64_t link = 0) {
        const Addr at = kArray + page * 64;
        write(at, flags);
        write(at + 8, link);
        write(at + 24, mapping);
        write(at + 32, std::uint64_t{0xcac4e}); // of a slab: its cache
        write(at + 40, std::uint64_t{77});
        write(at + 48, type);
    }
};

} // namespace

TEST(PageWatch, IdentifiesASlabByItsCacheAndOtherPagesByTheirMapping) {
    Guest g;
    const PageWatch w = g.watch();
    EXPECT_EQ(g.core.cr3, 0u);
    g.describe(3, kSlab | 1, 0);
    EXPECT_EQ(w.snapshot(3 * kPage + 64).part_of, 0xcac4eu);
    g.describe(3, 1, 0x5001);
    const PageSnapshot anonymous = w.snapshot(3 * kPage);
    EXPECT_EQ(std::tuple(anonymous.part_of, anonymous.index, anonymous.flags, anonymous.identified),
              std::tuple(0x5001u, 77u, 1u, true));
    g.describe(3, 0, 0, 0xfffffdff); // a page table
    EXPECT_TRUE(w.snapshot(3 * kPage).identified);
    g.describe(3, 0, 0); // from the allocator
    EXPECT_FALSE(w.snapshot(3 * kPage).identified);
}

TEST(PageWatch, IdentifiesATailPageByItsHeadPage) {
    Guest g;
    const PageWatch w = g.watch();
    g.describe(4, kSlab, 0);
    g.describe(6, 0, 0x400, 0xffffffff, kArray + 4 * 64 + 1);
    const PageSnapshot seen = w.snapshot(6 * kPage);
    EXPECT_EQ(std::tuple(seen.before, seen.part_of, seen.flags), std::tuple(2u, 0xcac4eu, kSlab));
    g.describe(6, 0, 0x400, 0xffffffff, 0x7fff'0000'0001); // what is no head's address
    EXPECT_FALSE(w.snapshot(6 * kPage).identified);
}

TEST(PageWatch, AnUnmappedPageDescriptionIdentifiesNothing) {
    Guest g;
    g.write<std::uint64_t>(Guest::kTables + 0x1000, 0); // the first GiB
    g.describe(3, kSlab, 0);
    EXPECT_FALSE(g.watch().snapshot(3 * kPage).identified);
}

TEST(PageWatch, FieldsOutsideAPageDescriptionAreRefused) {
    Guest g;
    EXPECT_THROW(
        PageWatch(g.phys, g.core, {Guest::kTables, kArray, 64, 0, 8, 24, 60, 40, 48, kSlab, kSlab, {0, 0}, {0, 0}, 0}),
        UserError);
}

TEST(PageWatch, FlagsAndWordsThatAUseDoesNotDefineDoNotChangeTheUse) {
    Guest g;
    const PageWatch w = g.watch();
    const auto seen = [&](auto... what) {
        g.describe(3, what...);
        return w.snapshot(3 * kPage);
    };
    EXPECT_TRUE(seen(kSlab, 0).same_use(seen(kSlab | 4, 9)));
    const PageSnapshot locked = seen(kSlab | 4, 0, 0u),
                       mapped = seen(kSlab, 0, 7u); // a flag and a count that others change meanwhile
    EXPECT_EQ(std::tuple(locked.flags, locked.type), std::tuple(mapped.flags, mapped.type));
    EXPECT_EQ(seen(0, 0, 0xfffffdff).type, 0xfffffdff);
    EXPECT_TRUE(seen(1, 0x5001).same_use(seen(4, 0x5001)));
    EXPECT_TRUE(seen(1, 0).same_use(seen(4, 0)));
    EXPECT_TRUE(seen(0, 0, 0xfffffdff).same_use(seen(0, 0x7788, 0xfffffdff)))
        << "of a page table the word is no mapping";
    EXPECT_FALSE(seen(1, 0x5001).same_use(seen(1, 0x6001)));
    EXPECT_FALSE(seen(1, 0x5001).same_use(seen(1, 0)));
    EXPECT_FALSE(seen(0, 0, 0xfffffdff).same_use(seen(kSlab, 0)));
}

namespace {

/// An attribution of two cores that looks at pages.
struct Uses : testing::Test {
    static constexpr Addr kFirst = 3 * kPage, kSecond = 3 * kPage + 128;
    Guest g;
    Attribution a{{0, 0}, Guest::kBytes};
    EventQueue queue;
    std::vector<std::unique_ptr<Journal>> journals;

    Uses() { a.watch(std::make_unique<PageWatch>(g.watch())); }
    static void report(x86::TransactionObserver &to, Addr at, AccessKind kind = AccessKind::load, unsigned core = 0,
                       Addr va = 0, bool walk = false) {
        Access x;
        x.addr = PhysAddr(at);
        x.kind = kind;
        x.size = 8;
        x.done = 100;
        to.transaction({&x, core, 0x400000, walk ? 0 : va ? va : at, 10, walk, false, 0});
    }
    void miss(Addr at, unsigned core = 0) { report(a, at, AccessKind::load, core); }
    void clear(Addr at) { report(a, at, AccessKind::store); }
    void walk(Addr at) { report(a, at, AccessKind::load, 1, 0, true); }
    /// Of each use of a line: what the page was part of (-1: unknown), transfers, cores that waited.
    std::vector<std::tuple<std::int64_t, unsigned, unsigned>> of(Addr line) const {
        std::vector<std::tuple<std::int64_t, unsigned, unsigned>> found;
        for (const LineRow &row : lines_of(a)) {
            if (row.line == line)
                found.emplace_back(row.flags & LineRow::kPageKnown ? static_cast<std::int64_t>(row.page_part_of) : -1,
                                   row.transfers, std::popcount(row.waiters));
        }
        return found;
    }
};
using Rows = std::vector<std::tuple<std::int64_t, unsigned, unsigned>>;

} // namespace

TEST_F(Uses, OfALineAreCountedApart) {
    g.describe(3, 0, 0x5001);
    miss(kFirst), miss(kSecond), miss(kFirst, 1);
    g.describe(3, 0, 0, 0xfffffdff); // freed, then used for something else
    walk(kFirst);
    g.describe(3, kSlab, 0);
    miss(kFirst), miss(kSecond);
    EXPECT_EQ(of(kFirst), (Rows{{0x5001, 2, 2}, {0, 1, 1}, {0xcac4e, 1, 1}}));
    EXPECT_EQ(of(kSecond), (Rows{{0x5001, 1, 1}, {0xcac4e, 1, 1}}));
    const auto lines = lines_of(a);
    EXPECT_EQ(lines.size(), 5u);
    EXPECT_EQ(std::ranges::count_if(lines, [](const LineRow &l) { return l.flags & LineRow::kWalk; }), 1)
        << "by a walk";
    a.reset();
    miss(kFirst);
    EXPECT_EQ(of(kFirst), (Rows{{0xcac4e, 1, 1}})) << "a window begins anew";
}

TEST_F(Uses, AClearedLineBelongsToTheUseThatItWasClearedFor) {
    g.describe(3, 1, 0);
    clear(kFirst), clear(kSecond);
    EXPECT_EQ(of(kFirst), (Rows{{-1, 1, 1}})) << "the page at the end tells more than now";
    g.describe(3, 1, 0x5001);
    miss(kFirst, 1);
    EXPECT_EQ(of(kFirst), (Rows{{0x5001, 2, 2}}));
    EXPECT_EQ(of(kSecond), (Rows{{0x5001, 1, 1}}));
    g.describe(3, kSlab, 0);
    miss(kSecond);
    EXPECT_EQ(of(kSecond), (Rows{{0x5001, 1, 1}, {0xcac4e, 1, 1}}));
}

TEST_F(Uses, ALinesAddressIsThatOfItsUserNotThatOfTheClear) {
    g.describe(3, 1, 0);
    clear(kFirst);
    g.describe(3, 1, 0x5001);
    report(a, kFirst, AccessKind::load, 0, 0x7fff'0000'3000);
    EXPECT_EQ(lines_of(a)[0].va, 0x7fff'0000'3000);
}

TEST_F(Uses, AUseThatWasNeverIdentifiedIsNotTakenForTheNextOne) {
    g.describe(3, 1, 0); // a pipe's buffer, say
    clear(kFirst), miss(kFirst, 1);
    report(a, kSecond, AccessKind::store, 0, 0xffff'c900'0000'0080); // a stack's
    g.describe(3, kSlab, 0);
    miss(kFirst), miss(kSecond);
    EXPECT_EQ(of(kFirst), (Rows{{0, 2, 2}, {0xcac4e, 1, 1}}));
    EXPECT_EQ(of(kSecond), (Rows{{0, 1, 1}, {0xcac4e, 1, 1}}));
}

TEST_F(Uses, AreThoseAtTheEventNotAtTheReplay) {
    journals.push_back(std::make_unique<Journal>(queue, a, true, [] {}));
    g.describe(3, 0, 0x5001);
    report(*journals[0], kFirst);
    g.describe(3, kSlab, 0);
    report(*journals[0], kFirst);
    for (unsigned part = 0; part < Attribution::kParts; ++part)
        Journal::replay(journals, part, a);
    EXPECT_EQ(of(kFirst), (Rows{{0x5001, 1, 1}, {0xcac4e, 1, 1}}));
}

TEST_F(Uses, SpinTimeBelongsToTheUseThatTheLoopsTransactionsFound) {
    g.describe(3, kSlab, 0);
    x86::Spin s{};
    s.look.dram = s.look.va = kFirst;
    s.time = 70;
    a.spun(s); // before any transaction: no snapshot yet
    EXPECT_EQ(of(kFirst).size(), 1u);
    miss(kFirst);
    a.spun(s);
    EXPECT_EQ(of(kFirst), (Rows{{0xcac4e, 1, 1}}));
    EXPECT_EQ(lines_of(a)[0].spin, 140);
}

TEST_F(Uses, ThatAreKeptStayWhateverFollows) {
    const auto all = [](const AttributionRows &r) { return std::tuple(r.lines, r.pairs, r.transfers); };
    std::mt19937 random(7);
    const auto one_of = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };
    const auto happens = [&] {
        const unsigned page = 3 + one_of(2), core = one_of(2);
        const Addr at = page * kPage + one_of(3) * 64 + one_of(2) * 8;
        switch (one_of(6)) {
        case 0: g.describe(page, 1, 0); break; // newly allocated
        case 1: g.describe(page, one_of(2) ? kSlab : 0, 0x5001 + one_of(2) * 0x1000); break;
        case 2: clear(at); break;
        case 3: walk(at); break;
        case 4: a.spun({core, {at, 0x400000 + core, at, 0, false}, 5, 1}); break;
        default: report(a, at, AccessKind::load, core, one_of(2) ? 0x7fff'0000'0000 + at : 0);
        }
    };
    for (unsigned run = 0; run < 200; ++run) {
        for (unsigned n = one_of(40); n-- > 0;)
            happens();
        for (unsigned kept = 0; kept < 3; ++kept) {
            const auto then = all(a.rows());
            a.keep();
            for (unsigned n = one_of(20); n-- > 0;) {
                happens();
                ASSERT_EQ(all(a.kept_rows()), then) << "run " << run;
            }
        }
        a.reset();
    }
}
