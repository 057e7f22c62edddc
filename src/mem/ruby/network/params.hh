// SPDX-License-Identifier: BSD-3-Clause
// Parameters of the network, as the elaborated machine gives them (docs/network.md lists the JSON keys with
// their units). Times are femtoseconds. `validate` checks everything before the first tick, so the running network
// checks nothing again.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "base/types.hh"
#include "schema/links.hh"

namespace moscope::ruby {

/// Channels of one link: HyperTransport's four, and room for more where a protocol needs them.
inline constexpr unsigned kMaxChannels = 8;
inline constexpr unsigned kMaxVnets = 16;

/// One buffer class of a link (HyperTransport I/O Link Specification 3.10, section 4): packets wait for a
/// command buffer at the far side, packets with data for a data buffer as well.
struct ChannelParams {
    std::string name;
    unsigned commands = 1; ///< command buffers per link direction
    unsigned data = 1;     ///< data buffers per link direction
    /// Whole packets on this channel, [0] a command, [1] a command with a line of data; 0: as NetworkParams::bytes.
    unsigned bytes[2] = {0, 0};
};

/// Where a controller is connected. Controllers of a router that name the same port share it.
struct PortParams {
    std::string machine; ///< machine type, as in the protocol
    int version = 0;
    unsigned router = 0;
    std::string port; ///< empty: a port of its own
};

/// Limits, defaults and meanings of most fields: src/schema/links.py.
struct LinkParams : LinkSettings {
    Tick credit_latency_fs = -1; ///< return of a freed buffer's credit; negative: as latency_fs

    /// Ticks that `bytes` occupy one direction, rounded to the nearest.
    Tick serialization(unsigned bytes) const;
};

struct NetworkParams {
    enum class Kind { hypertransport, ideal };
    Kind kind = Kind::hypertransport;

    unsigned routers = 1;
    std::vector<PortParams> ports;
    Tick router_latency = 1'000'000; ///< one pass through a crossbar
    unsigned port_bytes_per_cycle = 16;
    std::int64_t crossbar_period_num = 1'000'000, crossbar_period_den = 1; ///< fs
    std::vector<LinkParams> links;
    std::vector<std::vector<unsigned>> routes; ///< [router][destination router] -> next router
    std::vector<ChannelParams> channels;
    unsigned free_commands = 0, free_data = 0; ///< buffers of a link direction that any channel may take
    std::vector<unsigned> vnet_channel;        ///< index into channels
    unsigned bytes[2] = {8, 72};               ///< whole packets, where a channel says nothing else
    Tick jitter = 0;                           ///< each delivery is delayed by a random time in [0, jitter]
    std::uint64_t seed = 1;

    Tick ideal_latency = 1'000'000; ///< kind ideal

    unsigned packet_bytes(unsigned channel, bool data) const {
        const unsigned own = channels[channel].bytes[data];
        return own ? own : bytes[data];
    }

    /// A packet without data on idle links from one router to another: crossbars, serialization, flight. `channel`
    /// by name; where there is none of that name, packets are of the size for all.
    Tick command_latency(unsigned from, unsigned to, std::string_view channel) const;

    /// Least time from an event at one router to its effect on another; 0: they affect each other at once.
    Tick lookahead() const;
    /// Least time from a packet's grant at one router to its arrival at the next; kNever: there are no links.
    Tick shortest_hop() const;

    /// HyperTransport's channels with the buffer counts of one coherent link.
    static std::vector<ChannelParams> hypertransport_channels();

    /// Throws UserError naming the key and what was expected.
    void validate() const;

    static NetworkParams from_json(const nlohmann::json &j);
    static NetworkParams from_json_text(std::string_view text);
};

} // namespace moscope::ruby
