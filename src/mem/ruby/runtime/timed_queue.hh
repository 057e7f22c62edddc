// SPDX-License-Identifier: BSD-3-Clause
// A queue ordered by time, first in first out among equals. The first entry is a member, since most queues hold no more
// than one; those behind it are in a ring that grows by doubling. Arrivals are nearly always in order, so insertion looks
// from the tail and is constant time in practice.
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

    bool empty() const { return first_.tick == kNever; }
    unsigned size() const { return empty() ? 0 : 1 + behind_; }
    const Entry &front() const { return first_; }
    const Entry &back() const { return at(behind_); }
    /// kNever: the queue is empty.
    Tick front_tick() const { return first_.tick; }
    const Entry &at(unsigned i) const { return i == 0 ? first_ : ring_[(head_ + i - 1) & mask_]; }

    void pop() {
        if (__builtin_expect(behind_ == 0, 1))
            first_.tick = kNever;
        else
            advance();
    }

    void insert(Tick tick, T item) {
        insert_if(tick, item, [](const T &) { return false; });
    }

    /// The same, but before those of the same tick of which `behind` says that they come later. True: it is the last.
    template <class Behind> bool insert_if(Tick tick, T item, Behind &&behind) {
        return insert_last(tick, item, behind) || insert_between(tick, item, behind);
    }
    /// The same where it is the last and needs no room; false: nothing is done.
    template <class Behind> [[gnu::always_inline]] bool insert_last(Tick tick, T item, Behind &&behind) {
        if (__builtin_expect(first_.tick == kNever, 1)) {
            first_ = {tick, item};
            return true;
        }
        if (__builtin_expect(behind_ != room_, 1)) {
            Entry *const ring = ring_.get();
            const unsigned end = head_ + behind_;
            const Entry &last = behind_ ? ring[(end - 1) & mask_] : first_;
            if (__builtin_expect(last.tick < tick || (last.tick == tick && !behind(last.item)), 1)) {
                ring[end & mask_] = {tick, item};
                ++behind_;
                return true;
            }
        }
        return false;
    }

    /// Puts an entry back before all entries of the same or a later tick.
    void insert_early(Tick tick, T item) {
        if (empty()) {
            first_ = {tick, item};
            return;
        }
        if (behind_ == room_)
            grow();
        if (first_.tick >= tick) {
            head_ = (head_ - 1) & mask_;
            ++behind_;
            ring_[head_] = first_;
            first_ = {tick, item};
            return;
        }
        unsigned i = ++behind_;
        for (; i > 1 && at(i - 1).tick >= tick; --i)
            behind_first(i) = at(i - 1);
        behind_first(i) = {tick, item};
    }

    T remove_at(unsigned i) {
        T item = at(i).item;
        if (i == 0) {
            pop();
            return item;
        }
        for (; i < behind_; ++i)
            behind_first(i) = at(i + 1);
        --behind_;
        return item;
    }

  private:
    /// Entry i, which is not the first.
    Entry &behind_first(unsigned i) { return ring_[(head_ + i - 1) & mask_]; }
    /// insert_if() where the ring is full or the entry is not the last.
    template <class Behind> [[gnu::noinline]] bool insert_between(Tick tick, T item, Behind &behind) {
        if (behind_ == room_)
            grow();
        Entry *const ring = ring_.get();
        const unsigned mask = mask_;
        const unsigned end = head_ + behind_++;
        unsigned i = end;
        for (; i != head_; --i) {
            const Entry &before = ring[(i - 1) & mask];
            if (before.tick < tick || (before.tick == tick && !behind(before.item)))
                break;
            ring[i & mask] = before;
        }
        if (i == head_ && (tick < first_.tick || (first_.tick == tick && behind(first_.item)))) {
            ring[i & mask] = first_;
            first_ = {tick, item};
            return false;
        }
        ring[i & mask] = {tick, item};
        return i == end;
    }
    void advance() {
        first_ = ring_[head_];
        head_ = (head_ + 1) & mask_;
        --behind_;
    }
    [[gnu::noinline]] void grow() {
        const unsigned room = room_ ? 2 * room_ : 8;
        auto bigger = std::make_unique<Entry[]>(room);
        for (unsigned i = 0; i < behind_; ++i)
            bigger[i] = at(i + 1);
        ring_ = std::move(bigger);
        room_ = room;
        head_ = 0;
        mask_ = room - 1;
    }

    Entry first_{kNever, {}};
    std::unique_ptr<Entry[]> ring_;
    unsigned head_ = 0, behind_ = 0, mask_ = 0, room_ = 0;
};

} // namespace moscope::ruby
