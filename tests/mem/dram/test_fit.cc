// SPDX-License-Identifier: BSD-3-Clause
// The tables of configs/dram under the published load: every core of a node streams through a private buffer.
// DDR2-667 on the 48-core machine: 51.5 GB/s on eight nodes. Magny-Cours: 85.6 GB/s on four dies, within 15 %.
#include <array>
#include <cstdio>
#include <filesystem>

#include <gtest/gtest.h>

#include "mem/dram/fixture.hh"
#include "mem/dram/streams.hh"

namespace moscope::dram::testing {
namespace {

DramParams table(const std::string &standard) {
    auto root = std::filesystem::current_path();
    while (!std::filesystem::exists(root / "configs" / "dram") && root.has_relative_path())
        root = root.parent_path();
    const std::string command = "python3 '" + (root / "configs" / "dram" / (standard + ".py")).string() + "'";
    std::string text;
    FILE *pipe = popen(command.c_str(), "r");
    std::array<char, 4096> buffer;
    while (const std::size_t n = std::fread(buffer.data(), 1, buffer.size(), pipe))
        text.append(buffer.data(), n);
    EXPECT_EQ(pclose(pipe), 0) << command;
    return DramParams::from_json_text(text);
}

struct Layout {
    const char *name;
    Addr distance; ///< of the buffers
    Addr page;     ///< buffers of pages in random order
};
constexpr Layout kLayouts[] = {{"64 MiB apart", Addr{64} << 20, 0},
                               {"1.5 MiB apart", Addr{3} << 19, 0},
                               {"8 MiB and a page apart", (Addr{8} << 20) + 4096, 0},
                               {"4 KiB pages", 0, 4096},
                               {"2 MiB pages", 0, Addr{2} << 20}};

struct Measured {
    double gb_per_s;
    ChannelStats stats;
    double share(Lost r) const {
        return static_cast<double>(stats.lost[static_cast<unsigned>(r)]) / static_cast<double>(stats.accounted);
    }
};

Measured stream(const DramParams &p, const Layout &layout, unsigned cores, unsigned in_flight, Tick trip) {
    EventQueue queue;
    DramController dram(queue, "dram", p);
    Streams s(queue, dram, cores, in_flight, trip);
    for (unsigned c = 0; c < cores; ++c)
        s.base.push_back(c * layout.distance);
    s.page_bytes = layout.page;
    s.span = p.capacity() / 2;
    constexpr Tick kWarm = 20'000 * kNs, kEnd = 120'000 * kNs;
    queue.run(kWarm);
    const auto before = s.lines;
    queue.run(kEnd);
    dram.sync(kEnd);
    return {static_cast<double>((s.lines - before) * kLineBytes) * 1e6 / static_cast<double>(kEnd - kWarm),
            dram.stats()};
}

TEST(DramFit, Ddr2NodeReachesThePublishedShareOfTheMachine) {
    const DramParams p = table("ddr2_667");
    EXPECT_EQ(p.capacity(), Addr{8} << 30);
    for (const Layout &l : kLayouts)
        for (const Tick trip : {5 * kNs, 10 * kNs, 20 * kNs}) {
            const Measured m = stream(p, l, 6, 8, trip);
            EXPECT_NEAR(m.gb_per_s, 51.5 / 8, 0.05 * 51.5 / 8) << l.name;
            EXPECT_GT(m.share(Lost::activate_rate), 0.3) << "tRRD and tFAW are what limits";
            EXPECT_LT(m.share(Lost::no_request), 0.01);
        }
}

TEST(DramFit, WithoutTheActivateWindowTheDdr2NodeWouldBeFaster) {
    DramParams p = table("ddr2_667");
    const double with = stream(p, kLayouts[0], 6, 8, 10 * kNs).gb_per_s;
    p.t.tFAW = 0;
    EXPECT_GT(stream(p, kLayouts[0], 6, 8, 10 * kNs).gb_per_s, 1.05 * with) << "then tRRD limits";
    p.t.tRRD = p.tCK_fs;
    EXPECT_GT(stream(p, kLayouts[0], 6, 8, 10 * kNs).gb_per_s, 1.15 * with) << "then tRC";
}

TEST(DramFit, ActivateWindowAndRefreshGiveTheDdr2NodesRate) {
    const DramParams p = table("ddr2_667");
    const double lines_per_ns = 4.0 / (13 * 3.0);             // tFAW = 37.5 ns is 13 clocks of 3 ns
    const double refreshed = 1 - (43 + 5 + 5) * 3.0 / 7800.0; // tRFC, and the pipeline filled again
    EXPECT_NEAR(stream(p, kLayouts[0], 6, 8, 10 * kNs).gb_per_s, 64 * lines_per_ns * refreshed,
                0.02 * 64 * lines_per_ns);
}

TEST(DramFit, Ddr3DieComesWithinFifteenPercentOfItsPeak) {
    const DramParams p = table("ddr3_1333");
    for (const Layout &l : kLayouts)
        for (const Tick trip : {5 * kNs, 10 * kNs, 20 * kNs})
            EXPECT_GT(stream(p, l, 6, 10, trip).gb_per_s, 0.85 * 85.6 / 4) << l.name;
}

TEST(DramFit, AnIdleLoadFindsARowToOpenAndNothingElse) {
    for (const auto &[standard, ns] : {std::pair{"ddr2_667", 33.0}, {"ddr2_800", 27.5}}) {
        DramParams p = table(standard);
        p.t.tREFI = 0;
        EventQueue queue;
        DramController dram(queue, "dram", p);
        Tick when = 0;
        dram.set_done([](void *w, const DramRequest &, Tick t) { *static_cast<Tick *>(w) = t; }, &when);
        for (Addr i = 0; i < 64; ++i) { // wherever the last access was
            const Tick now = queue.now() / p.tCK_fs * p.tCK_fs + 40 * p.tCK_fs - 1;
            dram.push({i * 7 * 4096 % (1 << 20), false, 0, nullptr}, now);
            queue.run();
            EXPECT_EQ(when - now - 1, static_cast<Tick>(ns * kNs)) << standard << " " << i;
        }
    }
}

} // namespace
} // namespace moscope::dram::testing
