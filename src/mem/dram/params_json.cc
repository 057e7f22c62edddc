// SPDX-License-Identifier: BSD-3-Clause
// Reads and checks a node's DRAM parameters from the elaborated machine (keys and units: docs/dram.md). Unknown keys are
// refused.
#include <bit>

#include "mem/dram/address_map.hh"
#include "mem/dram/params.hh"
#include "schema/config_reader.hh"

namespace moscope::dram {

namespace {

using nlohmann::json;

[[noreturn]] void bad(const std::string &key, const std::string &problem, const std::string &expected) {
    ConfigReader({}, "dram." + key).refuse(problem, expected);
}

unsigned lengths_of(const ConfigReader &from) {
    unsigned mask = 0;
    for (const ConfigReader &v : from.list()) {
        const auto n = v.as<unsigned>();
        if (n < 2 || n > 16 || !std::has_single_bit(n))
            v.refuse(std::to_string(n) + " is not a burst length", "2, 4, 8 or 16");
        mask |= 1u << n;
    }
    return mask;
}

} // namespace

DramParams DramParams::from_json(const json &j) {
    const ConfigReader from(j, "dram");
    DramParams p;
    static_cast<DramSettings &>(p) =
        read_group<DramSettings>(from, {"standard", "timing_fs", "burst_lengths", "mapping", "page_policy"});
    p.standard = from.get<std::string>("standard");
    p.t = read_group<TimingParams>(from.at("timing_fs", "an object of timings in femtoseconds"));
    p.burst_lengths = lengths_of(from.at("burst_lengths", "a list such as [4, 8]"));
    from.read("mapping", p.mapping);
    if (from.has("page_policy"))
        p.page_policy = from.at("page_policy").one_of<PagePolicy>(kPagePolicyNames);
    p.validate();
    return p;
}

DramParams DramParams::from_json_text(std::string_view text) {
    return from_json(ConfigReader::parse(text, "dram", "the dram object of an elaborated machine"));
}

void DramParams::validate() const {
    const auto range = [](const std::string &prefix) {
        return [prefix](const char *name, const std::string &value, const std::string &least, const std::string &most) {
            bad(prefix + name, value + " is out of range", least + " to " + most);
        };
    };
    check_group<DramSettings>(*this, range(""));
    check_group(t, range("timing_fs."));
    const std::pair<const char *, std::uint64_t> powers[] = {{"channels", channels},   {"channel_bytes", channel_bytes},
                                                             {"ranks", ranks},         {"banks", banks},
                                                             {"row_bytes", row_bytes}, {"rows", rows}};
    for (const auto &[name, n] : powers)
        if (!std::has_single_bit(n))
            bad(name, std::to_string(n) + " is not a power of two",
                "a power of two such as " + std::to_string(std::bit_floor(n)));
    TimingParams::visit(
        [](const std::string_view name, Tick value, Tick, Tick) {
            const bool optional =
                name == "tFAW" || name == "tRTRS" || name == "tRTW" || name == "tREFI" || name == "tRFC";
            if (!optional && value == 0)
                bad("timing_fs." + std::string(name), "is zero", "the value of the part's data sheet");
        },
        t);
    if (t.tRC < t.tRAS + t.tRP)
        bad("timing_fs.tRC", "is less than tRAS + tRP", "at least " + std::to_string(t.tRAS + t.tRP));
    if (t.tRAS < t.tRCD)
        bad("timing_fs.tRAS", "is less than tRCD", "at least " + std::to_string(t.tRCD));
    if (t.tFAW && t.tFAW < t.tRRD)
        bad("timing_fs.tFAW", "is less than tRRD", "0, or at least " + std::to_string(t.tRRD));
    if (const Tick least = 2 * ranks * (t.tRFC + t.tRC); t.tREFI && t.tREFI < least)
        bad("timing_fs.tREFI", "leaves too little time beside refreshes, each of which takes tRFC + tRC",
            "at least " + std::to_string(least) + ", 0 for no refresh, or a shorter tRFC");
    if (bus_bytes() > kLineBytes / 2 || !(burst_lengths >> burst_length() & 1))
        bad("burst_lengths",
            "a line of 64 bytes is a burst of " + std::to_string(burst_length()) + " on a bus of " +
                std::to_string(bus_bytes()) + " bytes, which the parts do not do",
            "another channel_bytes, or ganged " + std::string(ganged ? "false" : "true"));
    if (ranks * banks > 64)
        bad("ranks", "more than 64 banks per channel", "fewer ranks or banks");
    if (scheduler_depth > read_entries)
        bad("scheduler_depth", "is larger than read_entries",
            "at most " + std::to_string(read_entries) + ", or more read_entries");
    if (write_high > write_entries)
        bad("write_high", "is larger than write_entries",
            "at most " + std::to_string(write_entries) + ", or more write_entries");
    if (write_low >= write_high)
        bad("write_low", "is not below write_high", "at most " + std::to_string(write_high - 1));
    if (page_policy == PagePolicy::idle && idle_close_fs < tCK_fs)
        bad("idle_close_fs", "is less than a clock", "at least " + std::to_string(tCK_fs));
    AddressMap check(*this);
    (void)check;
}

} // namespace moscope::dram
