// SPDX-License-Identifier: BSD-3-Clause
#include "board/system_config.hh"

#include "attribution/transaction_counts.hh"
#include "board/cpu_model.hh"
#include "board/guest_limits.hh"
#include "schema/config_reader.hh"

namespace moscope {

namespace {

using nlohmann::json;

void read_detailed(const ConfigReader &from, SystemConfig &c) {
    c.machine = std::make_shared<const json>(from.at("machine", "an elaborated machine").value());
    c.library = from.get<std::string>("library");
    from.read("attribution", c.attribution);
    from.read("transactions", c.transactions);
    from.read("stacks", c.stacks);
    from.read("zero_lookahead", c.zero_lookahead);
    if (from.has("watchdog_fs"))
        c.watchdog = from.get<Tick>("watchdog_fs");
    from.read("threads", c.threads);
    from.read("threads_if_possible", c.threads_if_possible);
}

void check(const ConfigReader &from, const SystemConfig &c) {
    using Limits = GuestLimits;
    if (c.cores_per_chip < 1 || c.cores_per_chip > Limits::cores_per_chip)
        from.at("cores_per_chip")
            .refuse(std::to_string(c.cores_per_chip),
                    "1 to " + std::to_string(Limits::cores_per_chip) + " on a machine that runs guests");
    if (c.cores < 1 || c.cores > c.chips * c.cores_per_chip)
        from.at("cores").refuse(std::to_string(c.cores), "1 to " + std::to_string(c.chips * c.cores_per_chip));
    if (c.chips > Limits::chips || c.hops.size() != c.chips)
        from.at("chips").refuse(std::to_string(c.chips),
                                "1 to " + std::to_string(Limits::chips) +
                                    " on a machine that runs guests, each with its row of hops");
    if (c.memory_per_node < Limits::memory_per_node || c.memory_per_node % Limits::memory_step)
        from.at("memory_per_node")
            .refuse(std::to_string(c.memory_per_node), std::to_string(Limits::memory_per_node >> 20) +
                                                           "MiB or more, a multiple of " +
                                                           std::to_string(Limits::memory_step >> 20) + "MiB");
    if (c.machine && c.attribution && c.memory() > TransactionKey::kMostDram)
        from.at("memory_per_node")
            .refuse(std::to_string(c.memory_per_node), "at most 256GiB on all nodes if waiting is attributed to lines");
}

} // namespace

SystemConfig parse_system_config(const std::string &text) {
    const json j = ConfigReader::parse(text, "system", "a configuration of schema moscope.system/1");
    const ConfigReader from(j, "system");
    if (from.get_or("schema", std::string()) != "moscope.system/1")
        from.refuse("not a configuration", "schema moscope.system/1");
    SystemConfig c;
    c.cores = from.get<unsigned>("cores");
    c.chips = from.get<unsigned>("chips");
    c.cores_per_chip = from.get<unsigned>("cores_per_chip");
    const ConfigReader clock = from.at("core_clock");
    c.core_clock = {clock.get<std::int64_t>("num"), clock.get<std::int64_t>("den")};
    c.memory_per_node = from.get<std::uint64_t>("memory_per_node");
    c.hops = from.get<std::vector<std::vector<unsigned>>>("hops");
    c.cpu = read_cpu_model(from.at("cpu"));
    c.kernel = from.get<std::string>("kernel");
    c.initrd = from.get<std::string>("initrd");
    c.append = from.get<std::string>("append");
    c.disk = from.get<std::string>("disk");
    from.read("disk_read_only", c.disk_read_only);
    c.seed = from.get<std::uint64_t>("seed");
    if (from.has("nic")) {
        c.nic.emplace();
        static_cast<dev::NicParams &>(*c.nic) = read_group<dev::NicParams>(from.at("nic"));
        c.nic->queues = c.nic->queues ? c.nic->queues : std::min(c.cores, dev::NicSettings::Most::queues);
        from.read("pcap", c.nic->pcap);
    }
    if (from.has("detailed"))
        read_detailed(from.at("detailed"), c);
    from.read("restore", c.restore);
    from.read("markers", c.markers);
    check(from, c);
    json same = j;
    for (const char *own :
         {"kernel", "initrd", "append", "disk", "disk_read_only", "restore", "markers", "detailed", "pcap"})
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
