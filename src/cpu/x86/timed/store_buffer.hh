// SPDX-License-Identifier: BSD-3-Clause
// The store buffer of a core with x86-TSO order (Sewell et al., CACM 53(7), 2010). Stores leave it in program order.
// Stores that hit a writable line leave without an access. While the oldest store waits for its line, the buffer also
// requests the lines of later retired stores (accesses that own the line and move no bytes), up to the core's number of
// outstanding misses. A line that is lost before its store drains is requested again. A store is performed no earlier
// than it retired, although its core may have run ahead of the event queue.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "base/copy.hh"
#include "mem/port.hh"
#include "schema/pipeline.hh"
#include "sim/event_queue.hh"

namespace moscope::x86 {

class StoreBuffer : public Component {
  public:
    static constexpr unsigned kMost = PipelineParams::Most::store_buffer; ///< entries
    static constexpr unsigned kBytes = 16;

    /// entries: 1 to kMost. most: limit of accesses in flight, at least one.
    StoreBuffer(EventQueue &queue, std::string name, Port &port, unsigned entries, unsigned most)
        : Component(queue, std::move(name), [](Component &c, Tick now) { static_cast<StoreBuffer &>(c).drain(now); }),
          port_(port),
          most_(most),
          accesses_of_(most),
          asked_(most, kNone),
          room_(entries),
          last_entry_(std::bit_ceil(entries) - 1),
          entries_(last_entry_ + 1) {
        for (Access &a : accesses_of_) {
            a.owner = this;
            a.kind = AccessKind::store;
            a.on_done = [](Access &x) { static_cast<StoreBuffer *>(x.owner)->done(x); };
        }
    }

    bool empty() const { return head_ == tail_; }
    bool full() const { return tail_ - head_ == room_; }
    /// Stores that it can still take.
    unsigned free() const { return room_ - (tail_ - head_); }
    unsigned under_way() const { return in_flight_; }

    /// A store within a line. `retired`: the earliest tick at which it may be performed.
    void push(Addr dram, const void *from, unsigned size, Tick retired, Addr pc, Addr va) {
        Entry &e = entry(tail_++);
        e.address = dram;
        e.size = static_cast<std::uint8_t>(size);
        e.retired = retired;
        e.pc = pc;
        e.va = va;
        copy_few(e.bytes, from, size);
        // While the oldest store waits, the buffer has something to do only if the new line is not requested yet.
        if (!waits_ || (in_flight_ < most_ && line_of(dram) != line_of(entry(tail_ - 2).address)))
            schedule_no_later_than(std::max(retired, queue().now()));
    }

    enum class Found { none, whole, part };
    /// The youngest store that overlaps [dram, dram + size); copies its bytes if it covers the whole range.
    Found look(Addr dram, void *to, unsigned size) const {
        for (unsigned i = tail_; i != head_; --i) {
            const Entry &e = entry(i - 1);
            if (dram + size <= e.address || e.address + e.size <= dram)
                continue;
            if (dram < e.address || dram + size > e.address + e.size)
                return Found::part;
            copy_few(to, e.bytes + (dram - e.address), size);
            return Found::whole;
        }
        return Found::none;
    }

    /// Whether it holds a store to this linear page, by its number.
    bool holds_page(Addr page) const {
        for (unsigned i = head_; i != tail_; ++i)
            if (entry(i).va >> 12 == page)
                return true;
        return false;
    }

    /// Puts the bytes of stores in the buffer over those of memory at [dram, dram + size), for observers.
    void overlay(Addr dram, std::byte *to, std::size_t size) const {
        for (unsigned i = head_; i != tail_; ++i) {
            const Entry &e = entry(i);
            const Addr first = std::max(e.address, dram), end = std::min<Addr>(e.address + e.size, dram + size);
            if (first < end)
                std::memcpy(to + (first - dram), e.bytes + (first - e.address), end - first);
        }
    }

    struct alignas(64) Entry {
        Addr address;
        Tick retired;
        Addr pc, va;
        std::uint8_t size;
        std::uint8_t bytes[kBytes];
    };
    /// Called at the tick at which a store is performed and leaves the buffer, with the access that brought its line
    /// while it was the oldest; null: the line was there.
    void (*on_drain)(void *owner, Tick, const Entry &, const Access *brought) = nullptr;
    /// Called with each finished access, before on_drain.
    void (*on_access)(void *owner, const Access &) = nullptr;
    void *owner = nullptr;

