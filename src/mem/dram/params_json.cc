// SPDX-License-Identifier: BSD-3-Clause
// Reads and checks a node's DRAM parameters from the elaborated machine (keys and units: docs/dram.md). The keys
// are two tables; a key that is in neither is refused by name, so a misspelt one cannot be silently ignored.
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

struct TimingKey {
    const char *name;
    Tick TimingParams::*field;
};
constexpr TimingKey kTimings[] = {
    {"tCL", &TimingParams::tCL},     {"tCWL", &TimingParams::tCWL}, {"tRCD", &TimingParams::tRCD},
    {"tRP", &TimingParams::tRP},     {"tRAS", &TimingParams::tRAS}, {"tRC", &TimingParams::tRC},
    {"tWR", &TimingParams::tWR},     {"tWTR", &TimingParams::tWTR}, {"tRTP", &TimingParams::tRTP},
    {"tRRD", &TimingParams::tRRD},   {"tFAW", &TimingParams::tFAW}, {"tCCD", &TimingParams::tCCD},
    {"tRTRS", &TimingParams::tRTRS}, {"tRTW", &TimingParams::tRTW}, {"tREFI", &TimingParams::tREFI},
    {"tRFC", &TimingParams::tRFC},
};

struct CountKey {
    const char *name;
    unsigned DramParams::*field;
    unsigned least, most;
    bool power_of_two;
};
constexpr unsigned kRows = 1u << 20;
constexpr CountKey kCounts[] = {
    {"channels", &DramParams::channels, 1, 8, true},
    {"channel_bytes", &DramParams::channel_bytes, 1, 64, true},
    {"ranks", &DramParams::ranks, 1, 8, true},
    {"banks", &DramParams::banks, 1, 16, true},
    {"row_bytes", &DramParams::row_bytes, kLineBytes, 1u << 20, true},
    {"rows", &DramParams::rows, 2, kRows, true},
    {"read_entries", &DramParams::read_entries, 1, 1024, false},
    {"write_entries", &DramParams::write_entries, 1, 1024, false},
    {"window", &DramParams::window, 1, 1024, false},
    {"write_high", &DramParams::write_high, 1, 1024, false},
    {"write_low", &DramParams::write_low, 0, 1023, false},
    {"bypass_max", &DramParams::bypass_max, 0, 1u << 20, false},
};

struct SwitchKey {
    const char *name;
    bool DramParams::*field;
};
constexpr SwitchKey kSwitches[] = {
    {"ganged", &DramParams::ganged},
    {"bank_swizzle", &DramParams::bank_swizzle},
    {"channel_hash", &DramParams::channel_hash},
    {"critical_word_first", &DramParams::critical_word_first},
};

struct TimeKey {
    const char *name;
    Tick DramParams::*field;
};
constexpr TimeKey kTimes[] = {
    {"tCK_fs", &DramParams::tCK},
    {"idle_close_fs", &DramParams::idle_close},
    {"frontend_fs", &DramParams::frontend},
    {"backend_fs", &DramParams::backend},
};

constexpr Tick kLongest = 1'000'000 * kTicksPerNs; // 1 ms: far beyond any DRAM timing, far from overflow

constexpr std::array<const char *, 4> kPolicies = {"open", "closed", "forced", "idle"};

Tick time_of(const ConfigReader &from, const char *key) {
    return from.at(key, "a time in femtoseconds").integer<Tick>(0, kLongest);
}

