// SPDX-License-Identifier: BSD-3-Clause
// Reads the guest kernel's description of a page (Linux: `struct page`) at the moment of a miss. Pages change their use while a
// window lasts, so the end of the window is too late to find out what a line was part of. The front end supplies the offsets within
// a description from the kernel's own types (src/python/moscope/naming/slab.py) and interprets the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/x86/core.hh"
#include "mem/phys_map.hh"

namespace moscope {

/// Offsets within a description. `type` has 4 bytes, all others 8.
struct PageFormat {
    Addr page_table = 0; ///< CR3 by which the array of descriptions is reached
    Addr array = 0;      ///< description of physical page 0
    unsigned size = 0;   ///< of a description
    unsigned flags = 0;
    unsigned link = 0;               ///< bit 0: the rest is the address of the description of the page's head, plus one
    unsigned mapping = 0, cache = 0; ///< what a page is part of; of a slab's page
    unsigned index = 0, type = 0;
    std::uint64_t slab_flag = 0;  ///< of `flags`; 0: `type` tells a slab
    std::uint64_t kept_flags = 0; ///< the bits of `flags` that identify a page's use
    struct Type {
        std::uint32_t mask, value;
        bool is(std::uint32_t type) const { return mask && (type & mask) == value; }
    };
    Type slab{}, table{}; ///< values of `type`; a mask of 0: there is none
    Addr direct = 0;      ///< start of the kernel's direct map of physical memory
};

/// A copy of the parts that identify a page's use. Words that change during one use (a lock, a reference count) are left out: cores
/// of other chips write them meanwhile, and the copy must not depend on the order of the host's threads.
struct PageSnapshot {
    std::uint64_t flags = 0;   ///< those of PageFormat::kept_flags
    std::uint64_t part_of = 0; ///< the slab's cache, or the page's mapping; 0 of a page table
    std::uint64_t index = 0;   ///< in the mapping; 0 of others
    std::uint32_t type = 0;    ///< kNoType of a page that has a count there
    std::uint32_t before = 0;  ///< pages from its head to it
    bool identified =
        false; ///< the description says what the page is used for; that of a newly allocated page does not yet

    static constexpr std::uint32_t kNoType = ~std::uint32_t{0};
    /// Whether both show the same use of the page.
    bool same_use(const PageSnapshot &o) const {
        return identified == o.identified &&
               (!identified || (part_of == o.part_of && index == o.index && before == o.before));
    }
};

class PageWatch {
  public:
    PageWatch(const PhysMap &, const x86::Core &, const PageFormat &);

    /// The page of a DRAM byte.
    PageSnapshot snapshot(Addr dram) const;
    /// Prefetches what snapshot() will read.
    void expected(Addr dram) const {
        if (const std::byte *page = at(phys_.phys_address(dram).value / kPage * f_.size))
            __builtin_prefetch(page);
    }
    /// Whether `va` is the address of this byte in the kernel's direct map.
    bool is_direct(Addr va, Addr dram) const { return va - f_.direct == phys_.phys_address(dram).value; }

  private:
    static constexpr unsigned kPage = 4096;

    /// The description at this offset in the array; null if it is not there in one piece.
    const std::byte *at(std::uint64_t offset) const {
        const std::uint64_t piece = offset / kPage;
        if (piece >= pieces_.size() || !pieces_[piece] || offset % kPage + f_.size > kPage)
            return nullptr;
        return pieces_[piece] + offset % kPage;
    }

    const PhysMap &phys_;
    PageFormat f_;
    std::vector<const std::byte *> pieces_; ///< the array's own pages, by number; null: there is none
};

} // namespace moscope
