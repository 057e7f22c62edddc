// SPDX-License-Identifier: BSD-3-Clause
// What a full system refuses, by the name of the value that is wrong.
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/error.hh"
#include "board/system_config.hh"

namespace moscope {
namespace {

nlohmann::json system(unsigned chips, unsigned cores_per_chip) {
    const nlohmann::json cpu = {{"description", ""},
                                {"max_basic", 0},
                                {"max_extended", 0},
                                {"leaves", nlohmann::json::array()},
                                {"msrs", nlohmann::json::array()}};
    return {{"schema", "moscope.system/1"},
            {"cores", chips * cores_per_chip},
            {"chips", chips},
            {"cores_per_chip", cores_per_chip},
            {"core_clock", {{"num", 1'250'000}, {"den", 3}}},
            {"memory_per_node", std::uint64_t{64} << 20},
            {"hops", std::vector<std::vector<unsigned>>(chips, std::vector<unsigned>(chips))},
            {"cpu", cpu},
            {"kernel", ""},
            {"initrd", ""},
            {"append", ""},
            {"disk", ""},
            {"seed", 1}};
}

std::string refusal(const nlohmann::json &j) {
    try {
        parse_system_config(j.dump());
    } catch (const UserError &e) {
        return e.what();
    }
    return "";
}

TEST(SystemConfig, ChipsOfMoreCoresThanApicIdentifiersHaveRoomForAreRefusedByName) {
    EXPECT_EQ(refusal(system(4, 8)), "");
    EXPECT_EQ(refusal(system(4, 12)), "system.cores_per_chip: 12: expected 1 to 8 on a machine that runs guests");
}

TEST(SystemConfig, MoreCoresThanTheChipsHaveAreRefused) {
    auto j = system(2, 6);
    j["cores"] = 13;
    EXPECT_EQ(refusal(j), "system.cores: 13: expected 1 to 12");
}

TEST(SystemConfig, MemoryWhoseLinesAttributionCannotTellApartIsRefused) {
    auto j = system(8, 6);
    j["memory_per_node"] = std::uint64_t{32} << 30;
    j["detailed"] = {{"machine", nlohmann::json::object()}, {"library", ""}};
    EXPECT_EQ(refusal(j), "");
    j["memory_per_node"] = (std::uint64_t{32} << 30) + (2 << 20);
    EXPECT_EQ(refusal(j), "system.memory_per_node: 34361835520: expected at most 256GiB on all nodes if waiting is "
                          "attributed to lines");
    j["detailed"]["attribution"] = false;
    EXPECT_EQ(refusal(j), "");
}

TEST(SystemConfig, TheWatchdogLimitIsThatOfTheConfigurationOrTheDefault) {
    auto j = system(1, 1);
    j["detailed"] = {{"machine", nlohmann::json::object()}, {"library", ""}};
    EXPECT_FALSE(parse_system_config(j.dump()).watchdog);
    j["detailed"]["watchdog_fs"] = Tick{3} * 1'000'000'000'000;
    EXPECT_EQ(parse_system_config(j.dump()).watchdog, Tick{3} * 1'000'000'000'000);
}

} // namespace
} // namespace moscope
