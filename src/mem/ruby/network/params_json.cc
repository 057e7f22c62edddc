// SPDX-License-Identifier: BSD-3-Clause
// Reads the network's parameters from the elaborated machine (keys and units: docs/network.md). Keys that are
// not known are refused by name, so a misspelt one cannot be silently ignored.
#include <algorithm>
#include <initializer_list>

#include <nlohmann/json.hpp>

#include "base/error.hh"
#include "mem/ruby/network/params.hh"

namespace moscope::ruby {

namespace {

using nlohmann::json;

[[noreturn]] void bad(const std::string &key, const std::string &wrong, const std::string &right) {
    throw UserError("network" + (key.empty() ? "" : "." + key) + ": " + wrong + ": expected " + right);
}

/// One JSON object being read; remembers its place for messages.
class Object {
  public:
    Object(const json &j, std::string where, std::initializer_list<const char *> known)
        : j_(j), where_(std::move(where)) {
        if (!j.is_object())
            bad(where_, "is not an object", "an object with the keys of docs/network.md");
        for (const auto &[key, value] : j.items()) {
            if (std::find(known.begin(), known.end(), key) != known.end())
                continue;
            std::string names;
            for (const char *k : known)
                names += std::string(names.empty() ? "" : ", ") + k;
            bad(path(key), "unknown key", "one of " + names);
        }
    }

    bool has(const char *key) const { return j_.contains(key); }
    const json &at(const char *key) const {
        if (!has(key))
            bad(path(key), "is missing", "a value, see docs/network.md");
        return j_.at(key);
    }
    std::string path(const std::string &key) const { return where_.empty() ? key : where_ + "." + key; }

    template <class T> void read(const char *key, T &out) const {
        if (has(key))
            out = integer<T>(j_.at(key), path(key));
    }

    template <class T> static T integer(const json &v, const std::string &where) {
        if (!v.is_number_integer())
            bad(where, "is not a whole number", "a whole number");
        if (v.is_number_unsigned()) {
            const auto n = v.get<std::uint64_t>();
            if (n > static_cast<std::uint64_t>(std::numeric_limits<T>::max()))
                bad(where, "is too large", "at most " + std::to_string(std::numeric_limits<T>::max()));
            return static_cast<T>(n);
        }
        const auto n = v.get<std::int64_t>();
        if (n < 0 && !std::is_signed_v<T>)
            bad(where, "is negative", "0 or more");
        return static_cast<T>(n);
    }

