// SPDX-License-Identifier: BSD-3-Clause
// Checks of the network's parameters; each failure names the key and what was expected.
#include "mem/ruby/network/params.hh"

#include <algorithm>

#include "mem/ruby/network/routing.hh"
#include "schema/config_reader.hh"

namespace moscope::ruby {

namespace {

[[noreturn]] void bad(const std::string &key, const std::string &problem, const std::string &expected) {
    throw UserError("network." + key + ": " + problem + ": expected " + expected);
}

std::string link_name(const LinkParams &l) { return std::to_string(l.a) + "-" + std::to_string(l.b); }

} // namespace

Tick LinkParams::serialization(unsigned bytes) const {
    constexpr __int128 kSecond = 1'000'000'000'000'000;
    const __int128 per_second = static_cast<__int128>(width_bits) * 2 * clock_hz; // bits
    return static_cast<Tick>((static_cast<__int128>(bytes) * 8 * kSecond + per_second / 2) / per_second);
}

Tick NetworkParams::command_latency(unsigned from, unsigned to, std::string_view channel) const {
    if (kind == Kind::ideal)
        return ideal_latency;
    const auto c =
        std::find_if(channels.begin(), channels.end(), [&](const ChannelParams &p) { return p.name == channel; });
    const unsigned size =
        c == channels.end() ? bytes[0] : packet_bytes(static_cast<unsigned>(c - channels.begin()), false);
    Tick t = router_latency;
    while (from != to) {
        const unsigned next = routes[from][to];
        const auto link = std::find_if(links.begin(), links.end(), [&](const LinkParams &l) {
            return (l.a == from && l.b == next) || (l.b == from && l.a == next);
        });
        t += link->serialization(size) + link->latency_fs + router_latency;
        from = next;
    }
    return t;
}

/// A packet takes the crossbar, its serialization and the link.
Tick NetworkParams::shortest_hop() const {
    Tick t = kNever;
    for (const LinkParams &l : links)
        for (unsigned c = 0; c < channels.size(); ++c)
            t = std::min(t, router_latency + l.serialization(packet_bytes(c, false)) + l.latency_fs);
    return t;
}

/// The least of a packet's hop and of a credit's return. While a credit returns, the packet that will use it may
/// already cross the router, so this latency is subtracted.
Tick NetworkParams::lookahead() const {
    if (kind == Kind::ideal || jitter > 0) // random tests run on one thread
        return 0;
    Tick t = shortest_hop();
    for (const LinkParams &l : links)
        t = std::min(t, (l.credit_latency_fs < 0 ? l.latency_fs : l.credit_latency_fs) - router_latency);
    return std::max<Tick>(t, 0);
}

std::vector<ChannelParams> NetworkParams::hypertransport_channels() {
    // Order as in `Channel`. A posted buffer holds command and data together; probes carry no data in
    // HyperTransport, so the count given to them matters only to protocols that put data there.
    return {{"request", 4, 2}, {"posted", 2, 2}, {"response", 9, 2}, {"probe", 9, 9}};
}

void NetworkParams::validate() const {
    if (routers == 0)
        bad("routers", "there is none", "at least 1");
    for (const auto &p : ports)
        if (p.router >= routers)
            bad("ports", p.machine + " " + std::to_string(p.version) + " is on router " + std::to_string(p.router),
                "a number below " + std::to_string(routers));
    if (jitter < 0)
        bad("jitter_fs", "is negative", "0 or more");
    if (vnet_channel.size() > kMaxVnets)
        bad("vnet_channel", std::to_string(vnet_channel.size()) + " virtual networks",
            "at most " + std::to_string(kMaxVnets));
    if (kind == Kind::ideal) {
        if (ideal_latency <= 0)
            bad("latency_fs", "is not positive", "1 or more");
        return;
    }
    if (router_latency <= 0)
        bad("router.latency_fs", "is not positive", "1 or more");
    if (port_bytes_per_cycle == 0)
        bad("router.port_bytes_per_cycle", "is 0", "1 or more");
    if (crossbar_period_num <= 0 || crossbar_period_den <= 0)
        bad("router.clock", "the period is not positive", "a positive period_num and period_den");
    if (channels.empty() || channels.size() > kMaxChannels)
        bad("credits", std::to_string(channels.size()) + " channels", "1 to " + std::to_string(kMaxChannels));
    for (const auto &c : channels) {
        if (c.commands == 0 || c.data == 0)
            bad("credits", "channel " + c.name + " has no buffer, so nothing could ever be sent on it",
                "1 or more of each kind");
        if (c.commands > 4096 || c.data > 4096)
            bad("credits", "channel " + c.name + " has too many buffers", "at most 4096");
        const auto number = static_cast<unsigned>(&c - channels.data());
        const unsigned command = packet_bytes(number, false), data = packet_bytes(number, true);
        if (command == 0 || data <= command || data > 4096)
            bad("packet_bytes",
                "channel " + c.name + ": command " + std::to_string(command) + ", data " + std::to_string(data),
                "command 1 or more, data (the whole packet) larger than command and at most 4096");
    }
    if (free_commands > 4096 || free_data > 4096)
        bad("credits", "the free list has too many buffers", "at most 4096");
    for (std::size_t v = 0; v < vnet_channel.size(); ++v)
        if (vnet_channel[v] >= channels.size())
            bad("vnet_channel", "virtual network " + std::to_string(v) + " has no such channel",
                "one of the channels of credits");
    const auto check_settings = [&](const auto &l) {
        check_group<LinkSettings>(
            l, [&](const char *name, const std::string &value, const std::string &least, const std::string &most) {
                bad("links", "link " + link_name(l) + ": " + name + " " + value + " is out of range",
                    least + " to " + most);
            });
    };
    for (const auto &l : links) {
        if (l.a >= routers || l.b >= routers || l.a == l.b)
            bad("links", "link " + link_name(l), "two different routers below " + std::to_string(routers));
        const auto same_ends = [&](const auto &other) {
            return std::minmax(other.a, other.b) == std::minmax(l.a, l.b);
        };
        if (std::count_if(links.begin(), links.end(), same_ends) > 1)
            bad("links", "link " + link_name(l) + " is there twice", "one link, of the width of both");
        check_settings(l);
        for (unsigned c = 0; c < channels.size(); ++c)
            if (l.serialization(packet_bytes(c, false)) <= 0)
                bad("links", "link " + link_name(l) + " sends a packet in no time", "a smaller width or clock");
    }
    RoutingTables(*this); // complete, consistent, acyclic
}

} // namespace moscope::ruby
