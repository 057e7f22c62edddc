// SPDX-License-Identifier: BSD-3-Clause
// A TCP segment (RFC 9293, section 3.1). Of the options, only the maximum segment size is read and written.
#pragma once

#include <optional>

#include "net/packet.hh"

namespace moscope::net {

struct Segment {
    enum Flag : std::uint8_t { kFin = 1, kSyn = 2, kRst = 4, kPsh = 8, kAck = 16 };
    Endpoint source, destination;
    std::uint32_t sequence = 0, acknowledgement = 0;
    std::uint8_t flags = 0;
    std::uint16_t window = 0;
    std::uint16_t largest = 0; ///< the option; 0: absent
    Bytes payload;

    bool has(Flag f) const { return flags & f; }
    /// The number of sequence numbers that the segment takes.
    std::uint32_t length() const { return static_cast<std::uint32_t>(payload.size()) + has(kSyn) + has(kFin); }
};

/// None: not a whole segment, or its checksum is wrong.
std::optional<Segment> segment_of(const Ipv4 &);
Frame segment_frame(const Mac &to, const Segment &);

} // namespace moscope::net
