// SPDX-License-Identifier: BSD-3-Clause
// Transaction buffer entries (TBEs), SLICC's TBETable: at most `capacity` at a time, found by line address
// through open addressing. Entries do not move while they live.
#pragma once

#include <memory>
#include <new>
#include <vector>

#include "base/error.hh"
#include "base/types.hh"

namespace moscope::ruby {

template <class T> class TBETable {
  public:
    explicit TBETable(int capacity = 256) { set_capacity(static_cast<unsigned>(capacity)); }

    void set_capacity(unsigned n) {
        capacity_ = n;
        cells_.assign(kCellsAtFirst, {kFree, 0});
        last_ = 0;
        entries_ = std::make_unique<T[]>(n);
        free_.clear();
        for (unsigned i = n; i-- > 0;)
            free_.push_back(i);
        count_ = 0;
    }

    [[gnu::always_inline]] T *lookup(Addr a) const {
        const Cell &last = cells_[last_];
        return last.line == a ? &entries_[last.index] : count_ ? search(a) : nullptr;
    }
    bool isPresent(Addr a) const { return lookup(a) != nullptr; }
    void allocate(Addr a) {
        if (free_.empty())
            throw ProtocolError("TBE table is full: a transition allocates without check_allocate");
        if (2 * (count_ + 1) > cells_.size())
            grow();
        const unsigned c = cell(a);
        if (cells_[c].line == a)
            throw ProtocolError("a TBE for this line is allocated already");
        cells_[c] = {a, free_.back()};
        last_ = c;
        free_.pop_back();
        T *entry = &entries_[cells_[c].index];
        entry->~T();
        new (entry) T();
        ++count_;
    }
    void deallocate(Addr a) {
        unsigned c = cells_[last_].line == a ? last_ : cell(a);
        if (cells_[c].line != a)
            throw ProtocolError("deallocation of a TBE that is not allocated");
        free_.push_back(cells_[c].index);
        --count_;
        // Close the gap so that searches need no tombstones.
        const unsigned mask = static_cast<unsigned>(cells_.size()) - 1;
        cells_[c].line = kFree;
        for (unsigned n = (c + 1) & mask; cells_[n].line != kFree; n = (n + 1) & mask) {
            const unsigned home = hash(cells_[n].line);
            if (((n - home) & mask) >= ((n - c) & mask)) {
                cells_[c] = cells_[n];
                cells_[n].line = kFree;
                c = n;
            }
        }
    }
    bool areNSlotsAvailable(int n, Tick = 0) const { return static_cast<int>(free_.size()) >= n; }
    unsigned count() const { return count_; }
    template <class F> void for_each(F &&f) const {
        for (const auto &c : cells_)
            if (c.line != kFree)
                f(c.line, entries_[c.index]);
    }

  private:
    struct Cell {
        Addr line;
        std::uint32_t index;
    };
    static constexpr Addr kFree = ~Addr{0};
    static constexpr unsigned kCellsAtFirst = 32; ///< few are in use at a time, and few host lines shall hold them

    [[gnu::noinline]] T *search(Addr a) const {
        const unsigned c = cell(a);
        if (cells_[c].line != a)
            return nullptr;
        last_ = c;
        return &entries_[cells_[c].index];
    }
    void grow() {
        std::vector<Cell> old(2 * cells_.size(), {kFree, 0});
        old.swap(cells_);
        for (const Cell &c : old)
            if (c.line != kFree)
                cells_[cell(c.line)] = c;
    }
    unsigned hash(Addr a) const {
        return static_cast<unsigned>(((a >> kLineBits) * 0x9e3779b97f4a7c15ull) >> 40) &
               (static_cast<unsigned>(cells_.size()) - 1);
    }
    unsigned cell(Addr a) const {
        const unsigned mask = static_cast<unsigned>(cells_.size()) - 1;
        unsigned c = hash(a);
        while (cells_[c].line != kFree && cells_[c].line != a)
            c = (c + 1) & mask;
        return c;
    }

    unsigned capacity_ = 0, count_ = 0;
    mutable unsigned last_ = 0; ///< cell that was found last: a message looks up the same line several times
    std::vector<Cell> cells_;
    std::unique_ptr<T[]> entries_;
    std::vector<std::uint32_t> free_;
};

} // namespace moscope::ruby
