// SPDX-License-Identifier: BSD-3-Clause
// A locked increment's closure: bytes of a line lie where the protocol keeps them, in a message as well, at any address of the host.
#pragma once

#include <cstdint>
#include <cstring>

namespace moscope::testers {

/// Adds one to the eight bytes, and gives the sum.
inline std::uint64_t increment(void *bytes) {
    std::uint64_t value;
    std::memcpy(&value, bytes, sizeof value);
    ++value;
    std::memcpy(bytes, &value, sizeof value);
    return value;
}

} // namespace moscope::testers
