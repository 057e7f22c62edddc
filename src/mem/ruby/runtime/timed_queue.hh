// SPDX-License-Identifier: BSD-3-Clause
// A queue ordered by time, first in first out among equals. The first entry is a member, since most queues hold no more
// than one; those behind it are in a ring that grows by doubling. Arrivals are nearly always in order, so insertion looks
// from the tail and is constant time in practice.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "base/types.hh"

namespace moscope::ruby {

struct Message;

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

    /// The same, but before entries of the same tick for which behind(item) is true. Returns whether it is the last.
    template <class Behind> bool insert_if(Tick tick, T item, Behind &&behind) {
        return insert_last(tick, item, behind) || insert_between(tick, item, behind);
    }
    /// The same if it is the last and there is room; false: nothing is done.
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

/// Entries in the order of their ticks. They lie in one stretch of memory, followed by an entry of tick kNever, so that
/// front_tick() needs no test for an empty queue. Entries that are taken out leave room in front; when the stretch is
/// full, the others move there.
template <class E> class TickStretch {
    std::unique_ptr<E[]> room_;

  public:
    using Entry = E;

    TickStretch() { use(std::make_unique_for_overwrite<Entry[]>(kRoom), kRoom); }

    bool empty() const { return first_ == end_; }
    unsigned size() const { return static_cast<unsigned>(end_ - first_); }
    const Entry &front() const { return *first_; }
    /// kNever: the queue is empty.
    Tick front_tick() const { return first_->tick; }
    const Entry &at(unsigned i) const { return first_[i]; }
    void pop() { ++first_; }
    bool is_first(const Entry *e) const { return e == first_; }
    bool is_last(const Entry *e) const { return e + 1 == end_; }
    bool full() const { return end_ == limit_; }

  protected:
    /// A place behind all entries; there is room.
    Entry *append() {
        Entry *const at = end_;
        end_ = at + 1;
        at[1].tick = kNever;
        return at;
    }
    /// A place before all entries of a later tick; there is room.
    [[gnu::always_inline]] Entry *place(Tick tick) {
        Entry *at = append();
        for (; at != first_ && at[-1].tick > tick; --at)
            *at = at[-1];
        return at;
    }
    /// Moves all entries to the front of the stretch, or, if they fill half of it, of one twice as long.
    [[gnu::noinline]] void make_room() {
        Entry *const begin = first_;
        const std::size_t n = size(), room = static_cast<std::size_t>(limit_ - room_.get()) + 1;
        if (2 * n < room) {
            first_ = room_.get();
            std::copy(begin, begin + n, first_);
        } else {
            const auto shorter = std::move(room_);
            use(std::make_unique_for_overwrite<Entry[]>(2 * room), 2 * room);
            std::copy(begin, begin + n, first_);
        }
        end_with(n);
    }

    Entry *first_, *end_;

  private:
    static constexpr std::size_t kRoom = 32;

    void use(std::unique_ptr<Entry[]> room, std::size_t n) {
        room_ = std::move(room);
        first_ = room_.get();
        limit_ = first_ + n - 1;
        end_with(0);
    }
    void end_with(std::size_t n) {
        end_ = first_ + n;
        end_->tick = kNever;
    }

    Entry *limit_;
};

struct MessageEntry {
    Tick tick;
    Message *item;
};

/// Messages in the order of the ticks at which they enter a router or a port.
class EntryQueue : public TickStretch<MessageEntry> {
  public:
    /// Returns where it is, for is_first() and is_last().
    const Entry *insert(Tick tick, Message *m) {
        if (__builtin_expect(full(), 0))
            make_room();
        Entry *const at = place(tick);
        *at = {tick, m};
        return at;
    }
    /// The same, but before entries of the same tick for which behind(item) is true.
    template <class Behind> [[gnu::always_inline]] const Entry *insert_if(Tick tick, Message *m, Behind &&behind) {
        if (__builtin_expect(full(), 0))
            make_room();
        Entry *at = place(tick);
        if (__builtin_expect(at != first_ && at[-1].tick == tick, 0))
            at = place_among_equals(at, behind);
        *at = {tick, m};
        return at;
    }
    /// insert_if() if it is the last and there is room; false: nothing is done.
    template <class Behind> [[gnu::always_inline]] bool insert_last(Tick tick, Message *m, Behind &&behind) {
        Entry *const at = end_;
        if (__builtin_expect(full(), 0) ||
            (at != first_ && (at[-1].tick > tick || (at[-1].tick == tick && behind(at[-1].item)))))
            return false;
        *append() = {tick, m};
        return true;
    }
    void remove_at(unsigned i) {
        std::copy(first_ + i + 1, end_ + 1, first_ + i);
        --end_;
    }

  private:
    /// Moves the gap at `at` towards the front, past neighbours of one tick, as long as behind(item) is true for them.
    /// Returns the gap.
    template <class Behind> [[gnu::noinline]] Entry *place_among_equals(Entry *at, Behind behind) {
        const Tick tick = at[-1].tick;
        for (; at != first_ && at[-1].tick == tick && behind(at[-1].item); --at)
            *at = at[-1];
        return at;
    }
};

} // namespace moscope::ruby
