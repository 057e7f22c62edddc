// SPDX-License-Identifier: BSD-3-Clause
// Transaction buffer entries (TBEs), SLICC's TBETable: at most `capacity` at a time, found by line address
// through open addressing. Entries do not move while they live. They are made in blocks when they are first needed, as
// capacities are for the worst case and few entries are in use at a time.
#pragma once

#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "base/error.hh"
#include "base/types.hh"

namespace moscope::ruby {

template <class T> class TBETable {
  public:
    explicit TBETable(int capacity = 256) { set_capacity(static_cast<unsigned>(capacity)); }

    void set_capacity(unsigned n) {
        room_ = n;
        make_cells(kCellsAtFirst);
        blocks_.clear();
        made_ = count_ = 0;
    }

    [[gnu::always_inline]] T *lookup(Addr a) const {
        return last_->line == a ? last_->entry : count_ ? search(a) : nullptr;
    }
    bool isPresent(Addr a) const { return lookup(a) != nullptr; }
    static T *getNullEntry() { return nullptr; }
    void allocate(Addr a) {
        if (__builtin_expect(count_ == made_, 0))
            make_entries();
        if (__builtin_expect(2 * count_ > mask_, 0))
            grow();
        Cell *const c = cell(a);
        if (__builtin_expect(c->line == a, 0))
            fail("a TBE for this line is allocated already");
        T *const entry = free_[made_ - ++count_];
        entry->~T();
        new (entry) T();
        // Written last, so that the compiler knows what the look-up that follows will find.
        *c = {a, entry};
        last_ = c;
    }
    void deallocate(Addr a) {
        Cell *c = last_->line == a ? last_ : cell(a);
        if (__builtin_expect(c->line != a, 0))
            fail("deallocation of a TBE that is not allocated");
        free_[made_ - count_--] = c->entry;
        c->line = kFree;
        // Close the gap so that searches need no tombstones.
        for (Cell *n = after(c); __builtin_expect(n->line != kFree, 0); n = after(n)) {
            const auto from = [&](const Cell *to, const Cell *at) { return static_cast<unsigned>(at - to) & mask_; };
            if (from(home(n->line), n) >= from(c, n)) {
                *c = *n;
                n->line = kFree;
                c = n;
            }
        }
    }
    bool areNSlotsAvailable(int n, Tick = 0) const { return static_cast<int>(room_ - count_) >= n; }
    unsigned count() const { return count_; }
    template <class F> void for_each(F &&f) const {
        for (unsigned i = 0; i <= mask_; ++i)
            if (cells_[i].line != kFree)
                f(cells_[i].line, *cells_[i].entry);
    }

  private:
    struct Cell {
        Addr line;
        T *entry;
    };
    static constexpr Addr kFree = ~Addr{0};
    static constexpr unsigned kCellsAtFirst = 32; ///< few host lines shall hold them
    static constexpr unsigned kEntriesAtFirst = 16;

    [[gnu::noinline]] T *search(Addr a) const {
        Cell *const c = cell(a);
        if (c->line != a)
            return nullptr;
        last_ = c;
        return c->entry;
    }
    void make_cells(unsigned n) {
        cells_ = std::make_unique<Cell[]>(n);
        std::fill_n(cells_.get(), n, Cell{kFree, nullptr});
        mask_ = n - 1;
        last_ = cells_.get();
    }
    [[gnu::noinline]] void grow() {
        const unsigned before = mask_ + 1;
        const std::unique_ptr<Cell[]> old = std::move(cells_);
        make_cells(2 * before);
        for (unsigned i = 0; i < before; ++i)
            if (old[i].line != kFree)
                *cell(old[i].line) = old[i];
    }
    /// Doubles the number of entries, up to the capacity; all that exist are in use.
    [[gnu::noinline]] void make_entries() {
        if (made_ == room_)
            fail("TBE table is full: a transition allocates without check_allocate");
        const unsigned n = std::min(std::max(made_, kEntriesAtFirst), room_ - made_);
        free_ = std::make_unique<T *[]>(made_ + n);
        T *const block = blocks_.emplace_back(std::make_unique<T[]>(n)).get();
        for (unsigned i = 0; i < n; ++i)
            free_[i] = &block[n - 1 - i];
        made_ += n;
    }
    [[noreturn, gnu::cold, gnu::noinline]] static void fail(const char *what) { throw ProtocolError(what); }
    /// Where a search for a line begins.
    Cell *home(Addr a) const {
        return cells_.get() + (static_cast<unsigned>(((a >> kLineBits) * 0x9e3779b97f4a7c15ull) >> 40) & mask_);
    }
    Cell *after(Cell *c) const { return c == cells_.get() + mask_ ? cells_.get() : c + 1; }
    /// The line's cell, or the free one where it would be.
    Cell *cell(Addr a) const {
        Cell *c = home(a);
        while (__builtin_expect(c->line != kFree && c->line != a, 0))
            c = after(c);
        return c;
    }

    mutable Cell *last_ = nullptr; ///< found last: a message looks up the same line several times
    std::unique_ptr<Cell[]> cells_;
    unsigned count_ = 0, made_ = 0, room_ = 0, mask_ = 0;
    std::vector<std::unique_ptr<T[]>> blocks_;
    std::unique_ptr<T *[]> free_; ///< the first made_ - count_ are free
};

/// The first of several TBEs that is not null.
template <class T, class... More> T *first_of(T *tbe, More *...others) {
    if constexpr (sizeof...(others) == 0)
        return tbe;
    else
        return tbe ? tbe : first_of(others...);
}

} // namespace moscope::ruby
