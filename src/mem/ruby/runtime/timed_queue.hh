// SPDX-License-Identifier: BSD-3-Clause
// A queue ordered by time, first in first out among equals: a ring that grows by doubling. Arrivals are
// nearly always in order, so insertion looks from the tail and is constant time in practice.
#pragma once

#include <memory>

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
        front_tick_ = --count_ ? ring_[head_].tick : kNever;
    }

    void insert(Tick tick, T item) {
        insert_if(tick, item, [](const T &) { return false; });
    }

    /// The same, but before those of the same tick of which `behind` says that they come later.
    template <class Behind> void insert_if(Tick tick, T item, Behind &&behind) {
        if (__builtin_expect(count_ == room_, 0))
            grow();
        Entry *const ring = ring_.get();
        const unsigned mask = mask_;
        unsigned i = head_ + count_++;
        while (i != head_) {
            const Entry &before = ring[(i - 1) & mask];
            if (__builtin_expect(before.tick < tick || (before.tick == tick && !behind(before.item)), 1)) {
                ring[i & mask] = {tick, item};
                return;
            }
            ring[i & mask] = before;
            --i;
        }
        ring[i & mask] = {tick, item};
        front_tick_ = tick;
    }

    /// Puts an entry back before all entries of the same or a later tick.
    void insert_early(Tick tick, T item) {
        if (count_ == room_)
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
        front_tick_ = --count_ ? ring_[head_].tick : kNever;
        return item;
    }

  private:
    [[gnu::noinline]] void grow() {
        const unsigned room = room_ ? 2 * room_ : 8;
        auto bigger = std::make_unique<Entry[]>(room);
        for (unsigned i = 0; i < count_; ++i)
            bigger[i] = at(i);
        ring_ = std::move(bigger);
        room_ = room;
        head_ = 0;
        mask_ = room - 1;
    }
    std::unique_ptr<Entry[]> ring_;
    unsigned head_ = 0, count_ = 0, mask_ = 0, room_ = 0;
    Tick front_tick_ = kNever; ///< looked at far more often than changed
};

} // namespace moscope::ruby
