// SPDX-License-Identifier: BSD-3-Clause
// Where the time of a memory transaction went, segment by segment, in ticks. The segments of a finished access add up
// to its latency exactly (design: every tick is accounted for once).
#pragma once

#include <array>
#include <cstdint>

#include "base/types.hh"
#include "schema/enumerations.hh"

namespace moscope {

struct PathTimes {
    struct Unset {};
    std::array<Tick, kSegments> in;
    PathTimes() : in{} {}
    explicit PathTimes(Unset) {} // NOLINT(cppcoreguidelines-pro-type-member-init): set before it is read
    Tick operator[](Segment s) const { return in[static_cast<unsigned>(s)]; }
    Tick total() const {
        Tick t = 0;
        for (Tick x : in)
            t += x;
        return t;
    }
};

/// Identifies a request that leaves its core's inline path, throughout the machine. 0: none.
using TxnId = std::uint64_t;

} // namespace moscope
