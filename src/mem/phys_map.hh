// SPDX-License-Identifier: BSD-3-Clause
// Where a guest-physical address lies in DRAM. The memory system counts DRAM bytes from 0 without gaps, node
// after node; below 4 GiB a hole is kept for devices, and the DRAM that it would hide is hoisted above 4 GiB, as
// the family's memory-hole remapping does (AMD 31116, section 2.8.7).
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/types.hh"

namespace moscope {

struct PhysMap {
    static constexpr Addr kTop = Addr{1} << 32;

    std::byte *memory = nullptr; ///< host address of DRAM byte 0
    std::uint64_t dram = 0;      ///< bytes of DRAM
    Addr hole = kTop;            ///< start of the hole; it ends at 4 GiB

    static constexpr std::uint64_t kNone = ~std::uint64_t{0};

    /// DRAM byte at `a`; kNone if there is none.
    std::uint64_t dram_address(PhysAddr a) const {
        std::uint64_t d = a.value;
        if (d >= kTop)
            d -= kTop - hole;
        else if (d >= hole)
            return kNone;
        return d < dram ? d : kNone;
    }
    /// Physical address of a DRAM byte.
    PhysAddr phys_address(std::uint64_t d) const { return PhysAddr(d < hole ? d : d + (kTop - hole)); }
    /// One past the highest physical address of DRAM.
    Addr end() const { return dram <= hole ? dram : dram + (kTop - hole); }
    /// Host address of the byte at `a`; null if it is not DRAM.
    std::byte *host(PhysAddr a) const {
        const std::uint64_t d = dram_address(a);
        return d == kNone ? nullptr : memory + d;
    }
};

} // namespace moscope
