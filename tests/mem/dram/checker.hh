// SPDX-License-Identifier: BSD-3-Clause
// Checks a trace of commands against the rules of JESD79, pair by pair over the whole history that can matter. It
// shares nothing with the scheduler: rules are distances between two commands, as the standards' tables list them.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "mem/dram/channel.hh"

namespace moscope::dram::testing {

class Checker {
  public:
    explicit Checker(const DramParams &p) : p_(p) {
        longest_ = 0;
        for (const Tick t : {p.t.tRC, p.t.tRFC, p.t.tFAW, p.t.tCL + p.t.tWR + p.t.tRP + p.t.tRTW, p.t.tRAS + p.t.tRP})
            longest_ = std::max(longest_, clocks(t) + 40);
    }

    std::vector<std::string> errors;

    void see(const DramCommand &c) {
        if (!past_.empty() && c.cycle <= past_.back().cycle)
            fail(c, "two commands in a clock, or out of order");
        state(c);
        unsigned activates = 0;
        for (auto it = past_.rbegin(); it != past_.rend() && c.cycle - it->cycle <= longest_; ++it) {
            pair(*it, c);
            if (c.kind == K::activate && it->kind == K::activate && it->rank == c.rank && ++activates == 4)
                need(*it, c, p_.t.tFAW, "tFAW");
        }
        past_.push_back(c);
        const unsigned b = c.rank * p_.banks + c.bank;
        if (c.kind == K::activate)
            open_[b] = c.row;
        if (c.kind == K::precharge || c.auto_precharge)
            open_[b].reset();
        if (c.kind == K::precharge_all)
            for (unsigned i = 0; i < p_.banks; ++i)
                open_[c.rank * p_.banks + i].reset();
    }

  private:
    using K = CommandKind;

    Cycle clocks(Tick t) const { return (t + p_.tCK_fs - 1) / p_.tCK_fs; }
    Cycle burst() const { return kLineBytes / p_.bus_bytes() / 2; }
    static bool column(K k) { return k == K::read || k == K::write; }
    Cycle data(const DramCommand &c) const { return c.cycle + clocks(c.kind == K::read ? p_.t.tCL : p_.t.tCWL); }

    void fail(const DramCommand &c, const std::string &what) {
        errors.push_back("clock " + std::to_string(c.cycle) + " rank " + std::to_string(c.rank) + " bank " +
                         std::to_string(c.bank) + ": " + what);
    }
    void need(const DramCommand &a, const DramCommand &b, Tick t, const char *rule) {
        if (b.cycle - a.cycle < clocks(t))
            fail(b, rule);
    }
    void state(const DramCommand &c) {
        const auto &row = open_[c.rank * p_.banks + c.bank];
        if (column(c.kind) && (!row || *row != c.row))
            fail(c, "column command to a row that is not open");
        if (c.kind == K::activate && row)
            fail(c, "activate of an open bank");
        if (c.kind == K::precharge && !row)
            fail(c, "precharge of a closed bank");
        if (c.kind == K::refresh)
            for (unsigned i = 0; i < p_.banks; ++i)
                if (open_[c.rank * p_.banks + i])
                    fail(c, "refresh with an open bank");
    }
    /// Clock at which an access with auto-precharge closes its row: as soon as a precharge command could.
    Cycle closes(const DramCommand &access) const {
        Cycle at =
            access.kind == K::read ? access.cycle + clocks(p_.t.tRTP) : data(access) + burst() + clocks(p_.t.tWR);
        for (auto it = past_.rbegin(); it != past_.rend(); ++it)
            if (it->kind == K::activate && it->rank == access.rank && it->bank == access.bank &&
                it->cycle < access.cycle)
                return std::max(at, it->cycle + clocks(p_.t.tRAS));
        return at;
    }
    void pair(const DramCommand &a, const DramCommand &b) {
        const bool rank = a.rank == b.rank;
        const bool bank = rank && (a.bank == b.bank || a.kind == K::precharge_all || b.kind == K::precharge_all ||
                                   a.kind == K::refresh || b.kind == K::refresh);
        const bool closing = b.kind == K::precharge || b.kind == K::precharge_all;
        const bool opening = b.kind == K::activate || b.kind == K::refresh;
        if (bank) {
            if (a.kind == K::activate && opening)
                need(a, b, p_.t.tRC, "tRC");
            if (a.kind == K::activate && column(b.kind))
                need(a, b, p_.t.tRCD, "tRCD");
            if (a.kind == K::activate && closing)
                need(a, b, p_.t.tRAS, "tRAS");
            if ((a.kind == K::precharge || a.kind == K::precharge_all) && opening)
                need(a, b, p_.t.tRP, "tRP");
            if (a.kind == K::read && closing)
                need(a, b, p_.t.tRTP, "tRTP");
            if (a.kind == K::write && closing && b.cycle < data(a) + burst() + clocks(p_.t.tWR))
                fail(b, "tWR");
            if (a.auto_precharge && opening && b.cycle < closes(a) + clocks(p_.t.tRP))
                fail(b, "tRP after auto-precharge");
            if (a.kind == K::refresh && opening)
                need(a, b, p_.t.tRFC, "tRFC");
        }
        if (rank && a.kind == K::activate && b.kind == K::activate)
            need(a, b, p_.t.tRRD, "tRRD");
        if (rank && a.kind == K::write && b.kind == K::read && b.cycle < data(a) + burst() + clocks(p_.t.tWTR))
            fail(b, "tWTR");
        if (column(a.kind) && column(b.kind)) {
            need(a, b, p_.t.tCCD, "tCCD");
            Cycle gap = rank ? 0 : clocks(p_.t.tRTRS);
            if (a.kind == K::read && b.kind == K::write)
                gap = std::max(gap, clocks(p_.t.tRTW));
            if (data(b) < data(a) + burst() + gap)
                fail(b, "data bus");
        }
    }

    DramParams p_;
    Cycle longest_;
    std::vector<DramCommand> past_;
    std::optional<unsigned> open_[64];
};

} // namespace moscope::dram::testing
