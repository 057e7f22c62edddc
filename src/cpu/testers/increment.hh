// SPDX-License-Identifier: BSD-3-Clause
// The closure of a locked increment. The protocol may keep a line's bytes anywhere, for example in a message, so their
// host address has no alignment.
#pragma once

#include <cstdint>
#include <cstring>

namespace moscope::testers {

/// Adds one to the eight bytes and returns the sum.
inline std::uint64_t increment(void *bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    ++value;
    std::memcpy(bytes, &value, sizeof value);
    return value;
}

} // namespace moscope::testers
