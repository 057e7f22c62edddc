// SPDX-License-Identifier: BSD-3-Clause
// Non-temporal stores of a core. A buffer of one line collects them (AMD 24593, section 7.4.1, write-combining) and
// sends them past the caches: a full line as one access, a partial line as one access per run of bytes. A few accesses
// are in flight at a time. Only fences order them with other stores.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "mem/port.hh"

namespace moscope::x86 {

class WriteCombiner {
  public:
    explicit WriteCombiner(Port &port) : port_(port) {}

    bool holds(Addr line) const {
        if (idle()) // nearly always; flights_ covers many host lines
            return false;
        if (mask_ && line_ == line)
            return true;
        for (const Flight &f : flights_)
            if (f.busy && line_of(f.access.addr.value) == line)
                return true;
        return false;
    }
    bool holds_page(Addr page) const {
        if (mask_ && va_ >> 12 == page)
            return true;
        for (const Flight &f : flights_)
            if (f.busy && f.access.va >> 12 == page)
                return true;
        return false;
    }
    bool pending() const { return mask_ != 0; }
    bool must_send_before(Addr line) const { return mask_ && line_ != line; }
    bool full() const { return mask_ == ~std::uint64_t{0}; }
    bool idle() const { return !mask_ && !under_way_; }
    unsigned under_way() const { return under_way_; }

    /// A store within the line that is being collected or, if there is none, within a new line.
    void add(Addr dram, const void *from, unsigned size, Addr pc, Addr va) {
        line_ = line_of(dram);
        pc_ = pc;
        va_ = va - line_offset(dram);
        std::memcpy(bytes_ + line_offset(dram), from, size);
        mask_ |= (size == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << size) - 1) << line_offset(dram);
    }
    /// Sends the next run of collected bytes. False: all accesses are in use; try again when one has ended.
    bool send(Tick now) {
        for (Flight &f : flights_) {
            if (f.busy)
                continue;
            const auto first = static_cast<unsigned>(std::countr_zero(mask_));
            const auto run = static_cast<unsigned>(std::countr_one(mask_ >> first));
            f.busy = true;
            f.owner = this;
            std::memcpy(f.bytes, bytes_ + first, run);
            f.access = {};
            f.access.addr = PhysAddr(line_ + first);
            f.access.size = static_cast<std::uint16_t>(run);
            f.access.kind = AccessKind::nt_store;
            f.access.data = f.bytes;
            f.access.owner = &f;
            f.access.pc = pc_;
            f.access.va = va_ + first;
            f.access.on_done = [](Access &x) {
                static_cast<Flight *>(x.owner)->owner->done(*static_cast<Flight *>(x.owner));
            };
            mask_ &= ~((run == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << run) - 1) << first);
            ++under_way_;
            port_.issue(f.access, now);
            return true;
        }
        return false;
    }

    /// Called with each finished access.
    void (*on_done)(void *owner, const Access &) = nullptr;
    void *owner = nullptr;

  private:
    struct Flight {
        Access access;
        std::uint8_t bytes[kLineBytes];
        WriteCombiner *owner = nullptr;
        bool busy = false;
    };
    void done(Flight &f) {
        f.busy = false;
        --under_way_;
        on_done(owner, f.access);
    }

    Port &port_;
    std::array<Flight, 4> flights_; ///< write buffers of the family (AMD 40546, section A.5)
    unsigned under_way_ = 0;
    Addr line_ = 0, pc_ = 0, va_ = 0; ///< va_: of the line, as the last store reached it
    std::uint64_t mask_ = 0;          ///< bytes collected
    std::uint8_t bytes_[kLineBytes];
};

} // namespace moscope::x86
