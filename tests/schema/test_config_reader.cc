// SPDX-License-Identifier: BSD-3-Clause
// The reader of configurations: values come as their type, and an error names the place, the problem and what is expected.
#include <gtest/gtest.h>

#include "schema/config_reader.hh"
#include "schema/counters.hh"
#include "schema/pipeline.hh"

namespace moscope {
namespace {

using json = nlohmann::json;

template <class F> std::string error_of(F &&f) {
    try {
        f();
    } catch (const UserError &e) {
        return e.what();
    }
    return "no error";
}

TEST(ConfigReader, ReadsValuesOfTheirType) {
    const json j = {{"n", 3},         {"on", true}, {"name", "x"}, {"list", {1, 2}}, {"rows", {{1}, {2, 3}}},
                    {"none", nullptr}};
    const ConfigReader c(j, "c");
    EXPECT_EQ(c.get<unsigned>("n"), 3u);
    EXPECT_TRUE(c.get<bool>("on"));
    EXPECT_EQ(c.get<std::string>("name"), "x");
    EXPECT_EQ(c.get<std::vector<int>>("list"), (std::vector<int>{1, 2}));
    EXPECT_EQ(c.get<std::vector<std::vector<int>>>("rows")[1][1], 3);
    EXPECT_EQ(c.get_or("missing", 7), 7);
    EXPECT_EQ(c.get_or("none", 7), 7) << "null is as good as missing";
}

TEST(ConfigReader, AnErrorNamesPlaceProblemAndExpectation) {
    const json j = {{"n", -1}, {"text", 5}, {"big", 300}, {"list", {1, "x"}}, {"inner", {{"width", 1}}}};
    const ConfigReader c(j, "machine");
    EXPECT_EQ(error_of([&] { c.get<unsigned>("m"); }), "machine.m: is missing: expected a whole number");
    EXPECT_EQ(error_of([&] { c.get<unsigned>("n"); }), "machine.n: -1 is out of range: expected 0 to 4294967295");
    EXPECT_EQ(error_of([&] { c.get<std::uint8_t>("big"); }), "machine.big: 300 is out of range: expected 0 to 255");
    EXPECT_EQ(error_of([&] { c.get<std::string>("text"); }), "machine.text: is not a string: expected a string");
    EXPECT_EQ(error_of([&] { c.get<bool>("text"); }), "machine.text: is not a switch: expected true or false");
    EXPECT_EQ(error_of([&] { c.get<std::vector<int>>("list"); }).substr(0, 41),
              "machine.list[1]: is not a whole number: e");
    EXPECT_EQ(error_of([&] { c.at("text").has("x"); }), "machine.text: is not an object: expected an object");
    EXPECT_EQ(error_of([&] {
                  c.at("inner").only({"widths", "clock"});
              }),
              "machine.inner.width: unknown key: expected a known key such as widths");
    EXPECT_EQ(error_of([] { ConfigReader::parse("{", "machine", "an elaborated machine"); }),
              "machine: is not JSON: expected an elaborated machine");
}

TEST(ConfigReader, ADescribedGroupHasItsNamesDefaultsAndLimits) {
    const auto read = [](const json &j) { return read_group<x86::PipelineParams>({j, "machine.pipeline"}); };
    EXPECT_EQ(read(json::object()).store_buffer, 32u);
    EXPECT_EQ(read({{"store_buffer", 4}}).store_buffer, 4u);
    EXPECT_EQ(read({{"interrupt_fs", 5}}).interrupt_fs, 5);
    EXPECT_EQ(error_of([&] {
                  read({{"store_buffer", 0}});
              }),
              "machine.pipeline.store_buffer: 0 is out of range: expected 1 to 256");
    EXPECT_EQ(error_of([&] {
                  read({{"l1_tlb", 1}});
              }),
              "machine.pipeline.l1_tlb: unknown key: expected a known key such as l1d_tlb");
}

TEST(Counters, AreSubtractedAndWrittenByName) {
    dram::ChannelStats begin, end;
    begin.reads = 2, end.reads = 5, end.forced = 1;
    end.lost[static_cast<unsigned>(dram::Lost::refresh)] = 9;
    const json j = counters_json<json>(end - begin);
    EXPECT_EQ(j["reads"], 3);
    EXPECT_EQ(j["lost"], (json{{"refresh", 9}})) << "zero counts are left out";
    EXPECT_FALSE(j.contains("forced")) << "an internal counter";
    end += end;
    EXPECT_EQ(end.reads, 10u);
}

} // namespace
} // namespace moscope
