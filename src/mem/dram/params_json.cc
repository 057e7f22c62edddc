// SPDX-License-Identifier: BSD-3-Clause
// Reads and checks a node's DRAM parameters from the elaborated machine (keys and units: docs/dram.md). The keys
// are two tables; a key that is in neither is refused by name, so a misspelt one cannot be silently ignored.
#include <algorithm>
#include <bit>
#include <limits>

#include <nlohmann/json.hpp>

#include "base/error.hh"
#include "mem/dram/address_map.hh"
#include "mem/dram/params.hh"

namespace moscope::dram {

namespace {

using nlohmann::json;

[[noreturn]] void bad(const std::string &key, const std::string &wrong, const std::string &right) {
    throw UserError("dram." + key + ": " + wrong + ": expected " + right);
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

/// A whole number from 0 to most, whether it was parsed or put there as signed or unsigned.
std::int64_t whole_of(const json &v, const std::string &key, std::int64_t most, const std::string &right) {
    if (!v.is_number_integer())
        bad(key, "is not a whole number", right);
    if (v.is_number_unsigned() ? v.get<std::uint64_t>() > static_cast<std::uint64_t>(most)
                               : v.get<std::int64_t>() > most)
        bad(key, v.dump() + " is out of range", right);
    if (!v.is_number_unsigned() && v.get<std::int64_t>() < 0)
        bad(key, v.dump() + " is negative", right);
    return v.get<std::int64_t>();
}

Tick time_of(const json &v, const std::string &key) {
    return whole_of(v, key, kLongest, "a time in femtoseconds, at most a millisecond");
}

unsigned count_of(const json &v, const std::string &key) {
    return static_cast<unsigned>(whole_of(v, key, std::numeric_limits<unsigned>::max(), "a small whole number"));
}

std::string text_of(const json &v, const std::string &key) {
    if (!v.is_string())
        bad(key, "is not a text", "a text in quotes");
    return v.get<std::string>();
}

PagePolicy policy_of(const std::string &name) {
    if (name == "open")
        return PagePolicy::open;
    if (name == "closed")
        return PagePolicy::closed;
    if (name == "forced")
        return PagePolicy::forced;
    if (name == "idle")
        return PagePolicy::idle;
    bad("page_policy", "unknown policy \"" + name + "\"", "open, closed, forced or idle");
}

/// Length of the shortest way to edit a into b, for naming the nearest known key.
std::size_t edit_distance(const std::string &a, const std::string &b) {
    std::vector<std::size_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j)
        row[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0]++;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t change = diagonal + (a[i - 1] != b[j - 1]);
            diagonal = row[j];
            row[j] = std::min({row[j] + 1, row[j - 1] + 1, change});
        }
    }
    return row[b.size()];
}

[[noreturn]] void unknown(const std::string &prefix, const std::string &key, const std::vector<std::string> &known) {
    const auto nearest = std::min_element(known.begin(), known.end(), [&](const auto &a, const auto &b) {
        return edit_distance(key, a) < edit_distance(key, b);
    });
    bad(prefix + key, "unknown key", "a known key, such as " + *nearest);
}

void read_timing(const json &j, TimingParams &t) {
    if (!j.is_object())
        bad("timing_fs", "is not an object", "an object of timings in femtoseconds");
    std::vector<std::string> known;
    for (const TimingKey &k : kTimings)
        known.emplace_back(k.name);
    for (const auto &[key, value] : j.items())
        if (std::find(known.begin(), known.end(), key) == known.end())
            unknown("timing_fs.", key, known);
    for (const TimingKey &k : kTimings) {
        const std::string where = std::string("timing_fs.") + k.name;
        if (!j.contains(k.name))
            bad(where, "is missing", "a time in femtoseconds");
        t.*k.field = time_of(j.at(k.name), where);
    }
}

unsigned lengths_of(const json &j) {
    unsigned mask = 0;
    if (!j.is_array())
        bad("burst_lengths", "is not a list", "a list such as [4, 8]");
    for (const json &v : j) {
        const unsigned n = count_of(v, "burst_lengths");
        if (n < 2 || n > 16 || !std::has_single_bit(n))
            bad("burst_lengths", std::to_string(n) + " is not a burst length", "2, 4, 8 or 16");
        mask |= 1u << n;
    }
    return mask;
}

} // namespace

DramParams DramParams::from_json(const json &j) {
    if (!j.is_object())
        throw UserError("dram: is not an object: expected an object with the keys of docs/dram.md");
    std::vector<std::string> known = {"standard", "timing_fs", "burst_lengths", "mapping", "page_policy"};
    for (const CountKey &k : kCounts)
        known.emplace_back(k.name);
    for (const SwitchKey &k : kSwitches)
        known.emplace_back(k.name);
    for (const TimeKey &k : kTimes)
        known.emplace_back(k.name);
    for (const auto &[key, value] : j.items())
        if (std::find(known.begin(), known.end(), key) == known.end())
            unknown("", key, known);
    for (const char *key : {"standard", "tCK_fs", "timing_fs", "burst_lengths"})
        if (!j.contains(key))
            bad(key, "is missing", "a value, see docs/dram.md");

    DramParams p;
    p.standard = text_of(j.at("standard"), "standard");
    read_timing(j.at("timing_fs"), p.t);
    p.burst_lengths = lengths_of(j.at("burst_lengths"));
    if (j.contains("mapping"))
        p.mapping = text_of(j.at("mapping"), "mapping");
    if (j.contains("page_policy"))
        p.page_policy = policy_of(text_of(j.at("page_policy"), "page_policy"));
    for (const CountKey &k : kCounts)
        if (j.contains(k.name))
            p.*k.field = count_of(j.at(k.name), k.name);
    for (const SwitchKey &k : kSwitches)
        if (j.contains(k.name)) {
            if (!j.at(k.name).is_boolean())
                bad(k.name, "is not a switch", "true or false");
            p.*k.field = j.at(k.name).get<bool>();
        }
    for (const TimeKey &k : kTimes)
        if (j.contains(k.name))
            p.*k.field = time_of(j.at(k.name), k.name);
    p.validate();
    return p;
}

DramParams DramParams::from_json_text(std::string_view text) {
    const json j = json::parse(text, nullptr, false);
    if (j.is_discarded())
        throw UserError("dram: is not JSON: expected the dram object of an elaborated machine");
    return from_json(j);
}

void DramParams::validate() const {
    for (const CountKey &k : kCounts) {
        const unsigned n = this->*k.field;
        if (n < k.least || n > k.most)
            bad(k.name, std::to_string(n) + " is out of range",
                std::to_string(k.least) + " to " + std::to_string(k.most));
        if (k.power_of_two && !std::has_single_bit(n))
            bad(k.name, std::to_string(n) + " is no power of two",
                "a power of two, such as " + std::to_string(std::bit_floor(n)));
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
