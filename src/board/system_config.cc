// SPDX-License-Identifier: BSD-3-Clause
#include "board/system_config.hh"

#include <nlohmann/json.hpp>

#include "base/error.hh"
#include "board/cpu_model.hh"

namespace moscope {

namespace {

using nlohmann::json;

template <class T> T need(const json &j, const char *key) {
    const auto i = j.find(key);
    if (i == j.end())
        throw UserError(std::string("system: key \"") + key +
                        "\" is missing: expected a configuration of schema moscope.system/1");
    try {
        return i->get<T>();
    } catch (const json::exception &) {
        throw UserError(std::string("system: ") + key +
                        ": is of the wrong type: expected the type of schema moscope.system/1");
    }
}

} // namespace

SystemConfig parse_system_config(const std::string &text) {
    const json j = json::parse(text, nullptr, false);
    if (!j.is_object() || j.value("schema", "") != "moscope.system/1")
        throw UserError("system: unknown schema: expected moscope.system/1");
    SystemConfig c;
    c.cores = need<unsigned>(j, "cores");
    c.chips = need<unsigned>(j, "chips");
    c.cores_per_chip = need<unsigned>(j, "cores_per_chip");
    const json clock = need<json>(j, "core_clock");
    c.core_clock = {need<std::int64_t>(clock, "num"), need<std::int64_t>(clock, "den")};
    c.memory_per_node = need<std::uint64_t>(j, "memory_per_node");
    c.hops = need<std::vector<std::vector<unsigned>>>(j, "hops");
    c.cpu = parse_cpu_model(need<json>(j, "cpu").dump());
    c.kernel = need<std::string>(j, "kernel");
    c.initrd = need<std::string>(j, "initrd");
    c.append = need<std::string>(j, "append");
    c.disk = need<std::string>(j, "disk");
    c.disk_read_only = j.value("disk_read_only", false);
    c.seed = need<std::uint64_t>(j, "seed");
    if (const auto d = j.find("detailed"); d != j.end()) {
        c.machine = need<json>(*d, "machine").dump();
        c.library = need<std::string>(*d, "library");
        c.attribution = d->value("attribution", true);
        c.transactions = d->value("transactions", "");
        c.zero_lookahead = d->value("zero_lookahead", false);
        c.threads = d->value("threads", 0u);
        c.threads_if_possible = d->value("threads_if_possible", false);
    }
    c.restore = j.value("restore", false);
    c.markers = j.value("markers", std::vector<std::string>{});
    if (c.cores < 1 || c.cores_per_chip < 1 || c.cores_per_chip > 8 || c.cores > c.chips * c.cores_per_chip)
        throw UserError("system: cores: " + std::to_string(c.cores) + ": expected 1 to " +
                        std::to_string(c.chips * c.cores_per_chip));
    if (c.chips > 8 || c.hops.size() != c.chips)
        throw UserError("system: chips: " + std::to_string(c.chips) + ": expected 1 to 8, each with its row of hops");
    if (c.memory_per_node < (std::uint64_t{64} << 20) || c.memory_per_node % (2 << 20))
        throw UserError("system: memory_per_node: " + std::to_string(c.memory_per_node) +
                        ": expected 64MiB or more, a multiple of 2MiB");
    json same = j;
    for (const char *own : {"kernel", "initrd", "append", "disk", "disk_read_only", "restore", "markers", "detailed"})
        same.erase(own);
    c.description = same.dump();
    return c;
}

bool same_machine(const std::string &description, const std::string &other) {
    const auto machine = [](const std::string &text) {
        json j = json::parse(text, nullptr, false);
        if (j.is_object())
            j.erase("info");
        return j;
    };
    const json one = machine(description);
    return one.is_object() && one == machine(other);
}

} // namespace moscope