void read_timing(const ConfigReader &from, TimingParams &t) {
    std::vector<std::string> known;
    for (const TimingKey &k : kTimings)
        known.emplace_back(k.name);
    from.only(known);
    for (const TimingKey &k : kTimings)
        t.*k.field = time_of(from, k.name);
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
    std::vector<std::string> known = {"standard", "timing_fs", "burst_lengths", "mapping", "page_policy"};
    for (const CountKey &k : kCounts)
        known.emplace_back(k.name);
    for (const SwitchKey &k : kSwitches)
        known.emplace_back(k.name);
    for (const TimeKey &k : kTimes)
        known.emplace_back(k.name);
    from.only(known);

    DramParams p;
    p.standard = from.get<std::string>("standard");
    p.tCK = time_of(from, "tCK_fs");
    read_timing(from.at("timing_fs", "an object of timings in femtoseconds"), p.t);
    p.burst_lengths = lengths_of(from.at("burst_lengths", "a list such as [4, 8]"));
    from.read("mapping", p.mapping);
    if (from.has("page_policy"))
        p.page_policy = from.at("page_policy").one_of<PagePolicy>(kPolicies);
    for (const CountKey &k : kCounts)
        from.read(k.name, p.*k.field);
    for (const SwitchKey &k : kSwitches)
        from.read(k.name, p.*k.field);
    for (const TimeKey &k : kTimes)
        if (from.has(k.name))
            p.*k.field = time_of(from, k.name);
    p.validate();
    return p;
}

DramParams DramParams::from_json_text(std::string_view text) {
    return from_json(ConfigReader::parse(text, "dram", "the dram object of an elaborated machine"));
}

void DramParams::validate() const {
    for (const CountKey &k : kCounts) {
        const unsigned n = this->*k.field;
        if (n < k.least || n > k.most)
            bad(k.name, std::to_string(n) + " is out of range",
                std::to_string(k.least) + " to " + std::to_string(k.most));
        if (k.power_of_two && !std::has_single_bit(n))
            bad(k.name, std::to_string(n) + " is no power of two",
                "a power of two such as " + std::to_string(std::bit_floor(n)));
    }
    if (tCK < 100'000)
        bad("tCK_fs", "is not the period of a DRAM clock", "2500000 for DDR2-800");
    for (const TimingKey &k : kTimings) {
        const std::string_view n = k.name;
        const bool optional = n == "tFAW" || n == "tRTRS" || n == "tRTW" || n == "tREFI" || n == "tRFC";
        if (!optional && t.*k.field <= 0)
            bad(std::string("timing_fs.") + k.name, "is zero", "the value of the part's data sheet");
    }
    if (t.tRC < t.tRAS + t.tRP)
        bad("timing_fs.tRC", "is less than tRAS + tRP", "at least " + std::to_string(t.tRAS + t.tRP));
    if (t.tRAS < t.tRCD)
        bad("timing_fs.tRAS", "is less than tRCD", "at least " + std::to_string(t.tRCD));
    if (t.tFAW && t.tFAW < t.tRRD)
        bad("timing_fs.tFAW", "is less than tRRD", "0, or at least " + std::to_string(t.tRRD));
    if (t.tREFI && t.tREFI < 2 * ranks * (t.tRFC + t.tRC))
        bad("timing_fs.tREFI", "leaves no time beside refreshes",
            "more than " + std::to_string(2 * ranks * (t.tRFC + t.tRC)) + ", or 0 for no refresh");
    if (bus_bytes() > kLineBytes / 2 || !(burst_lengths >> burst_length() & 1))
        bad("burst_lengths",
            "a line of 64 bytes is a burst of " + std::to_string(burst_length()) + " on a bus of " +
                std::to_string(bus_bytes()) + " bytes, which the parts do not do",
            "another channel_bytes, or ganged " + std::string(ganged ? "false" : "true"));
    if (ranks * banks > 64)
        bad("ranks", "more than 64 banks per channel", "fewer ranks or banks");
    if (window > read_entries)
        bad("window", "is larger than read_entries", "at most " + std::to_string(read_entries));
    if (write_high > write_entries)
        bad("write_high", "is larger than write_entries", "at most " + std::to_string(write_entries));
    if (write_low >= write_high)
        bad("write_low", "is not below write_high", "at most " + std::to_string(write_high - 1));
    if (page_policy == PagePolicy::idle && idle_close < tCK)
        bad("idle_close_fs", "is less than a clock", "at least " + std::to_string(tCK));
    AddressMap check(*this);
    (void)check;
}

} // namespace moscope::dram
