// SPDX-License-Identifier: BSD-3-Clause
// What the guest's kernel has written down of a page of its memory (Linux: its `struct page`), read in the moment of a miss: pages
// change hands while windows last, and at their end nobody can tell what a line was part of. Where the parts of a description lie the
// front end tells, from the kernel's own types (src/python/moscope/naming/slab.py), and it is the front end that knows what they mean.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpu/x86/core.hh"
#include "mem/phys_map.hh"

namespace moscope {

/// Offsets are within a description; all but `type` (4 bytes) are of 8 bytes.
struct PageFormat {
    Addr page_table = 0; ///< CR3 by which the array of descriptions is reached
    Addr array = 0;      ///< description of physical page 0
    unsigned size = 0;   ///< of a description
    unsigned flags = 0;
    unsigned link = 0;               ///< bit 0: the rest is the address of the description of the page's head, plus one
    unsigned mapping = 0, cache = 0; ///< what a page is part of; of a slab's page
    unsigned index = 0, type = 0;
    std::uint64_t slab_flag = 0;  ///< of `flags`; 0: `type` tells a slab
    std::uint64_t kept_flags = 0; ///< of `flags`, that tell what a page is for
    struct Type {
        std::uint32_t mask, value;
        bool is(std::uint32_t type) const { return mask && (type & mask) == value; }
    };
    Type slab{}, table{}; ///< values of `type`; a mask of 0: there is none
    Addr direct = 0;      ///< where the kernel sees all of physical memory
};

/// Words that change while a page is of one use (a lock, a count of its users) are left out: cores of other chips change them meanwhile,
/// and what is kept must not depend on which of the host's threads comes first.
struct PageSeen {
    std::uint64_t flags = 0;   ///< those of PageFormat::kept_flags
    std::uint64_t part_of = 0; ///< the slab's cache, or the page's mapping; 0 of a page table
    std::uint64_t index = 0;   ///< in the mapping; 0 of others
    std::uint32_t type = 0;    ///< kNoType of a page that has a count there
    std::uint32_t before = 0;  ///< pages from its head to it
    bool told = false; ///< whether it says what the page is for: one that was just allocated has no word of it yet

    static constexpr std::uint32_t kNoType = ~std::uint32_t{0};
    /// Whether the page is of the same use.
    bool same_use(const PageSeen &o) const {
        return told == o.told && (!told || (part_of == o.part_of && index == o.index && before == o.before));
    }
};

class PageWatch {
  public:
    PageWatch(const PhysMap &, const x86::Core &, const PageFormat &);

    /// Of the page of a DRAM byte.
    PageSeen look(Addr dram) const;
    /// Fetches what look() will want.
    void expected(Addr dram) const {
        if (const std::byte *page = at(phys_.phys_address(dram).value / kPage * f_.size))
            __builtin_prefetch(page);
    }
    /// Whether this is where the kernel sees all of physical memory.
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
