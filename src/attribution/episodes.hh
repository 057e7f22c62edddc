// SPDX-License-Identifier: BSD-3-Clause
// Episodes: consecutive transactions of the lines with the most transactions, one episode for each line, which begins
// after kFrom of its transactions. Which lines are the hottest is known only at the end. A table of fixed size
// therefore keeps the lines with the most transactions so far, by the majority vote of Boyer and Moore in each slot: a
// transaction of the slot's line is a vote for it, and one of another line takes a vote away.
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
    static constexpr unsigned kFrom = 16;    ///< votes that a line needs before its episode begins

    /// Counts a transaction of the line. True: the caller records it with add().
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
        // An episode that has begun goes on even if other lines' transactions take votes away: its records are consecutive.
        return s.records ? s.records->size() < kLongest : s.votes > kFrom;
    }
    /// Only after wants() has returned true for the record's line.
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
    static constexpr unsigned kSlots = 1021; // a prime, so that lines a power of two apart have different slots
    struct Slot {
        Addr line = ~Addr{0};
        std::uint64_t votes = 0;
        std::unique_ptr<std::vector<TransactionRecord>> records;
    };
    /// The slot of a line, whose number is below 2^32 as in TransactionKey.
    Slot &slot(Addr line) { return slots_[static_cast<std::uint32_t>(line >> kLineBits) % kSlots]; }

    std::vector<Slot> slots_ = std::vector<Slot>(kSlots);
};

} // namespace moscope
