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
    unsigned link = 0; ///< bit 0: the rest is the address of the description of the page's head, plus one
    unsigned mapping = 0, cache = 0; ///< what a page is part of; of a slab's page
    unsigned index = 0, type = 0;
    std::uint64_t slab_flag = 0; ///< of `flags`; 0: `type` tells a slab
    struct Type {
        std::uint32_t mask, value;
        bool is(std::uint32_t type) const { return mask && (type & mask) == value; }
    };
    Type slab{}, table{}; ///< values of `type`; a mask of 0: there is none
};

struct PageSeen {
    std::uint64_t flags = 0;
    std::uint64_t part_of = 0; ///< the slab's cache, or the page's mapping
    std::uint64_t index = 0;
    std::uint32_t type = 0;
    std::uint32_t before = 0;  ///< pages from its head to it
    bool told = false;         ///< whether it says what the page is for: one that was just allocated has no word of it yet
};

class PageWatch {
  public:
    PageWatch(const PhysMap &, const x86::Core &, const PageFormat &);

    /// Of the page of a DRAM byte.
    PageSeen look(Addr dram) const;

  private:
    /// The description at this offset in the array; null if it is not there in one piece.
    const std::byte *at(std::uint64_t offset) const;

    const PhysMap &phys_;
    PageFormat f_;
    std::vector<const std::byte *> pieces_; ///< the array's own pages, by number; null: there is none
};

} // namespace moscope
