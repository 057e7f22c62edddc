// SPDX-License-Identifier: BSD-3-Clause
// Time and number of transactions by key: all that reports distinguish. An entry fills one host line. Most transactions need a cell
// and an entry that are not in the host's caches, so a transaction is counted a few transactions later, when both have been
// prefetched. Readers make the sums by line, by pair and by transfer (line_totals.hh).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/types.hh"
#include "schema/enumerations.hh"

namespace moscope {

/// Instead of a class: time in spin loops, and their iterations.
inline constexpr MissClass kSpinning = MissClass::count;

/// Transactions with the same key are counted together.
struct TransactionKey {
    static constexpr std::uint8_t kNoSupplier = 0xff;

    Addr writer = 0;        ///< instruction that had written the line last; 0: no other core's
    Addr waiter = 0;        ///< instruction
    Addr address_space = 0; ///< of the waiter; 0 of the kernel's code, which is the same in all
    std::uint32_t line = 0; ///< DRAM address / kLineBytes
    std::uint32_t use = 0;  ///< number of the line's use, among all lines' uses
    MissClass miss = MissClass::cold;
    std::uint8_t offset = 0;             ///< within the line
    std::uint8_t supplier = kNoSupplier; ///< type of the controller that sent the line
    std::uint8_t from = 0, to = 0;       ///< its chip, and the waiter's; 0 if no controller sent it
    bool operator==(const TransactionKey &) const = default;

    static Addr space_of(Addr pc, Addr address_space) { return static_cast<std::int64_t>(pc) < 0 ? 0 : address_space; }
};

class TransactionCounts {
  public:
    struct alignas(64) Entry {
        TransactionKey key;
        Tick time = 0; ///< stall or spinning
        std::uint64_t count =
            0; ///< transactions or spin iterations; a wait for a transaction that was counted before adds time only
        std::uint32_t changed_after = 0; ///< the number of the last keep() before its last change
    };

    TransactionCounts() : cells_(1 << 16) {}
    TransactionCounts(const TransactionCounts &) = delete;
    TransactionCounts &operator=(const TransactionCounts &) = delete;

    void add(const TransactionKey &key, Tick time, std::uint64_t count) {
        Entry &last = under_way_[next_ % kUnderWay];
        if (next_ >= kUnderWay)
            settle(last, hashes_[next_ % kUnderWay]);
        last = {key, time, count};
        const std::uint32_t hash = hashes_[next_ % kUnderWay] = hash_of(key);
        __builtin_prefetch(&cells_[hash & (cells_.size() - 1)]);
        ++next_;
        if (next_ > kUnderWay / 2)
            fetch_entry(hashes_[(next_ - 1 - kUnderWay / 2) % kUnderWay]);
    }
    /// Counts what is still in the ring.
    void settle();
    std::size_t size() const { return size_; }
    /// Settled entries in the order of their first transaction.
    const Entry &operator[](std::size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
    /// The same, calling f(std::span<const Entry>) for one piece of them after the other.
    template <class F> void for_each_piece(F &&f) const {
        for (std::size_t first = 0; first < size_; first += kChunk)
            f(std::span<const Entry>(chunks_[first / kChunk].get(), std::min(kChunk, size_ - first)));
    }
    void reset();
    /// Settles, and remembers this moment: from here on, an entry's numbers are put aside before they change.
    void keep();
    /// The entries of that moment. Empty without one.
    std::vector<Entry> kept() const;

  private:
    static constexpr std::size_t kUnderWay = 16, kChunk = 1 << 14;
    /// The entry of a key: number from one, 0 for a free cell.
    struct Cell {
        std::uint32_t number = 0, hash = 0;
    };

    static std::uint32_t hash_of(const TransactionKey &k);
    /// An entry's numbers at the last keep().
    struct Before {
        std::uint32_t index;
        Tick time;
        std::uint64_t count;
    };
    void settle(const Entry &what, std::uint32_t hash);
    void fetch_entry(std::uint32_t hash) const {
        if (const Cell &c = cells_[hash & (cells_.size() - 1)]; c.number)
            __builtin_prefetch(&(*this)[c.number - 1], 1);
    }
    void grow();

    std::array<Entry, kUnderWay> under_way_; ///< a ring
    std::array<std::uint32_t, kUnderWay> hashes_{};
    std::size_t next_ = 0; ///< counted on since the last settle()
    std::size_t size_ = 0;
    std::vector<Cell> cells_; ///< open addressing; a power of two
    std::vector<std::unique_ptr<Entry[]>> chunks_;
    std::uint32_t keeps_ = 0; ///< since the last reset()
    std::size_t kept_size_ = 0;
    std::vector<Before> before_; ///< of the entries that have changed since the last keep()
};
static_assert(sizeof(TransactionCounts::Entry) == 64);

} // namespace moscope
