// SPDX-License-Identifier: BSD-3-Clause
// SLICC's PerfectCacheMemory: a table with room for any number of lines, one entry each, found by line address through
// open addressing. A cell of the table has 8 bytes: half of the line's hash, which nearly always decides whether the
// cell is the line's, and the number of the entry. Entries do not move while they live.
#pragma once

#include <memory>
#include <type_traits>
#include <vector>

#include "base/error.hh"
#include "base/types.hh"
#include "mem/ruby/runtime/cache_entry.hh"

namespace moscope::ruby {

/// What tables of all entry types share: finding an entry.
class PerfectTable {
  public:
    std::size_t count() const { return count_; }

    /// Host prefetch of the cell at which a search for the line begins.
    [[gnu::always_inline]] void prefetch_cell(Addr a) const { __builtin_prefetch(&cells_[home(hash(line_of(a)))]); }

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
    /// The line's entry, or null. From then on last_cell_ is where it is, or the free cell where it would be.
    AbstractCacheEntry *at(Addr a) const { return a == last_line_ ? last_entry_ : seek(line_of(a)); }
    [[gnu::noinline]] AbstractCacheEntry *seek(Addr line) const {
        const std::uint32_t wanted = hash(line);
        const Cell *const cells = cells_.data();
        AbstractCacheEntry *found = nullptr;
        unsigned c = home(wanted);
        for (; cells[c].number != 0; c = (c + 1) & mask_)
            if (cells[c].hash == wanted && (found = entry(cells[c].number))->m_Address == line)
                break;
        last_line_ = line;
        last_cell_ = c;
        return last_entry_ = cells[c].number == 0 ? nullptr : found;
    }
    /// Takes a free entry; the caller constructs it.
    AbstractCacheEntry *take(Cell &c) {
        if (__builtin_expect(first_free_ == 0, 0))
            add_block();
        c.number = first_free_;
        AbstractCacheEntry *const e = entry(first_free_);
        first_free_ = e->slot;
        return e;
    }
    [[gnu::noinline]] void add_block() {
        const auto first = static_cast<std::uint32_t>(blocks_.size() << kBlockBits);
        blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(kBlock * stride_)); // allocate() makes entries
        for (std::uint32_t i = kBlock; i-- > 0;)
            if (first + i != 0) {
                (new (entry(first + i)) AbstractCacheEntry())->slot = first_free_;
                first_free_ = first + i;
            }
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
    /// Empties the cell of the line that was looked for last, and closes the gap so that searches need no tombstones.
    void remove() {
        unsigned c = last_cell_;
        Cell *const cells = cells_.data();
        last_line_ = kNoLine;
        last_entry_->slot = first_free_;
        first_free_ = cells[c].number;
        --count_;
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
    static constexpr Addr kNoLine = ~Addr{0};
    // The line that was looked for last, with its entry and cell: a message looks up the same line several times.
    mutable Addr last_line_ = kNoLine;
    mutable AbstractCacheEntry *last_entry_ = nullptr;
    mutable unsigned last_cell_ = 0;

  private:
    unsigned shift_ = 32 - kCellBitsAtFirst; ///< of a hash, to a number of a cell
    std::size_t stride_;
    std::vector<std::unique_ptr<std::byte[]>> blocks_;
    std::uint32_t first_free_ = 0; ///< number of an entry, whose `slot` is the number of the next; 0: none is free
};

template <class T> class PerfectCacheMemory : public PerfectTable {
    static_assert(std::is_base_of_v<AbstractCacheEntry, T> && std::is_trivially_copyable_v<T>);

  public:
    PerfectCacheMemory() : PerfectTable(sizeof(T)) {}

    bool isTagPresent(Addr a) const { return lookup(a) != nullptr; }
    /// Null: none.
    T *lookup(Addr a) const { return static_cast<T *>(at(a)); }
    void allocate(Addr a) {
        const Addr line = line_of(a);
        if (__builtin_expect(2 * count_ > mask_, 0))
            grow();
        if (__builtin_expect(at(line) != nullptr, 0))
            fail("an entry for this line is allocated already", line);
        Cell &c = cells_[last_cell_];
        c.hash = hash(line);
        T *const e = new (take(c)) T();
        e->m_Address = line;
        last_entry_ = e;
        ++count_;
    }
    void deallocate(Addr a) {
        if (__builtin_expect(at(a) == nullptr, 0))
            fail("deallocation of an entry that is not allocated", line_of(a));
        remove();
    }
};

/// The tables in which one controller looks up lines. Host memory is slow compared to a transition, and the tables of a whole
/// machine exceed the host's caches. The line that a controller will look up is known when the message is sent, several events
/// before the controller receives it, so the sender prefetches the cells of the receiver's tables.
struct LineStores {
    std::vector<const PerfectTable *> tables;

    /// A message about `line` is on its way here, or soon will be.
    void prefetch(Addr line) const {
        for (const PerfectTable *t : tables)
            t->prefetch_cell(line);
    }
};

} // namespace moscope::ruby
