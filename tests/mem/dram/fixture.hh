// SPDX-License-Identifier: BSD-3-Clause
// A small part with timings that tell each other apart, and a recorder of the commands on the bus. Clock: 1 ns.
#pragma once

#include <vector>

#include "mem/dram/controller.hh"

namespace moscope::dram::testing {

inline constexpr Tick kNs = kTicksPerNs;

inline DramParams small_part() {
    DramParams p;
    p.standard = "test";
    p.tCK_fs = kNs;
    p.t = {.tCL = 5,
           .tCWL = 4,
           .tRCD = 6,
           .tRP = 7,
           .tRAS = 16,
           .tRC = 24,
           .tWR = 8,
           .tWTR = 3,
           .tRTP = 5,
           .tRRD = 3,
           .tFAW = 0,
           .tCCD = 2,
           .tRTRS = 2,
           .tRTW = 2,
           .tREFI = 0,
           .tRFC = 0};
    TimingParams::visit([](const char *, Tick &value, Tick, Tick) { value *= kNs; }, p.t);
    p.channels = 1;
    p.ranks = 2;
    p.banks = 8;
    p.row_bytes = 4096;
    p.rows = 256;
    p.burst_lengths = 1u << 8;
    return p;
}

struct Recorder {
    std::vector<DramCommand> commands;

    static void record(void *self, const DramCommand &c) { static_cast<Recorder *>(self)->commands.push_back(c); }
    unsigned count(CommandKind k) const {
        unsigned n = 0;
        for (const DramCommand &c : commands)
            n += c.kind == k;
        return n;
    }
    /// Clock of the nth (from 1) command of a kind, -1 if there is none.
    Cycle at(CommandKind k, unsigned nth) const {
        for (const DramCommand &c : commands)
            if (c.kind == k && --nth == 0)
                return c.cycle;
        return -1;
    }
};

/// A channel with its commands recorded.
struct Traced : Channel {
    explicit Traced(const DramParams &p) : Channel(p, 0) { set_trace(&Recorder::record, &trace); }
    Recorder trace;
};

struct Wanted {
    unsigned rank, bank, row;
    bool write = false;
    Cycle seen = 0;
};

inline void add(Channel &c, const Wanted &w, unsigned number) {
    DramRequest r;
    r.addr = Addr{number} * kLineBytes;
    r.write = w.write;
    c.add(r, {0, w.rank, w.bank, w.row, number % 64}, w.seen);
}

} // namespace moscope::dram::testing
