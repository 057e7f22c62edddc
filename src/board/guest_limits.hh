// SPDX-License-Identifier: BSD-3-Clause
// Limits of machines that run guests.
#pragma once

#include <cstdint>

namespace moscope {

struct GuestLimits {
    static constexpr unsigned chips = 8, cores_per_chip = 8;    ///< at most; APIC identifiers have room for eight cores
    static constexpr std::uint64_t memory_per_node = 64u << 20; ///< bytes, at least
    static constexpr std::uint64_t memory_step = 2u << 20;      ///< of which it is a multiple: large pages
};

} // namespace moscope
