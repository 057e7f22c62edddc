// SPDX-License-Identifier: BSD-3-Clause
// SLICC's PerfectCacheMemory: an entry for as many lines as are asked for, found by line address through open
// addressing. A cell of the table has 8 bytes: half of the line's hash, which tells nearly always whether it is the
// line's, and the number of the entry. Entries do not move while they live.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "base/error.hh"
#include "base/types.hh"
#include "mem/ruby/runtime/cache_entry.hh"

namespace moscope::ruby {

/// What tables of all entry types share: where an entry is.
class PerfectTable {
  public:
    std::size_t count() const { return count_; }

    // Into the host's caches, without waiting: first where the line is looked up, later what is found there.
    void prefetch_cell(Addr a) const { __builtin_prefetch(&cells_[home(hash(line_of(a)))]); }
    void prefetch_entry(Addr a) const {
        if (const std::uint32_t number = cells_[home(hash(line_of(a)))].number)
            __builtin_prefetch(entry(number));
    }

  protected:
    explicit PerfectTable(std::size_t stride) : cells_(kCellsAtFirst), stride_(stride) {}

    struct Cell {
        std::uint32_t hash = 0;
        std::uint32_t number = 0; ///< of the entry, from one; 0: the cell is free
    };
    static constexpr unsigned kCellBitsAtFirst = 10, kCellsAtFirst = 1u << kCellBitsAtFirst, kBlockBits = 8,
                              kBlock = 1u << kBlockBits;

    AbstractCacheEntry *entry(std::uint32_t number) const {
        return reinterpret_cast<AbstractCacheEntry *>(blocks_[number >> kBlockBits].get() +
                                                      (number % kBlock) * stride_);
    }
    static std::uint32_t hash(Addr line) {
        return static_cast<std::uint32_t>(((line >> kLineBits) * 0x9e3779b97f4a7c15ull) >> 32);
    }
    /// Where a search begins: the highest bits, which spread lines that follow each other best.
    unsigned home(std::uint32_t hash) const { return hash >> shift_; }
    /// Where the line is, or the free cell where it would be.
    unsigned cell(Addr line) const {
        if (line == last_line_)
            return last_cell_;
        const std::uint32_t wanted = hash(line);
        const Cell *const cells = cells_.data();
        unsigned c = home(wanted);
        while (cells[c].number != 0 && (cells[c].hash != wanted || entry(cells[c].number)->m_Address != line))
            c = (c + 1) & mask_;
        last_line_ = line;
        return last_cell_ = c;
    }
    std::uint32_t take_number() {
        if (__builtin_expect(free_.empty(), 0))
            add_block();
        const std::uint32_t number = free_.back();
        free_.pop_back();
        return number;
    }
    [[gnu::noinline]] void add_block() {
        const auto first = static_cast<std::uint32_t>(blocks_.size() << kBlockBits);
        blocks_.push_back(std::make_unique<std::byte[]>(kBlock * stride_));
        for (std::uint32_t i = kBlock; i-- > 0;)
            if (first + i != 0)
                free_.push_back(first + i);
    }
    [[noreturn, gnu::cold, gnu::noinline]] static void fail(const char *what, Addr line) {
        throw ProtocolError(what, line);
    }
    [[gnu::noinline]] void grow() {
        std::vector<Cell> old(2 * cells_.size());
        old.swap(cells_);
        mask_ = static_cast<unsigned>(cells_.size()) - 1;
        last_line_ = kNoLine;
        --shift_;
        for (const Cell &c : old)
            if (c.number != 0) {
                unsigned to = home(c.hash);
                while (cells_[to].number != 0)
                    to = (to + 1) & mask_;
                cells_[to] = c;
            }
    }
    /// Empties a cell, and closes the gap so that searches need no tombstones.
    void remove(unsigned c) {
        last_line_ = kNoLine;
        free_.push_back(cells_[c].number);
        --count_;
        Cell *const cells = cells_.data();
        cells[c].number = 0;
        for (unsigned n = (c + 1) & mask_; cells[n].number != 0; n = (n + 1) & mask_) {
            if (((n - home(cells[n].hash)) & mask_) >= ((n - c) & mask_)) {
                cells[c] = cells[n];
                cells[n].number = 0;
                c = n;
            }
        }
    }

    std::vector<Cell> cells_;
    std::size_t count_ = 0;
    unsigned mask_ = kCellsAtFirst - 1; ///< of a cell's number

  private:
    static constexpr Addr kNoLine = ~Addr{0};
    // The line that was looked for last, and its cell: a message looks up the same line several times.
    mutable Addr last_line_ = kNoLine;
    mutable unsigned last_cell_ = 0;
    unsigned shift_ = 32 - kCellBitsAtFirst; ///< of a hash, to a number of a cell
    std::size_t stride_;
    std::vector<std::unique_ptr<std::byte[]>> blocks_;
    std::vector<std::uint32_t> free_;
};

template <class T> class PerfectCacheMemory : public PerfectTable {
    static_assert(std::is_base_of_v<AbstractCacheEntry, T> && std::is_trivially_copyable_v<T>);

  public:
    PerfectCacheMemory() : PerfectTable(sizeof(T)) {}

    bool isTagPresent(Addr a) const { return lookup(a) != nullptr; }
    /// Null: none.
    T *lookup(Addr a) const {
        const Cell &c = cells_[cell(line_of(a))];
        return c.number == 0 ? nullptr : static_cast<T *>(entry(c.number));
    }
    void allocate(Addr a) {
        const Addr line = line_of(a);
        if (__builtin_expect(2 * count_ > mask_, 0))
            grow();
        Cell &c = cells_[cell(line)];
        if (__builtin_expect(c.number != 0, 0))
            fail("an entry for this line is allocated already", line);
        c = {hash(line), take_number()};
        (new (entry(c.number)) T())->m_Address = line;
        ++count_;
    }
    void deallocate(Addr a) {
        const Addr line = line_of(a);
        const unsigned c = cell(line);
        if (__builtin_expect(cells_[c].number == 0, 0))
            fail("deallocation of an entry that is not allocated", line);
        remove(c);
    }
};

} // namespace moscope::ruby
