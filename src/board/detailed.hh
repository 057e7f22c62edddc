// SPDX-License-Identifier: BSD-3-Clause
// Detailed mode of a full system: every core on its fiber (cpu/x86/timed), every access through the coherence protocol.
// A switch from or to functional mode happens between two instructions of every core.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "attribution/attribution.hh"
#include "attribution/journal.hh"
#include "board/board.hh"
#include "cpu/x86/timed/timed_core.hh"
#include "machine/machine.hh"

namespace moscope {

class Detailed {
  public:
    Detailed(Board &board, Machine &machine, const x86::TimedParams &params);

    /// Cores continue in detailed mode at the present tick of the functional clock.
    void enter();
    /// Runs until `until`, until something ends the run (Board::ending), or until `host_done`.
    void run(Tick until, const std::function<bool()> &host_done);
    /// Runs until every core is at an instruction boundary with its stores performed, and device transfers have ended;
    /// then the functional clock takes over. False: `host_done`, which is polled, came first; the next call continues.
    bool leave(const std::function<bool()> &host_done);
    bool active() const { return active_; }
    /// All events before this tick have happened.
    Tick reached() const { return std::max(reached_, std::min(machine_.now(), machine_.next())); }

    const Attribution &attribution() const { return attribution_; }
    void keep_attribution() { attribution_.keep(); }
    void stop_stacks() { attribution_.sample_stacks(nullptr); }
    /// From here on, each miss takes a snapshot of what the guest's kernel says about the line's page.
    void watch_pages(const PageFormat &format) {
        attribution_.watch(std::make_unique<PageWatch>(board_.phys, *board_.cores[0], format));
    }

    /// SimulatorBug unless the charges of each core add up to its window, all memory stall is charged to transactions that have
    /// ended or are in flight, and all time in spin loops is charged to lines.
    void check_conservation() const;

    /// Counts from here on: charges, transactions, the machine's statistics.
    void reset();
    /// Brings all charges up to now.
    void settle();
    const std::vector<std::unique_ptr<x86::TimedCore>> &cores() const { return cores_; }
    Machine &machine() { return machine_; }

  private:
    Tick soon() const;
    void set_up_processes();
    void close_journals() {
        for (const auto &j : journals_)
            j->close();
    }
    /// With a log of transactions, the journals are replayed as one part, in one order.
    unsigned journal_parts() const { return attribution_.logs() ? 1 : Attribution::kParts; }
    void replay_journals() {
        close_journals();
        for (unsigned part = 0; part < journal_parts(); ++part)
            Journal::replay(journals_, part, attribution_);
    }
    bool any_asleep() const;
    void wake_sleepers();

    Board &board_;
    Machine &machine_;
    x86::SplitLock split_lock_;
    std::vector<std::unique_ptr<x86::TimedCore>> cores_;
    Attribution attribution_;
    std::vector<std::unique_ptr<Journal>> journals_; ///< by logical process, if there are several
    Component end_;    ///< wakes at the end of a run, so that statistics are those of that tick
    Tick reached_ = 0; ///< end of the last run()
    bool active_ = false, leaving_ = false;
};

} // namespace moscope
