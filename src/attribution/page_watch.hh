// SPDX-License-Identifier: BSD-3-Clause
// Reads the guest kernel's description of a page (Linux: `struct page`) at the moment of a miss. Pages change their use while a
// window lasts, so the end of the window is too late to find out what a line was part of. The front end supplies the offsets within
// a description from the kernel's own types (src/python/moscope/naming/slab.py) and interprets the values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cpu/x86/core.hh"
#include "mem/phys_map.hh"

namespace moscope {

/// Offsets within a description. `type` has 4 bytes, all others 8.
struct PageFormat {
    Addr page_table = 0; ///< CR3 by which the array of descriptions is reached
    Addr array = 0;      ///< virtual address of the description of physical page 0
    unsigned size = 0;   ///< bytes of a description
    unsigned flags = 0;
    unsigned link = 0;               ///< if odd: address of the description of the compound page's head, plus one
    unsigned mapping = 0, cache = 0; ///< what a page is part of: a mapping; for a slab's page, the slab's cache
    unsigned index = 0, type = 0;
    std::uint64_t slab_flag = 0;  ///< the bit of `flags` that marks a slab; 0: `type` marks it
    std::uint64_t kept_flags = 0; ///< the bits of `flags` that identify a page's use
    struct Type {
        std::uint32_t mask, value;
        bool is(std::uint32_t type) const { return (type & mask) == value; }
    };
    Type slab{}, table{}; ///< values of `type`; a mask of 0: the kernel has no such type
    Addr direct = 0;      ///< start of the kernel's direct map of physical memory
};

/// A copy of the parts that identify a page's use. Words that change during one use (a lock, a reference count) are left out: cores
/// of other chips write them meanwhile, and the copy must not depend on the order of the host's threads.
struct PageSnapshot {
    std::uint64_t flags = 0;   ///< those of PageFormat::kept_flags
    std::uint64_t part_of = 0; ///< the slab's cache, or the page's mapping; 0 of a page table
    std::uint64_t index = 0;   ///< index in the mapping; 0 if the page has none
    std::uint32_t type = 0;    ///< kNoType if the word holds a count of mappings
    std::uint32_t before = 0;  ///< pages from the head of its compound page
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

    /// Snapshot of the page that holds a DRAM byte; not `identified` if the page's description is not mapped.
    PageSnapshot snapshot(Addr dram) const;
    /// Prefetches what snapshot() will read.
    void expected(Addr dram) const {
        if (const std::byte *page = at(offset_of(dram)))
            __builtin_prefetch(page);
    }
    /// Whether `va` is the address of this byte in the kernel's direct map.
    bool is_direct(Addr va, Addr dram) const { return va - f_.direct == phys_.phys_address(dram).value; }

  private:
    static constexpr unsigned kPage = 4096;

    template <class T> static T part(const std::byte *description, unsigned offset) {
        T value;
        std::memcpy(&value, description + offset, sizeof value);
        return value;
    }
    /// Where the description of a DRAM byte's page lies in the array, in bytes.
    std::uint64_t offset_of(Addr dram) const { return phys_.phys_address(dram).value / kPage * f_.size; }
    /// The description at an offset, at most that of the last page; null if it is not mapped or crosses a page
    /// boundary.
    const std::byte *at(std::uint64_t offset) const {
        const std::byte *const piece = pieces_[offset / kPage];
        if (!piece || offset % kPage + f_.size > kPage)
            return nullptr;
        return piece + offset % kPage;
    }

    const PhysMap &phys_;
    PageFormat f_;
    std::vector<const std::byte *> pieces_; ///< the array's own pages on the host, by number; null: not mapped
};

inline PageSnapshot PageWatch::snapshot(Addr dram) const {
    const std::uint64_t offset = offset_of(dram);
    const std::byte *page = at(offset);
    if (!page)
        return {};
    std::uint32_t before = 0;
    if (const auto link = part<std::uint64_t>(page, f_.link); __builtin_expect(link & 1, 0)) {
        const std::uint64_t head = link - 1 - f_.array;
        const std::byte *first = head <= offset ? at(head) : nullptr;
        if (!first)
            return {};
        before = static_cast<std::uint32_t>((offset - head) / f_.size);
        page = first;
    }
    const auto flags = part<std::uint64_t>(page, f_.flags);
    auto type = part<std::uint32_t>(page, f_.type);
    if (type >> 28 !=
        0xf) // a count of mappings has the place of a type (Linux, page-flags.h: types are below all counts)
        type = PageSnapshot::kNoType;
    const bool slab = flags & f_.slab_flag || f_.slab.is(type);
    const bool table = !slab && f_.table.is(type);
    // Pages without a mapping use these words for other data, which is left out.
    const auto part_of = table ? 0 : part<std::uint64_t>(page, slab ? f_.cache : f_.mapping);
    const auto index = table || slab || !part_of ? 0 : part<std::uint64_t>(page, f_.index);
    return {flags & f_.kept_flags, part_of, index, type, before, part_of || table};
}

} // namespace moscope
