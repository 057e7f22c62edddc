// SPDX-License-Identifier: BSD-3-Clause
// SLICC's DirectoryMemory: one entry per line of the memory that a node is home of, made when first used.
#pragma once

#include <memory>
#include <vector>

#include "base/types.hh"
#include "mem/ruby/runtime/cache_entry.hh"

namespace moscope::ruby {

class DirectoryMemory {
  public:
    /// base, bytes: the range of physical memory of this home.
    DirectoryMemory(Addr base, std::uint64_t bytes) : base_(base), bytes_(bytes) {
        pages_.resize((bytes + kPageBytes - 1) / kPageBytes);
    }
    bool isPresent(Addr a) const { return a - base_ < bytes_; }
    AbstractCacheEntry *lookup(Addr a) const {
        if (!isPresent(a))
            return nullptr;
        const auto &page = pages_[(a - base_) / kPageBytes];
        return page ? page[((a - base_) % kPageBytes) >> kLineBits] : nullptr;
    }
    AbstractCacheEntry *allocate(Addr a, AbstractCacheEntry *e) {
        auto &page = pages_[(a - base_) / kPageBytes];
        if (!page)
            page = std::make_unique<AbstractCacheEntry *[]>(kPageBytes >> kLineBits);
        e->m_Address = line_of(a);
        return page[((a - base_) % kPageBytes) >> kLineBits] = e;
    }
    void deallocate(Addr a) {
        auto &page = pages_[(a - base_) / kPageBytes];
        if (page)
            page[((a - base_) % kPageBytes) >> kLineBits] = nullptr;
    }
    void invalidateBlock(Addr) {}
    void recordRequestType(DirectoryRequestType) {}
    template <class F> void for_each(F &&f) const {
        for (const auto &page : pages_)
            for (std::size_t i = 0; page && i < (kPageBytes >> kLineBits); ++i)
                if (page[i])
                    f(page[i]);
    }

  private:
    static constexpr std::uint64_t kPageBytes = std::uint64_t{1} << 18; // 4096 lines
    Addr base_;
    std::uint64_t bytes_;
    std::vector<std::unique_ptr<AbstractCacheEntry *[]>> pages_;
};

} // namespace moscope::ruby
