// SPDX-License-Identifier: BSD-3-Clause
// The store buffer of a core with x86-TSO order (Sewell et al., CACM 53(7), 2010): stores leave it in program order, one
// access in flight at a time; those that hit a writable line leave without one. A store is performed not before the
// moment at which it retired, although its core may have run ahead of the event queue since.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "mem/port.hh"
#include "sim/event_queue.hh"

namespace moscope::x86 {

class StoreBuffer : public Component {
  public:
    static constexpr unsigned kEntries = 32; ///< of the family's 44-entry load/store unit (AMD 40546, section A.5.4), most hold loads
    static constexpr unsigned kBytes = 16;

    StoreBuffer(EventQueue &queue, std::string name, Port &port)
        : Component(queue, std::move(name), [](Component &c, Tick now) { static_cast<StoreBuffer &>(c).drain(now); }),
          port_(port) {
        access_.owner = this;
        access_.kind = AccessKind::store;
        access_.on_done = [](Access &x) { static_cast<StoreBuffer *>(x.owner)->done(x); };
    }

    bool empty() const { return head_ == tail_; }
    bool full() const { return tail_ - head_ == kEntries; }

    /// Within a line. `retired`: when it may be performed.
    void push(Addr dram, const void *from, unsigned size, Tick retired, Addr pc, Addr va) {
        Entry &e = entry(tail_++);
        e.address = dram;
        e.size = static_cast<std::uint8_t>(size);
        e.retired = retired;
        e.pc = pc;
        e.va = va;
        std::memcpy(e.bytes, from, size);
        if (!in_flight_)
            schedule_no_later_than(std::max(retired, queue().now()));
    }

    enum class Found { none, whole, part };
    /// The youngest store that overlaps [dram, dram + size): its bytes if it covers it all.
    Found look(Addr dram, void *to, unsigned size) const {
        for (unsigned i = tail_; i != head_; --i) {
            const Entry &e = entry(i - 1);
            if (dram + size <= e.address || e.address + e.size <= dram)
                continue;
            if (dram < e.address || dram + size > e.address + e.size)
                return Found::part;
            std::memcpy(to, e.bytes + (dram - e.address), size);
            return Found::whole;
        }
        return Found::none;
    }

    /// The store in flight, or that was last: what a core that waits for the buffer waits for.
    const Access &access() const { return access_; }
    /// Accesses begun so far.
    std::uint64_t accesses() const { return accesses_; }
    bool in_flight() const { return in_flight_; }

    /// Called whenever a store has left the buffer, at that moment.
    void (*on_drain)(void *owner, Tick) = nullptr;
    /// Called with each finished access, before on_drain.
    void (*on_access)(void *owner, const Access &) = nullptr;
    void *owner = nullptr;

  private:
    struct Entry {
        Addr address;
        Tick retired;
        Addr pc, va;
        std::uint8_t size;
        std::uint8_t bytes[kBytes];
    };
    Entry &entry(unsigned i) { return entries_[i % kEntries]; }
    const Entry &entry(unsigned i) const { return entries_[i % kEntries]; }

    void drain(Tick now) {
        while (!empty() && !in_flight_) {
            Entry &e = entry(head_);
            if (e.retired > now) {
                schedule(e.retired);
                return;
            }
            const Addr line = line_of(e.address);
            std::byte *b = port_.hit(line, Port::right_store, now);
            if (!b)
                b = port_.probe(AccessKind::store, line, now);
            if (b) {
                std::memcpy(b + line_offset(e.address), e.bytes, e.size);
                ++head_;
                on_drain(owner, now);
                continue;
            }
            in_flight_ = true;
            ++accesses_;
            access_.addr = PhysAddr(e.address);
            access_.size = e.size;
            access_.data = e.bytes;
            access_.pc = e.pc;
            access_.va = e.va;
            port_.issue(access_, now);
        }
    }
    void done(Access &x) {
        in_flight_ = false;
        ++head_;
        on_access(owner, x);
        on_drain(owner, x.done);
        if (!empty())
            schedule_no_later_than(std::max(x.done, entry(head_).retired));
    }

    Port &port_;
    Access access_;
    std::array<Entry, kEntries> entries_;
    unsigned head_ = 0, tail_ = 0; ///< counted on
    std::uint64_t accesses_ = 0;
    bool in_flight_ = false;
};

} // namespace moscope::x86
