// SPDX-License-Identifier: BSD-3-Clause
// Reads the network's parameters from the elaborated machine (keys and units: docs/network.md). Unknown keys are refused.
#include <algorithm>

#include "mem/ruby/network/params.hh"
#include "schema/config_reader.hh"

namespace moscope::ruby {

namespace {

using nlohmann::json;

void read_ports(const ConfigReader &ports, NetworkParams &p) {
    for (const ConfigReader &j : ports.list()) {
        j.only({"controller", "router", "port"});
        PortParams port;
        const ConfigReader controller = j.at("controller");
        const json &pair = controller.value();
        if (!pair.is_array() || pair.size() != 2)
            controller.refuse("is not a pair", "[machine type, version]");
        port.machine = controller.list()[0].as<std::string>();
        port.version = controller.list()[1].as<int>();
        j.read("router", port.router);
        j.read("port", port.port);
        p.ports.push_back(port);
    }
}

void read_links(const ConfigReader &links, NetworkParams &p) {
    for (const ConfigReader &j : links.list()) {
        LinkParams l;
        static_cast<LinkSettings &>(l) = read_group<LinkSettings>(j, {"credit_latency_fs"});
        if (j.has("credit_latency_fs"))
            l.credit_latency_fs = j.at("credit_latency_fs").integer<Tick>(0, kNever);
        p.links.push_back(l);
    }
}

constexpr std::string_view kData = "_data";

/// Keys: NAME of a channel, with its number of command buffers; NAME_data, with its number of data buffers; `free` and
/// `free_data`, the same for the free list. The four channels of HyperTransport always exist; others are added in the
/// order of their names.
void read_credits(const ConfigReader &credits, NetworkParams &p) {
    const auto find = [&p](const std::string &name) {
        return std::find_if(p.channels.begin(), p.channels.end(), [&](const auto &c) { return c.name == name; });
    };
    credits.each_key([&](const std::string &key, const ConfigReader &value) {
        if (key.ends_with(kData))
            return;
        const auto n = value.as<unsigned>();
        if (key == "free")
            p.free_commands = n;
        else if (auto c = find(key); c != p.channels.end())
            c->commands = n;
        else
            p.channels.push_back({key, n, n});
    });
    // A buffer of these channels holds command and data, unless NAME_data says otherwise.
    for (auto &c : p.channels)
        if (c.name == "posted" || c.name == "probe")
            c.data = c.commands;
    credits.each_key([&](const std::string &key, const ConfigReader &value) {
        if (!key.ends_with(kData))
            return;
        if (key == "free_data") {
            p.free_data = value.as<unsigned>();
            return;
        }
        auto c = find(key.substr(0, key.size() - kData.size()));
        if (c == p.channels.end())
            value.refuse("there is no such channel", "the name of a channel in credits and _data");
        c->data = value.as<unsigned>();
    });
}

/// Keys: `command` and `data`, the packet sizes of all channels that are not named; NAME and NAME_data, those of one.
void read_packet_bytes(const ConfigReader &sizes, NetworkParams &p) {
    sizes.each_key([&](const std::string &key, const ConfigReader &value) {
        unsigned *bytes = key == "command" ? &p.bytes[0] : key == "data" ? &p.bytes[1] : nullptr;
        for (auto &c : p.channels) {
            if (key == c.name)
                bytes = &c.bytes[0];
            if (key == c.name + std::string(kData))
                bytes = &c.bytes[1];
        }
        if (!bytes)
            value.refuse("there is no such channel", "command, data, the name of a channel, or that and _data");
        *bytes = value.as<unsigned>();
        if (*bytes == 0)
            value.refuse("is 0", "1 or more");
    });
}

void read_vnets(const ConfigReader &vnets, NetworkParams &p) {
    vnets.each_key([&](const std::string &key, const ConfigReader &value) {
        if (key.empty() || key.size() > 2 ||
            !std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
            std::stoul(key) >= kMaxVnets)
            value.refuse("is not a virtual network", "0 to " + std::to_string(kMaxVnets - 1));
        const auto v = std::stoul(key);
        if (p.vnet_channel.size() <= v)
            p.vnet_channel.resize(v + 1, 0);
        std::string names;
        unsigned found = kMaxChannels;
        for (unsigned c = 0; c < p.channels.size(); ++c) {
            names += (c ? ", " : "") + p.channels[c].name;
            if (value.value() == p.channels[c].name)
                found = c;
        }
        if (found == kMaxChannels)
            value.refuse("there is no channel " + value.value().dump(), "one of " + names);
        p.vnet_channel[v] = found;
    });
}

void read_router(const ConfigReader &router, NetworkParams &p) {
    router.only({"latency_fs", "port_bytes_per_cycle", "clock"});
    p.router_latency = router.get<Tick>("latency_fs");
    router.read("port_bytes_per_cycle", p.port_bytes_per_cycle);
    const ConfigReader clock = router.at("clock");
    clock.only({"period_num", "period_den"});
    clock.read("period_num", p.crossbar_period_num);
    clock.read("period_den", p.crossbar_period_den);
}

} // namespace

NetworkParams NetworkParams::from_json(const json &j) {
    const ConfigReader o(j, "network");
    NetworkParams p;
    p.channels = hypertransport_channels();
    constexpr std::array<const char *, 2> kKinds = {"hypertransport", "ideal"};
    p.kind = o.at("kind", "hypertransport or ideal").one_of<Kind>(kKinds);
    if (p.kind == Kind::ideal) {
        o.only({"kind", "latency_fs", "jitter_fs", "seed"});
        p.ideal_latency = o.get<Tick>("latency_fs");
    } else {
        o.only({"kind", "routers", "ports", "router", "links", "routes", "vnet_channel", "credits", "packet_bytes",
                "jitter_fs", "seed"});
        p.routers = o.get<unsigned>("routers");
        read_ports(o.at("ports"), p);
        read_router(o.at("router"), p);
        read_links(o.at("links"), p);
        p.routes = o.get<std::vector<std::vector<unsigned>>>("routes");
        if (o.has("credits"))
            read_credits(o.at("credits"), p);
        read_vnets(o.at("vnet_channel"), p);
        if (o.has("packet_bytes"))
            read_packet_bytes(o.at("packet_bytes"), p);
    }
    o.read("jitter_fs", p.jitter);
    o.read("seed", p.seed);
    p.validate();
    return p;
}

NetworkParams NetworkParams::from_json_text(std::string_view text) {
    return from_json(ConfigReader::parse(text, "network", "the network object of an elaborated machine"));
}

} // namespace moscope::ruby
