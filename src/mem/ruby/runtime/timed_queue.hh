// SPDX-License-Identifier: BSD-3-Clause
// A queue ordered by time, first in first out among equals: a ring that grows by doubling. Arrivals are
// nearly always in order, so insertion looks from the tail and is constant time in practice.
#pragma once

#include <vector>

#include "base/types.hh"

namespace moscope::ruby {

template <class T> class TimedQueue {
  public:
    struct Entry {
        Tick tick;
        T item;
    };

    bool empty() const { return count_ == 0; }
    unsigned size() const { return count_; }
    const Entry &front() const { return ring_[head_]; }
    Entry &front() { return ring_[head_]; }
    const Entry &back() const { return at(count_ - 1); }
    Tick front_tick() const { return front_tick_; }
    const Entry &at(unsigned i) const { return ring_[(head_ + i) & mask_]; }
    Entry &at(unsigned i) { return ring_[(head_ + i) & mask_]; }

    void pop() {
        head_ = (head_ + 1) & mask_;
        --count_;
        note_front();
    }

    void insert(Tick tick, T item) {
        insert_if(tick, item, [](const T &) { return false; });
    }

    /// The same, but before those of the same tick of which `behind` says that they come later.
    template <class Behind> void insert_if(Tick tick, T item, Behind &&behind) {
        if (count_ == ring_.size())
            grow();
        unsigned i = count_++;
        while (i > 0 && (at(i - 1).tick > tick || (at(i - 1).tick == tick && behind(at(i - 1).item)))) {
            at(i) = at(i - 1);
            --i;
        }
        at(i) = {tick, item};
        note_front();
    }

    /// Puts an entry back before all entries of the same or a later tick.
    void insert_early(Tick tick, T item) {
        if (count_ == ring_.size())
            grow();
        if (count_ == 0 || ring_[head_].tick >= tick) {
            head_ = (head_ - 1) & mask_;
            ++count_;
            ring_[head_] = {tick, item};
            front_tick_ = tick;
            return;
        }
        unsigned i = count_++;
        while (i > 0 && at(i - 1).tick >= tick) {
            at(i) = at(i - 1);
            --i;
        }
        at(i) = {tick, item};
    }

    T remove_at(unsigned i) {
        T item = at(i).item;
        for (; i + 1 < count_; ++i)
            at(i) = at(i + 1);
        --count_;
        note_front();
        return item;
    }

  private:
    void note_front() { front_tick_ = count_ ? ring_[head_].tick : kNever; }
    void grow() {
        std::vector<Entry> bigger(ring_.empty() ? 8 : ring_.size() * 2);
        for (unsigned i = 0; i < count_; ++i)
            bigger[i] = at(i);
        ring_.swap(bigger);
        head_ = 0;
        mask_ = static_cast<unsigned>(ring_.size()) - 1;
    }
    std::vector<Entry> ring_;
    unsigned head_ = 0, count_ = 0, mask_ = 0;
    Tick front_tick_ = kNever; ///< looked at far more often than changed
};

} // namespace moscope::ruby