  private:
    Entry &entry(unsigned i) { return entries_[i & last_entry_]; }
    const Entry &entry(unsigned i) const { return entries_[i & last_entry_]; }

    std::byte *writable(Addr at, Tick now) {
        std::byte *b = port_.hit(line_of(at), Port::right_store, now);
        return b ? b : port_.probe(AccessKind::store, at, now);
    }

    void drain(Tick now) {
        waits_ = false;
        while (!empty()) {
            Entry &e = entry(head_);
            if (e.retired > now) {
                schedule(e.retired);
                return;
            }
            const Addr line = line_of(e.address);
            if (!asked_for(line)) {
                if (std::byte *b = writable(e.address, now)) {
                    copy_few(b + line_offset(e.address), e.bytes, e.size);
                    leave(now);
                    continue;
                }
                if (in_flight_ < most_)
                    ask_for(e, e.bytes, now);
            }
            waits_ = true;
            look_ahead(now);
            return;
        }
    }

    /// Requests the lines of the retired stores behind the oldest. A line that is there already counts as a hit when
    /// its store leaves, not now.
    void look_ahead(Tick now) {
        const std::uint64_t hits = port_.inline_hits;
        look_at_lines(now);
        port_.inline_hits = hits;
    }
    void look_at_lines(Tick now) {
        for (unsigned i = static_cast<int>(looked_ - head_) > 0 ? looked_ : head_ + 1; i != tail_ && in_flight_ < most_;
             ++i) {
            Entry &e = entry(i);
            const Addr line = line_of(e.address);
            if (line != line_of(entry(i - 1).address)) { // otherwise there is nothing to request
                if (e.retired > now) {
                    schedule_no_later_than(e.retired);
                    return;
                }
                if (!asked_for(line) && !writable(e.address, now))
                    ask_for(e, nullptr, now);
            }
            looked_ = i + 1;
        }
    }

    bool asked_for(Addr line) const {
        if (__builtin_expect(!(asked_bits_ & bit_of(line)), 1))
            return false;
        for (const Addr a : asked_) // few, and mostly among the first
            if (a == line)
                return true;
        return false;
    }
    static std::uint64_t bit_of(Addr line) { return std::uint64_t{1} << (line >> kLineBits & 63); }

    /// bytes: null to own the line only.
    void ask_for(Entry &e, void *bytes, Tick now) {
        const auto slot = static_cast<std::size_t>(std::find(asked_.begin(), asked_.end(), kNone) - asked_.begin());
        Access &a = accesses_of_[slot];
        asked_[slot] = line_of(e.address);
        asked_bits_ |= bit_of(asked_[slot]);
        ++in_flight_;
        a.addr = PhysAddr(e.address);
        a.size = e.size;
        a.data = bytes;
        a.pc = e.pc;
        a.va = e.va;
        port_.issue(a, now);
    }

    void done(Access &x) {
        --in_flight_;
        waits_ = false; // until drain() has checked: the buffer may be empty at the next push
        asked_[static_cast<std::size_t>(&x - accesses_of_.data())] = kNone;
        asked_bits_ = 0;
        if (in_flight_)
            for (const Addr a : asked_)
                asked_bits_ |= bit_of(a);
        on_access(owner, x);
        const Tick done = x.done;
        if (line_of(x.addr.value) == line_of(entry(head_).address)) {
            last_ = x;
            brought_ = &last_;
        }
        if (x.data)
            leave(done);
        if (!empty())
            schedule_no_later_than(std::max(done, entry(head_).retired));
    }

    /// The oldest has been performed.
    void leave(Tick now) {
        const Entry &e = entry(head_++);
        on_drain(owner, now, e, std::exchange(brought_, nullptr));
    }

    Port &port_;
    static constexpr Addr kNone = ~Addr{0};
    unsigned most_;
    std::vector<Access> accesses_of_;
    std::vector<Addr> asked_; ///< the line of each access in flight, kNone of the others
    Access last_;
    const Access *brought_ = nullptr; ///< the access that brought the oldest store's line
    unsigned room_, last_entry_;
    std::vector<Entry> entries_;   ///< a ring of 2^n
    unsigned head_ = 0, tail_ = 0; ///< only count up; entry() masks them
    unsigned in_flight_ = 0;
    std::uint64_t asked_bits_ = 0; ///< bit_of() of each line in asked_; that of kNone, too
    unsigned looked_ = 0;          ///< the lines of entries before it are requested where necessary; only counts up
    bool waits_ = false;           ///< the oldest store waits for its line
};

} // namespace moscope::x86
