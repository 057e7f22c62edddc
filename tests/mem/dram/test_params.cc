// SPDX-License-Identifier: BSD-3-Clause
// Parameters: what is impossible is refused with its key, what is misspelt with the nearest key; mappings are
// permutations of the node's lines.
#include <set>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/rng.hh"
#include "mem/dram/fixture.hh"

namespace moscope::dram::testing {
namespace {

using nlohmann::json;

json good() {
    json t;
    const DramParams p = small_part();
    TimingParams::visit([&](const char *name, Tick value, Tick, Tick) { t[name] = value; }, p.t);
    t["tREFI"] = 7'800 * kNs;
    t["tRFC"] = 100 * kNs;
    return {{"standard", "test"}, {"tCK_fs", kNs}, {"timing_fs", t}, {"burst_lengths", {8}}};
}

std::string refusal(const json &j) {
    try {
        DramParams::from_json(j);
    } catch (const UserError &e) {
        return e.what();
    }
    return "accepted";
}

TEST(DramParamsJson, AcceptsATableAndKeepsIt) {
    json j = good();
    j["banks"] = 4;
    j["page_policy"] = "idle";
    j["idle_close_fs"] = 100 * kNs;
    j["critical_word_first"] = true;
    const DramParams p = DramParams::from_json_text(j.dump());
    EXPECT_EQ(p.banks, 4u);
    EXPECT_EQ(p.page_policy, PagePolicy::idle);
    EXPECT_EQ(p.t.tRFC, 100 * kNs);
    EXPECT_TRUE(p.critical_word_first);
    EXPECT_DOUBLE_EQ(p.peak_bandwidth(), 32e9);
}

TEST(DramParamsJson, NamesTheNearestKey) {
    json j = good();
    j["bank_swizle"] = true;
    EXPECT_EQ(refusal(j), "dram.bank_swizle: unknown key: expected a known key such as bank_swizzle");
    j = good();
    j["timing_fs"]["tREFII"] = 1;
    EXPECT_EQ(refusal(j), "dram.timing_fs.tREFII: unknown key: expected a known key such as tREFI");
}

TEST(DramParamsJson, RefusesImpossibleValues) {
    const auto with = [](const char *key, json value) {
        json j = good();
        j[key] = value;
        return refusal(j);
    };
    const auto timing = [](const char *key, json value) {
        json j = good();
        j["timing_fs"][key] = value;
        return refusal(j);
    };
    EXPECT_NE(with("banks", 3).find("dram.banks: 3 is not a power of two"), std::string::npos);
    EXPECT_NE(with("channels", 0).find("dram.channels: 0 is out of range"), std::string::npos);
    EXPECT_NE(with("channels", "two").find("dram.channels: is not a whole number"), std::string::npos);
    EXPECT_NE(with("ranks", -1).find("dram.ranks: -1 is out of range"), std::string::npos);
    EXPECT_NE(with("rows", 1e300).find("dram.rows"), std::string::npos);
    EXPECT_NE(with("ganged", true).find("dram.burst_lengths: a line of 64 bytes is a burst of 4"), std::string::npos);
    EXPECT_NE(with("ganged", 1).find("dram.ganged: is not a switch"), std::string::npos);
    EXPECT_NE(with("scheduler_depth", 65).find("dram.scheduler_depth: is larger than read_entries"), std::string::npos);
    EXPECT_NE(with("write_low", 12).find("dram.write_low"), std::string::npos);
    EXPECT_NE(with("tCK_fs", 0).find("dram.tCK_fs"), std::string::npos);
    EXPECT_NE(with("frontend_fs", std::uint64_t{1} << 63).find("dram.frontend_fs"), std::string::npos);
    EXPECT_NE(with("page_policy", "opened").find("one of open, closed, forced, idle"), std::string::npos);
    EXPECT_NE(with("burst_lengths", {3}).find("3 is not a burst length"), std::string::npos);
    EXPECT_NE(timing("tRC", 10 * kNs).find("dram.timing_fs.tRC: is less than tRAS + tRP"), std::string::npos);
    EXPECT_NE(timing("tCL", 0).find("dram.timing_fs.tCL: is zero"), std::string::npos);
    EXPECT_NE(timing("tCL", -5).find("dram.timing_fs.tCL: -5 is out of range"), std::string::npos);
    EXPECT_NE(timing("tREFI", 150 * kNs).find("dram.timing_fs.tREFI: leaves too little time"), std::string::npos);
    EXPECT_NE(timing("tRFC", 7'000 * kNs).find("0 for no refresh, or a shorter tRFC"), std::string::npos);
    EXPECT_NE(refusal(json::array()).find("dram: is not an object"), std::string::npos);
    EXPECT_NE(refusal(json{{"standard", "x"}}).find("is missing"), std::string::npos);
    EXPECT_THROW(DramParams::from_json_text("{\"standard\":"), UserError);
}

TEST(DramParamsJson, MutatedTablesEndInAUserErrorOrAWorkingPart) {
    const std::string text = good().dump();
    Rng rng(1);
    unsigned refused = 0;
    for (unsigned i = 0; i < 3000; ++i) {
        std::string t = text;
        for (unsigned n = 0; n < 1 + i % 3; ++n)
            t[rng.below(t.size())] = static_cast<char>(rng.below(3) ? '0' + rng.below(10) : 32 + rng.below(95));
        if (i % 7 == 0)
            t.resize(rng.below(t.size()));
        try {
            const DramParams p = DramParams::from_json_text(t);
            Channel c(p, 0);
            add(c, {0, 0, 1}, 0);
            c.run(100);
        } catch (const UserError &) {
            ++refused;
        }
    }
    EXPECT_GT(refused, 1000u);
    EXPECT_LT(refused, 3000u);
}

TEST(DramMapping, IsAPermutation) {
    for (const char *mapping :
         {"row rank bank column channel", "rank row column bank channel", "row:2 rank column:3 row bank column channel",
          "channel row column bank rank", "bank:1 row bank column:1 channel column rank"})
        for (const bool swizzle : {false, true})
            for (const bool hash : {false, true}) {
                DramParams p = small_part();
                p.channels = 2;
                p.rows = 256;
                p.row_bytes = 1024;
                p.mapping = mapping;
                p.bank_swizzle = swizzle;
                p.channel_hash = hash;
                const AddressMap map(p);
                const std::uint64_t lines = p.capacity() / kLineBytes;
                std::vector<bool> taken(lines);
                for (std::uint64_t i = 0; i < lines; ++i) {
                    const Location l = map(i * kLineBytes + i % kLineBytes);
                    ASSERT_LT(l.channel, 2u);
                    ASSERT_LT(l.rank, p.ranks);
                    ASSERT_LT(l.bank, p.banks);
                    ASSERT_LT(l.row, p.rows);
                    ASSERT_LT(l.column, p.row_bytes / kLineBytes);
                    const std::uint64_t place = (((l.channel * p.ranks + l.rank) * p.banks + l.bank) * p.rows + l.row) *
                                                    (p.row_bytes / kLineBytes) +
                                                l.column;
                    ASSERT_FALSE(taken[place]) << mapping;
                    taken[place] = true;
                }
            }
}

TEST(DramMapping, TakesFieldsFromTheMostSignificantBit) {
    DramParams p = small_part();
    p.channels = 2;
    p.mapping = "rank row column bank channel";
    const AddressMap map(p);
    EXPECT_EQ(map(64), (Location{1, 0, 0, 0, 0}));
    EXPECT_EQ(map(128), (Location{0, 0, 1, 0, 0}));
    EXPECT_EQ(map(128 * 8), (Location{0, 0, 0, 0, 1}));
    EXPECT_EQ(map(128 * 8 * 64), (Location{0, 0, 0, 1, 0}));
    EXPECT_EQ(map(128 * 8 * 64 * 256), (Location{0, 1, 0, 0, 0}));
}

TEST(DramMapping, ASwizzleSpreadsAPowerOfTwoStride) {
    DramParams p = small_part();
    p.mapping = "row rank bank column channel";
    const Addr stride = Addr{p.row_bytes} * p.banks * p.ranks; // next row of the same bank
    for (const bool swizzle : {false, true}) {
        p.bank_swizzle = swizzle;
        const AddressMap map(p);
        std::set<unsigned> banks;
        for (unsigned i = 0; i < 8; ++i)
            banks.insert(map(i * stride).bank);
        EXPECT_EQ(banks.size(), swizzle ? 8u : 1u);
    }
}

TEST(DramMapping, RefusesWhatDoesNotFit) {
    for (const char *mapping :
         {"", "row bank column channel rnak", "row rank bank column channel channel", "row:9 rank bank column channel",
          "row row bank rank column channel", "row rank bank column:x channel", "row rank bank column:2 channel"}) {
        DramParams p = small_part();
        p.channels = 2;
        p.mapping = mapping;
        EXPECT_THROW(AddressMap{p}, UserError) << mapping;
    }
    DramParams p = small_part();
    p.channel_hash = true;
    EXPECT_NO_THROW(AddressMap{p}) << "one channel: nothing to choose";
    p.channels = 4;
    EXPECT_THROW(AddressMap{p}, UserError);
    p.channels = 2;
    p.mapping = "channel row rank bank column"; // the hash's own bits would hold the channel
    p.rows = 2, p.ranks = 1;
    EXPECT_THROW(AddressMap{p}, UserError);
}

} // namespace
} // namespace moscope::dram::testing
