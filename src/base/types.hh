// SPDX-License-Identifier: BSD-3-Clause
// Basic quantities. Time is a Tick: one femtosecond in a signed 64-bit integer (about 2.5 hours).
// Addresses are bytes; a physical address is a type of its own at the memory port, so that it cannot be
// mixed up with a virtual address or a count. SLICC protocols compute with plain integers (`Addr`).
#pragma once

#include <compare>
#include <cstdint>
#include <limits>

namespace moscope {

using Tick = std::int64_t;
inline constexpr Tick kNever = std::numeric_limits<Tick>::max();
inline constexpr Tick kTicksPerNs = 1'000'000;

using Addr = std::uint64_t;

inline constexpr unsigned kLineBytes = 64;
inline constexpr unsigned kLineBits = 6;

/// Address of the line that holds `a`.
constexpr Addr line_of(Addr a) { return a & ~Addr{kLineBytes - 1}; }
constexpr unsigned line_offset(Addr a) { return static_cast<unsigned>(a & (kLineBytes - 1)); }

/// A guest-physical byte address.
struct PhysAddr {
    Addr value = 0;
    constexpr PhysAddr() = default;
    explicit constexpr PhysAddr(Addr v) : value(v) {}
    constexpr auto operator<=>(const PhysAddr &) const = default;
    constexpr PhysAddr operator+(std::uint64_t n) const { return PhysAddr(value + n); }
};

} // namespace moscope
