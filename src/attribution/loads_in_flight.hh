// SPDX-License-Identifier: BSD-3-Clause
// Memory-level parallelism by instruction: how many loads that missed the first-level cache a core has under way, on average over
// the time in which it has any (Chou, Fahs, Abraham, "Microarchitecture Optimizations for Exploiting Memory-Level Parallelism",
// ISCA 2004). Only cores that overlap their misses (cpu/x86/timed/overlap.hh) have more than one. Each chip has counts of its own, so
// the result does not depend on how many host threads simulate the chips. As in transaction_counts.hh, a load is counted a few loads
// later, when its entry is in the host's caches.
//
// Each moment is charged to that load under way which was requested first. Loads may end out of order, so an ended load
// is counted only when all loads that can have been requested before it have ended, too.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "attribution/transaction_counts.hh"
#include "cpu/x86/timed/timed_core.hh"
#include "schema/pipeline.hh"
#include "schema/records.hh"

namespace moscope {

class LoadsInFlight {
  public:
    explicit LoadsInFlight(std::vector<unsigned> chip_of_core);

    /// To be called for each transaction of a core, in the order in which they end.
    void ended(const x86::Transaction &t) {
        const Access &x = *t.access;
        if (x.kind != AccessKind::load)
            return;
        OfCore &core = cores_[t.core];
        if (core.size == core.kMost)
            of_[chip_of_core_[t.core]].add(entry(core.take(), core.covered));
        core.put({t.pc, TransactionKey::space_of(t.pc, t.address_space), x.issued, x.done});
    }
    void reset();
    /// LoadRows, by address space and instruction.
    std::string packed() const;

  private:
    /// The counts of an instruction in an address space.
    struct alignas(64) Entry {
        Addr pc = 0, address_space = 0;
        std::uint64_t loads = 0; ///< 0: the place is free
        Tick latency = 0, occupied = 0;

        void operator+=(const Entry &e) {
            loads += e.loads;
            latency += e.latency;
            occupied += e.occupied;
        }
    };
    /// The counts of a chip's cores: open addressing in a table whose size is a power of two, at most half full.
    class OfChip {
      public:
        void add(const Entry &e) {
            Entry &last = under_way_[next_ % kUnderWay];
            settle(last);
            last = e;
            ++next_;
            __builtin_prefetch(&entries_[place(e)], 1);
        }
        /// Calls f(entry) for all that has been counted; an instruction may come twice.
        template <class F> void for_each(F &&f) const {
            for (const Entry &e : entries_)
                if (e.loads)
                    f(e);
            for (const Entry &e : under_way_)
                if (e.loads)
                    f(e);
        }

      private:
        static constexpr unsigned kUnderWay = 8, kAtFirst = 1024;

        std::size_t place(const Entry &e) const {
            const std::uint64_t h = (e.pc ^ e.address_space << 20) * 0x9e3779b97f4a7c15;
            return (h ^ h >> 32) & (entries_.size() - 1);
        }
        void settle(const Entry &what) {
            if (!what.loads)
                return;
            for (std::size_t at = place(what);; at = (at + 1) & (entries_.size() - 1)) {
                Entry &e = entries_[at];
                if (e.loads && (e.pc != what.pc || e.address_space != what.address_space))
                    continue;
                if (e.loads)
                    e += what;
                else
                    begin(e, what);
                return;
            }
        }
        [[gnu::noinline]] void begin(Entry &place, const Entry &what);

        std::vector<Entry> entries_{kAtFirst};
        std::size_t count_ = 0, next_ = 0;
        std::array<Entry, kUnderWay> under_way_{}; ///< a ring
    };
    struct Load {
        Addr pc = 0, address_space = 0;
        Tick issued = 0, done = 0;
    };
    /// A core's ended loads that are not counted yet, in the order of their requests.
    struct alignas(64) OfCore {
        static constexpr unsigned kMost = x86::CoreParams::Most::window; ///< as many as a core can have in flight

        const Load &at(unsigned n) const { return ring[(first + n) % kMost]; }
        /// Inserts a load in the order of requests, in which most loads also end.
        void put(const Load &l) {
            unsigned n = size++;
            for (; n && at(n - 1).issued > l.issued; --n)
                ring[(first + n) % kMost] = at(n - 1);
            ring[(first + n) % kMost] = l;
        }
        Load take() {
            --size;
            return ring[first++ % kMost];
        }

        std::array<Load, kMost> ring;
        unsigned first = 0, size = 0;
        Tick covered = 0; ///< end of the time in which a counted load was under way
    };

    /// The entry of a load; `occupied` is the part of its time that no earlier load has covered.
    static Entry entry(const Load &l, Tick &covered) {
        const Tick occupied = std::max<Tick>(l.done - std::max(l.issued, covered), 0);
        covered = std::max(covered, l.done);
        return {l.pc, l.address_space, 1, l.done - l.issued, occupied};
    }

    std::vector<unsigned> chip_of_core_;
    std::vector<OfCore> cores_;
    std::vector<OfChip> of_;
};

} // namespace moscope
