// SPDX-License-Identifier: BSD-3-Clause
// What the network counts, as plain vectors with names. Ticks are femtoseconds, bytes are those on the wires
// (packet overhead included).
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/types.hh"
#include "schema/counters.hh"

namespace moscope::ruby {

struct LinkStats {
    std::string name; ///< "FROM->TO"
    unsigned from = 0, to = 0;
    std::vector<LinkChannelStats> channel;
};

/// One output port of a crossbar towards controllers.
struct PortStats {
    std::string name; ///< "ROUTER:PORT"
    unsigned router = 0;
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    Tick busy = 0;
    Tick wait = 0; ///< sum over messages: waiting for the port
};

inline constexpr unsigned kHopBins = 16; ///< the last one holds all longer paths

/// Messages of one channel, machine-wide. Those to several destinations count at each one.
struct ChannelStats {
    std::uint64_t sent = 0;      ///< messages entered
    std::uint64_t delivered = 0; ///< deliveries
    std::array<std::uint64_t, kHopBins> delivered_by_hops{};
    Tick latency = 0;  ///< sum over destinations, from entry; what is under way counts as far as it has come
    Tick queueing = 0; ///< waiting for outputs and credits; a packet for several destinations waits once

    ChannelStats &operator+=(const ChannelStats &o) {
        sent += o.sent;
        delivered += o.delivered;
        for (unsigned h = 0; h < kHopBins; ++h)
            delivered_by_hops[h] += o.delivered_by_hops[h];
        latency += o.latency;
        queueing += o.queueing;
        return *this;
    }
};

struct NetworkStats {
    std::string kind;
    std::vector<std::string> channel_names;
    std::vector<ChannelStats> channel;
    std::vector<LinkStats> link;
    std::vector<PortStats> port;
};

} // namespace moscope::ruby
