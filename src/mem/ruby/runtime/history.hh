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
    History(const History &) = delete;
    History &operator=(const History &) = delete;
    History(History &&) = default; // the ring stays where it is

    TransitionRecord &next() {
        TransitionRecord &r = *at_;
        if (__builtin_expect(++at_ == end_, 0)) {
            at_ = ring_.data();
            full_ = true;
        }
        return r;
    }
    /// Calls f(record) from the oldest kept to the newest.
    template <class F> void for_each(F &&f) const {
        for (const TransitionRecord *r = full_ ? at_ : end_; r != end_; ++r)
            f(*r);
        for (const TransitionRecord *r = ring_.data(); r != at_; ++r)
            f(*r);
    }
    void clear() {
        at_ = ring_.data();
        full_ = false;
    }

  private:
    std::vector<TransitionRecord> ring_;
    TransitionRecord *at_ = ring_.data(); ///< the next to be written
    TransitionRecord *end_ = at_ + ring_.size();
    bool full_ = false;
};

} // namespace moscope::ruby
