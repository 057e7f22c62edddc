// SPDX-License-Identifier: BSD-3-Clause
// What attribution counts of transactions: time and number of those that have everything in common that reports tell apart, in one
// host line for each kind. A transaction meets kinds and lines that the host has not seen for long, so it is counted a
// few transactions later, by when its cell and its entry have been fetched. Sums by line, by pair and by instruction are for
// whoever reads (line_totals.hh).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/types.hh"

namespace moscope {

enum class MissClass : std::uint8_t { cold, capacity, upgrade, true_sharing, false_sharing, count };
inline constexpr unsigned kMissClasses = static_cast<unsigned>(MissClass::count);
/// In place of a class: time in spin loops, and turns of them.
inline constexpr MissClass kSpinning = MissClass::count;

/// Transactions that are counted together.
struct TransactionKind {
    static constexpr std::uint8_t kNobody = 0xff;

    Addr writer = 0;        ///< instruction that had written the line last; 0: no other core's
    Addr waiter = 0;        ///< instruction
    Addr address_space = 0; ///< of the waiter; 0 of the kernel's code, which is the same in all
    std::uint32_t line = 0; ///< DRAM address / kLineBytes
    std::uint32_t use = 0;  ///< what of it: number of what its page was then, among all lines' uses
    MissClass miss = MissClass::cold;
    std::uint8_t offset = 0;         ///< within the line
    std::uint8_t supplier = kNobody; ///< type of the controller that sent the line
    std::uint8_t from = 0, to = 0;   ///< its chip, and the waiter's; 0 if nobody sent it
    bool operator==(const TransactionKind &) const = default;

    static Addr space_of(Addr pc, Addr address_space) { return static_cast<std::int64_t>(pc) < 0 ? 0 : address_space; }
};

class TransactionCounts {
  public:
    struct alignas(64) Entry {
        TransactionKind kind;
        Tick time = 0; ///< stall or spinning
        std::uint64_t count =
            0; ///< transactions or turns; waits for a transaction that was counted before add time alone
    };

    TransactionCounts() : cells_(1 << 16) {}
    TransactionCounts(const TransactionCounts &) = delete;
    TransactionCounts &operator=(const TransactionCounts &) = delete;

    void add(const TransactionKind &kind, Tick time, std::uint64_t count) {
        Entry &last = under_way_[next_ % kUnderWay];
        if (next_ >= kUnderWay)
            settle(last, hashes_[next_ % kUnderWay]);
        last = {kind, time, count};
        const std::uint32_t hash = hashes_[next_ % kUnderWay] = hash_of(kind);
        __builtin_prefetch(&cells_[hash & (cells_.size() - 1)]);
        ++next_;
        if (next_ > kUnderWay / 2)
            fetch_entry(hashes_[(next_ - 1 - kUnderWay / 2) % kUnderWay]);
    }
    /// Counts what is under way.
    void settle();
    std::size_t size() const { return size_; }
    /// In the order of their first coming, of what has been settled.
    const Entry &operator[](std::size_t i) const { return chunks_[i / kChunk][i % kChunk]; }
    void reset();

  private:
    static constexpr std::size_t kUnderWay = 16, kChunk = 1 << 14;
    /// Where a kind's entry is: number from one, 0 of a free cell.
    struct Cell {
        std::uint32_t number = 0, hash = 0;
    };

    static std::uint32_t hash_of(const TransactionKind &k);
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
};
static_assert(sizeof(TransactionCounts::Entry) == 64);

} // namespace moscope
