// SPDX-License-Identifier: BSD-3-Clause
// Transactions as they were counted (transaction_counts.hh), added up for one line after the other: for each use of its
// page, as what a line was part of changes with that.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "attribution/transaction_counts.hh"

namespace moscope {

struct Waited {
    Tick stall = 0, spin = 0;
    std::uint64_t count = 0; ///< transactions
    Tick both() const { return stall + spin; }
    void add(const TransactionCounts::Entry &e);
};

/// An instruction; the kernel's has no address space.
struct CodePlace {
    Addr pc, address_space;
    auto operator<=>(const CodePlace &) const = default;
};

/// Who waited after whose write.
struct Fight {
    Addr writer, waiter, address_space;
    std::uint8_t offset; ///< within the line
    auto operator<=>(const Fight &) const = default;
};

/// From where to where a line has moved: its supplier's type, its chip, the chip of the core that got it.
struct Way {
    std::uint8_t supplier, from, to;
    auto operator<=>(const Way &) const = default;
};

struct LineTotals : Waited {
    std::uint64_t turns = 0; ///< of spin loops
    std::array<std::uint64_t, kMissClasses> by_class{};
    std::array<Tick, kMissClasses> stall_by_class{};
    std::map<Fight, Waited> fights;
    std::map<Way, Waited> moves;
    std::map<Addr, std::uint64_t> writers; ///< stores by instruction, at changes of hands
};

class LinesCounted {
  public:
    /// Of `counts` as they are now, settled. A line is in one of them only, and so is each use of it.
    explicit LinesCounted(std::vector<const TransactionCounts *> counts);

    struct Sum {
        Addr line; ///< DRAM address
        std::uint32_t use;
        Tick waited;
        std::size_t first, last; ///< its entries
    };
    /// By address, uses of one line in their order.
    std::span<const Sum> lines() const { return sums_; }
    LineTotals totals(const Sum &) const;
    std::map<CodePlace, Waited> by_code() const;
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
