// SPDX-License-Identifier: BSD-3-Clause
// The history of a memory transaction: where its time went, segment by segment, in ticks. The segments of a
// finished access add up to its latency exactly (design: every tick is accounted for once).
#pragma once

#include <array>
#include <cstdint>

#include "base/types.hh"

namespace moscope {

/// Where a transaction's latency goes.
enum class Segment : std::uint8_t {
    queue,        ///< waiting: buffers, link arbitration and credits
    cache,        ///< lookups and transfers in the requester's cache hierarchy
    crossbar,     ///< on-chip crossbar
    link,         ///< HyperTransport links: serialization and flight
    home_queue,   ///< waiting at the home node
    probe_filter, ///< the home agent: request handling and probe filter lookup
    dram,         ///< DRAM, its queue included
    responder,    ///< caches that answer probes
    count
};
inline constexpr unsigned kSegments = static_cast<unsigned>(Segment::count);

/// Names of the segments as they stand in files.
inline constexpr std::array<const char *, kSegments> kSegmentNames = {
    "queue", "cache", "crossbar", "link", "home_queue", "probe_filter", "dram", "responder"};

struct PathTimes {
    std::array<Tick, kSegments> in{};
    Tick operator[](Segment s) const { return in[static_cast<unsigned>(s)]; }
    Tick total() const {
        Tick t = 0;
        for (Tick x : in)
            t += x;
        return t;
    }
};

/// A request that leaves its core's inline path, followed through the machine. 0: none.
using TxnId = std::uint64_t;

} // namespace moscope
