// SPDX-License-Identifier: BSD-3-Clause
// A core that overlaps misses, on a memory system that loses the lines that a test names.
#pragma once

#include <utility>
#include <vector>

#include "cpu/x86/timed/machine_code.hh"
#include "cpu/x86/timed/timed_machine.hh"

namespace moscope::x86::test {

constexpr Addr kCode = 0x1000, kData = 0x100000;
constexpr Tick kNs = kTicksPerNs;
constexpr double kWalks = 40. * kNs; ///< the first translation of a page, and what it marks as accessed

inline TimedParams overlapping() {
    TimedParams p;
    p.core.model = "out_of_order";
    return p;
}

struct OverlappingMachine : TimedMachine, TransactionObserver {
    explicit OverlappingMachine(const TimedParams &p = overlapping()) : TimedMachine(p) { core.observer = this; }
    void transaction(const Transaction &t) override { transactions.push_back({*t.access, t.exposed}); }
    void spun(const Spin &) override {}
    void stored(unsigned, Addr, unsigned, Addr) override {}
    void expected(Addr) override {}
    void prefetched(unsigned, Addr) override {}

    void put(Bytes bytes) {
        for (const std::uint8_t b : bytes)
            m.write<std::uint8_t>(at_++, b);
    }
    void put(std::initializer_list<int> bytes) {
        for (const int b : bytes)
            m.write<std::uint8_t>(at_++, static_cast<std::uint8_t>(b));
    }
    /// The core runs to the HLT. Returns when it came there.
    Tick run() {
        m.core.rip = kCode;
        begin();
        queue.run(1'000'000 * kNs);
        EXPECT_TRUE(m.core.halted);
        return core.window() - core.spent(TimedCore::Charge::idle);
    }
    Tick exposed() const {
        Tick all = 0;
        for (const auto &[access, stall] : transactions)
            all += stall;
        return all;
    }

    Addr at_ = kCode;
    std::vector<std::pair<Access, Tick>> transactions;
};

} // namespace moscope::x86::test
