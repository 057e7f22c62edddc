// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/page_watch.hh"

#include "base/error.hh"
#include "cpu/x86/mmu/paging.hh"

namespace moscope {

PageWatch::PageWatch(const PhysMap &phys, const x86::Core &core, const PageFormat &format) : phys_(phys), f_(format) {
    for (const unsigned end : {f_.flags + 8, f_.link + 8, f_.mapping + 8, f_.cache + 8, f_.index + 8, f_.type + 4})
        if (end > f_.size || f_.size > kPage)
            throw UserError("system: a page's description of " + std::to_string(f_.size) +
                            " bytes has a part that ends at byte " + std::to_string(end) +
                            ": expected all parts to lie within it");
    for (PageFormat::Type *const type : {&f_.slab, &f_.table})
        if (!type->mask)
            type->value = 1; // matches no type
    pieces_.resize(phys.end() / kPage * f_.size / kPage + 1);
    for (std::size_t n = 0; n < pieces_.size(); ++n)
        if (PhysAddr p; x86::peek_translation(core, f_.page_table, f_.array + n * kPage, p))
            pieces_[n] = phys.host(p);
}

} // namespace moscope
