// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/page_watch.hh"

#include <algorithm>
#include <cstring>

#include "base/error.hh"
#include "cpu/x86/mmu/paging.hh"

namespace moscope {

namespace {

template <class T> T part(const std::byte *description, unsigned offset) {
    T value;
    std::memcpy(&value, description + offset, sizeof value);
    return value;
}

} // namespace

PageWatch::PageWatch(const PhysMap &phys, const x86::Core &core, const PageFormat &format) : phys_(phys), f_(format) {
    for (const unsigned end : {f_.flags + 8, f_.link + 8, f_.mapping + 8, f_.cache + 8, f_.index + 8, f_.type + 4})
        if (end > f_.size || f_.size > kPage)
            throw UserError("system: a page's description of " + std::to_string(f_.size) +
                            " bytes has a part that ends at " + std::to_string(end) + ": expected one within it");
    // The walk reads nothing of the core but its CR3 and its modes.
    auto &walker = const_cast<x86::Core &>(core);
    const Addr before = walker.cr3;
    walker.cr3 = f_.page_table;
    pieces_.resize(phys.end() / kPage * f_.size / kPage + 1);
    for (std::size_t n = 0; n < pieces_.size(); ++n)
        if (PhysAddr p; x86::peek_translation(core, f_.array + n * kPage, p))
            pieces_[n] = phys.host(p);
    walker.cr3 = before;
}

PageSnapshot PageWatch::snapshot(Addr dram) const {
    PageSnapshot found;
    const std::uint64_t offset = phys_.phys_address(dram).value / kPage * f_.size;
    const std::byte *page = at(offset);
    if (!page)
        return found;
    if (const auto link = part<std::uint64_t>(page, f_.link); link & 1) {
        const std::uint64_t head = link - 1 - f_.array;
        const std::byte *first = head <= offset ? at(head) : nullptr;
        if (!first)
            return found;
        found.before = static_cast<std::uint32_t>((offset - head) / f_.size);
        page = first;
    }
    const auto flags = part<std::uint64_t>(page, f_.flags);
    found.flags = flags & f_.kept_flags;
    found.type = part<std::uint32_t>(page, f_.type);
    if (found.type >> 28 !=
        0xf) // a count of mappings has the place of a type (Linux, page-flags.h: types are below all counts)
        found.type = PageSnapshot::kNoType;
    const bool slab = flags & f_.slab_flag || f_.slab.is(found.type);
    const bool table = !slab && f_.table.is(found.type);
    // What is not the page's mapping, and its place there, other things share the words with.
    found.part_of = table ? 0 : part<std::uint64_t>(page, slab ? f_.cache : f_.mapping);
    found.index = table || slab || !found.part_of ? 0 : part<std::uint64_t>(page, f_.index);
    found.identified = found.part_of || table;
    return found;
}

} // namespace moscope
