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
    explicit History(unsigned size) : ring_(size) {}
    TransitionRecord &next() {
        TransitionRecord &r = ring_[at_];
        if (__builtin_expect(++at_ == ring_.size(), 0)) {
            at_ = 0;
            full_ = true;
        }
        return r;
    }
    /// Calls f(record) from the oldest kept to the newest.
    template <class F> void for_each(F &&f) const {
        for (std::size_t i = full_ ? at_ : ring_.size(); i < ring_.size(); ++i)
            f(ring_[i]);
        for (std::size_t i = 0; i < at_; ++i)
            f(ring_[i]);
    }
    void clear() {
        at_ = 0;
        full_ = false;
    }

  private:
    std::vector<TransitionRecord> ring_;
    std::size_t at_ = 0; ///< the next to be written
    bool full_ = false;
};

} // namespace moscope::ruby
