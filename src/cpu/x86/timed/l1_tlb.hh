// SPDX-License-Identifier: BSD-3-Clause
// The first-level data TLB, for timing: fully associative, for pages of every size (AMD 40546, section A.10: 48
// entries). Free entries are filled from the last to the first; when all are full, they are replaced in turn from the
// first to the last. It only says hit or miss; translations come from cpu/x86/mmu/tlb.hh, which stands for the second
// level.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/types.hh"
#include "schema/pipeline.hh"

namespace moscope::x86 {

class L1Tlb {
  public:
    static constexpr unsigned kMost = PipelineParams::Most::l1d_tlb; ///< entries

    explicit L1Tlb(unsigned entries) : pages_(entries), global_(entries) { clear(); }
    void clear() {
        std::fill(pages_.begin(), pages_.end(), kNone);
        hint_.fill(0);
        held_.fill(0);
        free_below_ = static_cast<unsigned>(pages_.size());
        last_ = kNone;
        ++generation_;
    }
    /// Changes whenever a page leaves, and is never 0: a page that was found in this generation is still there.
    std::uint64_t generation() const { return generation_; }
    /// Whether the page (its address shifted right by log2 of its size) is there and found without a search. If not,
    /// nothing changes.
    bool holds(std::uint64_t page) {
        if (page == last_)
            return true;
        if (pages_[hint_[hint_of(page)]] != page)
            return false;
        last_ = page;
        return true;
    }
    /// Whether the page is there. Nothing changes.
    bool contains(std::uint64_t page) const {
        return pages_[hint_[hint_of(page)]] == page || std::find(pages_.begin(), pages_.end(), page) != pages_.end();
    }
    /// Global pages stay.
    void flush_local() {
        for (unsigned i = 0; i < pages_.size(); ++i)
            if (!global_[i])
                drop(pages_[i]);
        last_ = kNone;
    }
    /// Drops the page of this address, whatever its size.
    void flush_page(Addr va) {
        for (std::uint64_t &page : pages_)
            if (page == va >> 12 || page == va >> 21 || page == va >> 22 || page == va >> 30)
                drop(page);
        last_ = kNone;
    }
    /// Whether the page is there. If not, it is entered.
    bool access(std::uint64_t page, bool global) {
        if (page == last_) // and nothing has been replaced since
            return true;
        last_ = page;
        const std::size_t hint = hint_of(page);
        std::uint8_t &slot = hint_[hint];
        if (pages_[slot] == page)
            return true;
        if (held_[hint]) // else a search would find nothing
            for (unsigned i = 0; i < pages_.size(); ++i)
                if (pages_[i] == page) {
                    slot = static_cast<std::uint8_t>(i);
                    return true;
                }
        while (free_below_ && pages_[free_below_ - 1] != kNone)
            --free_below_;
        const unsigned to = free_below_ ? free_below_ - 1 : next_;
        if (to == next_)
            next_ = next_ + 1 == pages_.size() ? 0 : next_ + 1;
        if (pages_[to] != kNone) {
            --held_[hint_of(pages_[to])];
            ++generation_;
        }
        ++held_[hint];
        pages_[to] = page;
        global_[to] = global;
        slot = static_cast<std::uint8_t>(to);
        return false;
    }

  private:
    static constexpr std::uint64_t kNone = ~std::uint64_t{0};
    static constexpr unsigned kHintBits = 10, kHints = 1u << kHintBits;
    /// A hash, so that pages whose low bits map them to the same entry of the interpreter's TLB have different hints.
    static std::size_t hint_of(std::uint64_t page) { return page * 0x9e3779b97f4a7c15 >> (64 - kHintBits); }
    /// Frees a slot, given by what it holds.
    void drop(std::uint64_t &page) {
        if (page == kNone)
            return;
        --held_[hint_of(page)];
        page = kNone;
        ++generation_;
        free_below_ = static_cast<unsigned>(pages_.size());
    }
    std::uint64_t last_ = kNone;
    std::uint64_t generation_ = 0;
    std::vector<std::uint64_t> pages_;
    std::vector<std::uint8_t> global_;
    std::array<std::uint8_t, kHints> hint_;  ///< where a page was seen last, so that most look-ups need no search
    std::array<std::uint16_t, kHints> held_; ///< number of pages that share a hint
    unsigned free_below_ = 0;                ///< no slot from here on is free
    unsigned next_ = 0;
};

} // namespace moscope::x86
