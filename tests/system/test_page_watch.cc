// SPDX-License-Identifier: BSD-3-Clause
// What a page was when its line was missed: kept through whatever becomes of the page.
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cpu/x86/flat_machine.hh"
#include "system/attribution.hh"

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
        return {phys, core, {kTables, kArray, 64, 0, 8, 24, 32, 40, 48, kSlab, {0, 0}, {0xf0000200, 0xf0000000}}};
    }
    void describe(unsigned page, std::uint64_t flags, std::uint64_t mapping, std::uint32_t type = 0xffffffff, std::uint64_t link = 0) {
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

TEST(PageWatch, TellsOfASlabItsCacheOfOthersTheirMapping) {
    Guest g;
    const PageWatch w = g.watch();
    EXPECT_EQ(g.core.cr3, 0u);
    g.describe(3, kSlab | 1, 0);
    EXPECT_EQ(w.look(3 * kPage + 64).part_of, 0xcac4eu);
    g.describe(3, 1, 0x5001);
    const PageSeen anonymous = w.look(3 * kPage);
    EXPECT_EQ(std::tuple(anonymous.part_of, anonymous.index, anonymous.flags, anonymous.told), std::tuple(0x5001u, 77u, 1u, true));
    g.describe(3, 0, 0, 0xfffffdff); // a page table
    EXPECT_TRUE(w.look(3 * kPage).told);
    g.describe(3, 0, 0); // from the allocator
    EXPECT_FALSE(w.look(3 * kPage).told);
}

TEST(PageWatch, APageWithinALargerWholeIsToldByItsHead) {
    Guest g;
    const PageWatch w = g.watch();
    g.describe(4, kSlab, 0);
    g.describe(6, 0, 0x400, 0xffffffff, kArray + 4 * 64 + 1);
    const PageSeen seen = w.look(6 * kPage);
    EXPECT_EQ(std::tuple(seen.before, seen.part_of, seen.flags), std::tuple(2u, 0xcac4eu, kSlab));
    g.describe(6, 0, 0x400, 0xffffffff, 0x7fff'0000'0001); // what is no head's address
    EXPECT_FALSE(w.look(6 * kPage).told);
}

TEST(PageWatch, WhatIsNotMappedIsNotTold) {
    Guest g;
    g.write<std::uint64_t>(Guest::kTables + 0x1000, 0); // the first GiB
    g.describe(3, kSlab, 0);
    EXPECT_FALSE(g.watch().look(3 * kPage).told);
}

TEST(PageWatch, PartsOutsideADescriptionAreRefused) {
    Guest g;
    EXPECT_THROW(PageWatch(g.phys, g.core, {Guest::kTables, kArray, 64, 0, 8, 24, 60, 40, 48, kSlab, {0, 0}, {0, 0}}), UserError);
}

TEST(PageWatch, ALineKeepsWhatItsPageWasAtTheFirstMissThatToldIt) {
    Guest g;
    Attribution a{{0, 0}, Guest::kBytes};
    a.watch(std::make_unique<PageWatch>(g.watch()));
    const auto miss = [&](Addr at) {
        Access x;
        x.addr = PhysAddr(at);
        x.size = 8;
        x.done = 100;
        a.transaction({&x, 0, 0x400000, at, 10, false, false, 0});
    };
    const auto of = [&](Addr line) {
        const auto all = nlohmann::json::parse(a.json(9));
        for (const auto &l : all["lines"])
            if (l["line"].get<Addr>() == line)
                return l.value("page", nlohmann::json());
        return nlohmann::json("no such line");
    };
    constexpr Addr kFirst = 3 * kPage, kCleared = 3 * kPage + 128;
    g.describe(3, 0, 0);
    miss(kFirst); // the page is cleared before the kernel says what it is for
    miss(kCleared);
    EXPECT_TRUE(of(kFirst).is_null());
    g.describe(3, 0, 0x5001);
    miss(kFirst);
    g.describe(3, kSlab, 0); // it was freed, and came to another use
    miss(kFirst);
    EXPECT_EQ(of(kFirst)["part_of"], 0x5001);
    EXPECT_EQ(of(kCleared)["part_of"], 0x5001) << "of its page, as none of its own misses told";
    const AttributionTables rows = a.tables();
    LineRow row;
    std::memcpy(&row, rows.lines.data(), sizeof row);
    EXPECT_EQ(std::tuple(row.line, row.page_part_of, row.flags >> 3), std::tuple(kFirst, 0x5001u, 1));
    a.reset();
    miss(kFirst);
    EXPECT_EQ(of(kFirst)["part_of"], 0xcac4e) << "a window begins anew";
}
