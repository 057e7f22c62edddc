// SPDX-License-Identifier: BSD-3-Clause
// Counts transactions and their time by key; the key has everything that reports distinguish. An entry fills one host
// line. Most transactions need a cell and an entry that are not in the host's caches, so a transaction is counted a few
// transactions later, when both have been prefetched. Readers add the entries up by line, by pair and by transfer
// (attribution_rows.cc).
#pragma once

#include <nmmintrin.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/chunks.hh"
#include "base/types.hh"
#include "schema/enumerations.hh"

namespace moscope {

/// In place of a miss class: the entry counts time in spin loops, and their iterations.
inline constexpr MissClass kSpinning = MissClass::count;

/// Transactions with the same key are counted together.
struct TransactionKey {
    static constexpr std::uint8_t kNoSupplier = 0xff;
    /// Bytes of DRAM whose lines have numbers of their own.
    static constexpr std::uint64_t kMostDram = std::uint64_t{kLineBytes} << 32;

    Addr writer = 0;        ///< instruction that had written the line last; 0: no other core's
    Addr waiter = 0;        ///< instruction
    Addr address_space = 0; ///< of the waiter; 0 of the kernel's code, which is the same in all
    std::uint32_t line = 0; ///< DRAM address / kLineBytes
    std::uint32_t use = 0;  ///< number of the line's use, among all lines' uses
    MissClass miss = MissClass::cold;
    std::uint8_t offset = 0;             ///< within the line
    std::uint8_t supplier = kNoSupplier; ///< type of the controller that sent the line
    std::uint8_t from = 0, to = 0;       ///< the supplier's chip, and the waiter's; both 0 without a supplier
    std::array<std::uint8_t, 3> unused{};

    bool operator==(const TransactionKey &o) const {
        return word(0) == o.word(0) && word(1) == o.word(1) && word(2) == o.word(2) && word(3) == o.word(3) &&
               word(4) == o.word(4);
    }
    std::uint32_t hash() const {
        std::uint64_t crc = 0;
        for (unsigned n = 0; n < kWords; ++n)
            crc = _mm_crc32_u64(crc, word(n));
        return static_cast<std::uint32_t>(crc);
    }
    static Addr space_of(Addr pc, Addr address_space) { return static_cast<std::int64_t>(pc) < 0 ? 0 : address_space; }

  private:
    static constexpr unsigned kWords = 5;
    std::uint64_t word(unsigned n) const {
        std::uint64_t w;
        std::memcpy(&w, reinterpret_cast<const char *>(this) + n * sizeof w, sizeof w);
        return w;
    }
};
static_assert(std::has_unique_object_representations_v<TransactionKey> && sizeof(TransactionKey) == 40);

class TransactionCounts {
  public:
    struct alignas(64) Entry {
        TransactionKey key;
        Tick time = 0; ///< stall or spinning
        std::uint64_t count =
            0; ///< transactions or spin iterations; a wait for a transaction that was counted before adds time only
        std::uint32_t changed_after = 0; ///< the number of the last keep() before its last change
        std::uint32_t hash = 0;          ///< of the key
    };

    TransactionCounts() : cells_(1 << 16), mask_(cells_.size() - 1) {}
    TransactionCounts(const TransactionCounts &) = delete;
    TransactionCounts &operator=(const TransactionCounts &) = delete;

    void add(const TransactionKey &key, Tick time, std::uint64_t count) {
        Entry &e = next();
        e.key = key;
        e.time = time;
        e.count = count;
        add(e);
    }
    /// The same in two steps without a copy: the caller sets key, time and count of next(), then calls add() with it.
    Entry &next() {
        Entry &place = under_way_[next_ % kUnderWay];
        if (__builtin_expect(next_ >= kUnderWay, 1))
            settle(place);
        return place;
    }
    void add(Entry &e) {
        e.hash = e.key.hash();
        __builtin_prefetch(&cells_[e.hash & mask_]);
        fetch_entry(under_way_[(next_ + kUnderWay / 2) % kUnderWay].hash);
        ++next_;
    }
    /// Adds what is still in the ring to the entries.
    void settle();
    std::size_t size() const { return entries_.size(); }
    /// Settled entries in the order of their first transaction.
    const Entry &operator[](std::size_t i) const { return entries_[i]; }
    /// The same, calling f(std::span<const Entry>) for one piece of them after the other.
    template <class F> void for_each_piece(F &&f) const { entries_.for_each_piece(f); }
    void reset();
    /// Settles, and keeps the present numbers for kept(): an entry's numbers are saved before they change.
    void keep();
    /// The entries as of the last keep(); empty if there was none since the last reset().
    std::vector<Entry> kept() const;

  private:
    static constexpr std::size_t kUnderWay = 16;
    /// The entry of a key: number from one, 0 for a free cell.
    struct Cell {
        std::uint32_t number = 0, hash = 0;
    };

    /// An entry's numbers at the last keep().
    struct Before {
        std::uint32_t index;
        Tick time;
        std::uint64_t count;
    };
    void settle(const Entry &what);
    /// Adds the first entry with its key, for which this cell is free.
    [[gnu::noinline]] void settle_first(const Entry &what, Cell &cell);
    [[gnu::noinline]] void put_aside(std::uint32_t index, Entry &e);
    void fetch_entry(std::uint32_t hash) const {
        if (const Cell &c = cells_[hash & mask_]; c.number)
            __builtin_prefetch(&entries_[c.number - 1], 1);
    }
    void grow();

    std::array<Entry, kUnderWay> under_way_; ///< a ring
    std::size_t next_ = 0;                   ///< counted on since the last settle()
    std::vector<Cell> cells_;                ///< open addressing; a power of two
    std::size_t mask_;                       ///< of a cell's number
    Chunks<Entry, 1 << 14> entries_;
    std::uint32_t keeps_ = 0; ///< since the last reset()
    std::size_t kept_size_ = 0;
    std::vector<Before> before_; ///< of the entries that have changed since the last keep()
};
static_assert(sizeof(TransactionCounts::Entry) == 64);

} // namespace moscope
