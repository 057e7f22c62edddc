// SPDX-License-Identifier: BSD-3-Clause
// Consecutive transactions of lines that have many: of each such line one episode, from its kFrom-th transaction on. Which lines
// will be the hottest is known at the end only, so a table of fixed size holds the lines with the most transactions so far (the
// majority vote of Boyer and Moore, for each slot): another line's transaction costs the line of a slot one vote.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/types.hh"
#include "schema/records.hh"

namespace moscope {

class Episodes {
  public:
    static constexpr unsigned kLongest = 48; ///< records of an episode
    static constexpr unsigned kFrom = 16;    ///< transactions of a line before its episode begins

    /// Whether the transaction of the line is to be recorded.
    bool wants(Addr line) {
        Slot &s = slot(line);
        if (__builtin_expect(s.line != line, 0)) {
            if (s.votes > 0) {
                --s.votes;
                return false;
            }
            s.line = line;
            s.records.reset();
        }
        ++s.votes;
        return s.votes > kFrom && (!s.records || s.records->size() < kLongest);
    }
    /// After wants().
    void add(const TransactionRecord &r) {
        Slot &s = slot(r.line);
        if (!s.records) {
            s.records = std::make_unique<std::vector<TransactionRecord>>();
            s.records->reserve(kLongest);
        }
        s.records->push_back(r);
    }
    void reset() { slots_ = std::vector<Slot>(kSlots); }
    template <class F> void for_each(F &&f) const {
        for (const Slot &s : slots_)
            if (s.records)
                for (const TransactionRecord &r : *s.records)
                    f(r);
    }

  private:
    static constexpr unsigned kSlots = 1021; // a prime, so that lines at powers of two differ
    struct Slot {
        Addr line = ~Addr{0};
        std::uint64_t votes = 0;
        std::unique_ptr<std::vector<TransactionRecord>> records;
    };
    /// Of a line with a number below 2^32, as in TransactionKey.
    Slot &slot(Addr line) { return slots_[static_cast<std::uint32_t>(line >> kLineBits) % kSlots]; }

    std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

} // namespace moscope
