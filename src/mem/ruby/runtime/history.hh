// SPDX-License-Identifier: BSD-3-Clause
// The last transitions of a machine, kept in a ring in every run so that a protocol error can show what led to
// it. One store of 40 bytes per transition.
#pragma once

#include <vector>

#include "base/types.hh"

namespace moscope::ruby {

struct TransitionRecord {
    Tick tick;
    Addr line;
    std::uint64_t cause; ///< uid of the message; 0: timer
    std::uint16_t node, state, event, next;
    std::uint16_t message_type, source;
};

class History {
  public:
    /// size: a power of two.
    explicit History(unsigned size) : ring_(size), mask_(size - 1) {}
    TransitionRecord &next() { return ring_[n_++ & mask_]; }
    /// Calls f(record) from the oldest kept to the newest.
    template <class F> void for_each(F &&f) const {
        const std::uint64_t first = n_ > ring_.size() ? n_ - ring_.size() : 0;
        for (std::uint64_t i = first; i < n_; ++i)
            f(ring_[i & mask_]);
    }
    void clear() { n_ = 0; }

  private:
    std::vector<TransitionRecord> ring_;
    std::uint64_t mask_;
    std::uint64_t n_ = 0;
};

} // namespace moscope::ruby
