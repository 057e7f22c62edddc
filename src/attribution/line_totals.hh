// SPDX-License-Identifier: BSD-3-Clause
// Sums of the counted transactions (transaction_counts.hh) by line and by use of the line's page.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "attribution/transaction_counts.hh"

namespace moscope {

struct WaitSums {
    Tick stall = 0, spin = 0;
    std::uint64_t count = 0; ///< transactions
    Tick waiting() const { return stall + spin; }
    void add(const TransactionCounts::Entry &e);
};

/// An instruction; kernel code has no address space.
struct CodeAddress {
    Addr pc, address_space;
    auto operator<=>(const CodeAddress &) const = default;
};

/// A writer and the waiter for its write.
struct Pair {
    Addr writer, waiter, address_space;
    std::uint8_t offset; ///< within the line
    auto operator<=>(const Pair &) const = default;
};

/// The type and chip of the controller that sent a line, and the chip of the core that received it.
struct Transfer {
    std::uint8_t supplier, from, to;
    auto operator<=>(const Transfer &) const = default;
};

struct LineTotals : WaitSums {
    std::uint64_t turns = 0; ///< of spin loops
    std::array<std::uint64_t, kMissClasses> by_class{};
    std::array<Tick, kMissClasses> stall_by_class{};
    std::map<Pair, WaitSums> pairs;
    std::map<Transfer, WaitSums> transfers;
    std::map<Addr, std::uint64_t> writers; ///< times that the line came from this instruction's write
};

class LineIndex {
  public:
    /// `counts` are settled. A line and each use of it are in one of them only.
    explicit LineIndex(std::vector<const TransactionCounts *> counts);

    struct Sum {
        Addr line; ///< DRAM address
        std::uint32_t use;
        Tick waited;
        std::size_t first, last; ///< its entries
    };
    /// By address, uses of one line in their order.
    std::span<const Sum> lines() const { return sums_; }
    LineTotals totals(const Sum &) const;
    std::map<CodeAddress, WaitSums> by_code() const;
    /// Calls f(const TransactionCounts::Entry &) for all.
    template <class F> void for_each(F &&f) const {
        for (const TransactionCounts *c : counts_)
            for (std::size_t i = 0; i < c->size(); ++i)
                f((*c)[i]);
    }

  private:
    struct Place {
        std::uint32_t line, use, entry; ///< `entry` of those of all counts together
        auto operator<=>(const Place &) const = default;
    };
    const TransactionCounts::Entry &entry(std::uint32_t n) const;

    std::vector<const TransactionCounts *> counts_;
    std::vector<Place> order_; ///< by line, those of one in the order of their coming
    std::vector<Sum> sums_;
};

} // namespace moscope
