// SPDX-License-Identifier: BSD-3-Clause
// Memory-level parallelism by instruction: how many loads that missed the first-level cache a core has under way, on average over
// the time in which it has any (Chou, Fahs, Abraham, "Microarchitecture Optimizations for Exploiting Memory-Level Parallelism",
// ISCA 2004). Only cores that overlap their misses (cpu/x86/timed/overlap.hh) have more than one. Each core has counts of its own, so
// the result does not depend on how many host threads simulate the chips.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "attribution/transaction_counts.hh"
#include "cpu/x86/timed/timed_core.hh"
#include "schema/records.hh"

namespace moscope {

class LoadsInFlight {
  public:
    explicit LoadsInFlight(std::size_t cores) : of_(cores) {}

    /// A core's transactions, in the order of their ends.
    void ended(const x86::Transaction &t) {
        const Access &x = *t.access;
        if (x.kind != AccessKind::load)
            return;
        OfCore &core = of_[t.core];
        Sums &sums = core.of[{t.pc, TransactionKey::space_of(t.pc, t.address_space)}];
        ++sums.loads;
        sums.latency += x.done - x.issued;
        // The time that no load before it has covered.
        sums.occupied += std::max<Tick>(x.done - std::max(x.issued, core.covered), 0);
        core.covered = std::max(core.covered, x.done);
    }
    void reset() {
        for (OfCore &core : of_)
            core.of.clear();
    }
    /// LoadRows, by address space and instruction.
    std::string packed() const;

  private:
    struct Instruction {
        Addr pc, address_space;
        bool operator==(const Instruction &) const = default;
    };
    struct Hash {
        std::size_t operator()(const Instruction &i) const { return i.pc * 0x9e3779b97f4a7c15 ^ i.address_space; }
    };
    struct Sums {
        std::uint64_t loads = 0;
        Tick latency = 0, occupied = 0;
    };
    struct alignas(64) OfCore {
        Tick covered = 0; ///< end of the time in which a load was under way, so far
        std::unordered_map<Instruction, Sums, Hash> of;
    };
    std::vector<OfCore> of_;
};

} // namespace moscope
