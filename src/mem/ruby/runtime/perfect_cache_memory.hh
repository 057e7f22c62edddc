// SPDX-License-Identifier: BSD-3-Clause
// SLICC's PerfectCacheMemory: an entry for as many lines as are asked for, found by line address through open
// addressing. Entries do not move while they live.
#pragma once

#include <memory>
#include <vector>

#include "base/error.hh"
#include "base/types.hh"

namespace moscope::ruby {

template <class T> class PerfectCacheMemory {
  public:
    PerfectCacheMemory() : cells_(kCellsAtFirst, Cell{kFree, nullptr}) {}

    bool isTagPresent(Addr a) const { return lookup(a) != nullptr; }
    /// Null: none.
    T *lookup(Addr a) const {
        const Cell &c = cells_[cell(line_of(a))];
        return c.line == kFree ? nullptr : c.entry;
    }
    void allocate(Addr a) {
        const Addr line = line_of(a);
        if (2 * (count_ + 1) > cells_.size())
            grow();
        Cell &c = cells_[cell(line)];
        if (c.line != kFree)
            throw ProtocolError("an entry for this line is allocated already", line);
        c = {line, make()};
        ++count_;
    }
    void deallocate(Addr a) {
        const Addr line = line_of(a);
        unsigned c = cell(line);
        if (cells_[c].line == kFree)
            throw ProtocolError("deallocation of an entry that is not allocated", line);
        free_.push_back(cells_[c].entry);
        --count_;
        // Close the gap so that searches need no tombstones.
        cells_[c].line = kFree;
        for (unsigned n = (c + 1) & mask(); cells_[n].line != kFree; n = (n + 1) & mask()) {
            if (((n - hash(cells_[n].line)) & mask()) >= ((n - c) & mask())) {
                cells_[c] = cells_[n];
                cells_[n].line = kFree;
                c = n;
            }
        }
    }
    std::size_t count() const { return count_; }

  private:
    struct Cell {
        Addr line;
        T *entry;
    };
    static constexpr Addr kFree = ~Addr{0};
    static constexpr unsigned kCellsAtFirst = 1024, kBlock = 256;

    T *make() {
        if (free_.empty()) {
            blocks_.push_back(std::make_unique<T[]>(kBlock));
            for (unsigned i = kBlock; i-- > 0;)
                free_.push_back(&blocks_.back()[i]);
        }
        T *e = free_.back();
        free_.pop_back();
        *e = T();
        return e;
    }
    void grow() {
        std::vector<Cell> old(2 * cells_.size(), Cell{kFree, nullptr});
        old.swap(cells_);
        for (const Cell &c : old)
            if (c.line != kFree)
                cells_[cell(c.line)] = c;
    }
    unsigned mask() const { return static_cast<unsigned>(cells_.size()) - 1; }
    unsigned hash(Addr line) const {
        return static_cast<unsigned>(((line >> kLineBits) * 0x9e3779b97f4a7c15ull) >> 32) & mask();
    }
    /// Where the line is, or the free cell where it would be.
    unsigned cell(Addr line) const {
        unsigned c = hash(line);
        while (cells_[c].line != kFree && cells_[c].line != line)
            c = (c + 1) & mask();
        return c;
    }

    std::vector<Cell> cells_;
    std::size_t count_ = 0;
    std::vector<std::unique_ptr<T[]>> blocks_;
    std::vector<T *> free_;
};

} // namespace moscope::ruby