  private:
    const json &j_;
    std::string where_;
};

const json &array_at(const Object &o, const char *key) {
    const json &a = o.at(key);
    if (!a.is_array())
        bad(o.path(key), "is not a list", "a list");
    return a;
}

void read_ports(const Object &o, NetworkParams &p) {
    for (const json &j : array_at(o, "ports")) {
        Object q(j, "ports", {"controller", "router", "port"});
        PortParams port;
        const json &c = q.at("controller");
        if (!c.is_array() || c.size() != 2 || !c[0].is_string())
            bad("ports.controller", "is not a pair", "[machine type, version]");
        port.machine = c[0].get<std::string>();
        port.version = Object::integer<int>(c[1], "ports.controller");
        q.read("router", port.router);
        if (q.has("port")) {
            if (!q.at("port").is_string())
                bad("ports.port", "is not a name", "a string");
            port.port = q.at("port").get<std::string>();
        }
        p.ports.push_back(port);
    }
}

void read_links(const Object &o, NetworkParams &p) {
    for (const json &j : array_at(o, "links")) {
        Object q(j, "links", {"a", "b", "width_bits", "clock_hz", "latency_fs", "credit_latency_fs", "credit_sets"});
        for (const char *key : {"a", "b", "width_bits", "clock_hz", "latency_fs"})
            q.at(key);
        LinkParams l;
        q.read("a", l.a);
        q.read("b", l.b);
        q.read("width_bits", l.width_bits);
        q.read("clock_hz", l.clock_hz);
        q.read("latency_fs", l.latency);
        if (q.has("credit_latency_fs")) {
            q.read("credit_latency_fs", l.credit_latency);
            if (l.credit_latency < 0)
                bad("links.credit_latency_fs", "is negative", "0 or more");
        }
        q.read("credit_sets", l.credit_sets);
        p.links.push_back(l);
    }
}

void read_routes(const Object &o, NetworkParams &p) {
    for (const json &row : array_at(o, "routes")) {
        if (!row.is_array())
            bad("routes", "a row is not a list", "one list of next routers per router");
        p.routes.emplace_back();
        for (const json &next : row)
            p.routes.back().push_back(Object::integer<unsigned>(next, "routes"));
    }
}

constexpr std::string_view kData = "_data";

/// Keys are channel names with the number of command buffers, NAME_data with that of data buffers; `free` and
/// `free_data` are those of the free list. The four channels of HyperTransport are there always; others are added
/// in the order of their names.
void read_credits(const json &j, NetworkParams &p) {
    if (!j.is_object())
        bad("credits", "is not an object", "channel names with buffer counts");
    const auto find = [&p](const std::string &name) {
        return std::find_if(p.channels.begin(), p.channels.end(), [&](const auto &c) { return c.name == name; });
    };
    for (const auto &[key, value] : j.items()) {
        if (key.ends_with(kData))
            continue;
        const auto n = Object::integer<unsigned>(value, "credits." + key);
        if (key == "free") {
            p.free_commands = n;
            continue;
        }
        if (auto c = find(key); c != p.channels.end())
            c->commands = n;
        else
            p.channels.push_back({key, n, n});
    }
    // One buffer of these holds command and data, unless said otherwise.
    for (auto &c : p.channels)
        if (c.name == "posted" || c.name == "probe")
            c.data = c.commands;
    for (const auto &[key, value] : j.items()) {
        if (!key.ends_with(kData))
            continue;
        if (key == "free_data") {
            p.free_data = Object::integer<unsigned>(value, "credits." + key);
            continue;
        }
        auto c = find(key.substr(0, key.size() - kData.size()));
        if (c == p.channels.end())
            bad("credits." + key, "there is no such channel", "the name of a channel in credits and _data");
        c->data = Object::integer<unsigned>(value, "credits." + key);
    }
}

/// `command` and `data` are the sizes of packets on channels that are not named; NAME and NAME_data those of one.
void read_packet_bytes(const json &j, NetworkParams &p) {
    if (!j.is_object())
        bad("packet_bytes", "is not an object", "command, data, or channel names with bytes");
    for (const auto &[key, value] : j.items()) {
        unsigned *bytes = key == "command" ? &p.bytes[0] : key == "data" ? &p.bytes[1] : nullptr;
        for (auto &c : p.channels) {
            if (key == c.name)
                bytes = &c.bytes[0];
            if (key == c.name + std::string(kData))
                bytes = &c.bytes[1];
        }
        if (!bytes)
            bad("packet_bytes." + key, "there is no such channel",
                "command, data, the name of a channel, or that and _data");
        *bytes = Object::integer<unsigned>(value, "packet_bytes." + key);
        if (*bytes == 0)
            bad("packet_bytes." + key, "is 0", "1 or more");
    }
}

void read_vnets(const Object &o, NetworkParams &p) {
    const json &j = o.at("vnet_channel");
    if (!j.is_object())
        bad("vnet_channel", "is not an object", "virtual network numbers with channel names");
    for (const auto &[key, value] : j.items()) {
        if (key.empty() || key.size() > 2 ||
            !std::all_of(key.begin(), key.end(), [](char c) { return c >= '0' && c <= '9'; }) ||
            std::stoul(key) >= kMaxVnets)
            bad("vnet_channel." + key, "is not a virtual network", "0 to " + std::to_string(kMaxVnets - 1));
        const auto v = std::stoul(key);
        if (p.vnet_channel.size() <= v)
            p.vnet_channel.resize(v + 1, 0);
        std::string names;
        unsigned found = kMaxChannels;
        for (unsigned c = 0; c < p.channels.size(); ++c) {
            names += (c ? ", " : "") + p.channels[c].name;
            if (value == p.channels[c].name)
                found = c;
        }
        if (found == kMaxChannels)
            bad("vnet_channel." + key, "there is no channel " + value.dump(), "one of " + names);
        p.vnet_channel[v] = found;
    }
}

} // namespace

NetworkParams NetworkParams::from_json(const json &j) {
    NetworkParams p;
    if (!j.is_object() || !j.contains("kind"))
        bad("kind", "is missing", "\"hypertransport\" or \"ideal\"");
    p.channels = hypertransport_channels();
    if (j.at("kind") == "ideal") {
        p.kind = Kind::ideal;
        Object o(j, "", {"kind", "latency_fs", "jitter_fs", "seed"});
        o.at("latency_fs");
        o.read("latency_fs", p.ideal_latency);
        o.read("jitter_fs", p.jitter);
        o.read("seed", p.seed);
    } else if (j.at("kind") == "hypertransport") {
        Object o(j, "",
                 {"kind", "routers", "ports", "router", "links", "routes", "vnet_channel", "credits", "packet_bytes",
                  "jitter_fs", "seed"});
        o.at("routers");
        o.read("routers", p.routers);
        read_ports(o, p);
        Object r(o.at("router"), "router", {"latency_fs", "port_bytes_per_cycle", "clock"});
        r.at("latency_fs");
        r.read("latency_fs", p.router_latency);
        r.read("port_bytes_per_cycle", p.port_bytes_per_cycle);
        Object clock(r.at("clock"), "router.clock", {"period_num", "period_den"});
        clock.read("period_num", p.crossbar_period_num);
        clock.read("period_den", p.crossbar_period_den);
        read_links(o, p);
        read_routes(o, p);
        if (o.has("credits"))
            read_credits(o.at("credits"), p);
        read_vnets(o, p);
        if (o.has("packet_bytes"))
            read_packet_bytes(o.at("packet_bytes"), p);
        o.read("jitter_fs", p.jitter);
        o.read("seed", p.seed);
    } else {
        bad("kind", "unknown network " + j.at("kind").dump(), "\"hypertransport\" or \"ideal\"");
    }
    p.validate();
    return p;
}

NetworkParams NetworkParams::from_json_text(std::string_view text) {
    const json j = json::parse(text, nullptr, false);
    if (j.is_discarded())
        bad("", "is not JSON", "the network object of an elaborated machine");
    return from_json(j);
}

} // namespace moscope::ruby
