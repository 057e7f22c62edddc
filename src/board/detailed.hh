// SPDX-License-Identifier: BSD-3-Clause
// Detailed mode of a full system: every core on its fiber (cpu/x86/timed), every access through the coherence protocol.
// Taken over from functional mode between two instructions of every core, and given back the same way.
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

    /// Cores go on in detailed mode from the functional clock's present moment.
    void enter();
    /// Runs until `until`, until something ends the run (Board::ending), or until `host_done`.
    void run(Tick until, const std::function<bool()> &host_done);
    /// Every core reaches an instruction boundary with its stores performed, devices end what they move; the functional clock takes
    /// over. False: `host_done` (asked now and then) came first, and the next call goes on with it.
    bool leave(const std::function<bool()> &host_done);
    bool active() const { return active_; }
    /// The moment up to which everything has happened.
    Tick reached() const { return std::max(reached_, machine_.now()); }

    const Attribution &attribution() const { return attribution_; }
    /// What the guest's kernel says of pages is kept of each line from its first miss on.
    void watch_pages(const PageFormat &format) {
        attribution_.watch(std::make_unique<PageWatch>(board_.phys, *board_.cores[0], format));
    }

    /// SimulatorBug unless every core's charges add up to its window, all memory stall was charged to transactions that have
    /// ended or are under way and all time in spin loops to lines.
    void check_conservation() const;

    /// Counts from here on: charges, transactions, the machine's statistics.
    void reset();
    /// Brings all charges up to now.
    void settle();
    const std::vector<std::unique_ptr<x86::TimedCore>> &cores() const { return cores_; }
    Machine &machine() { return machine_; }

  private:
    Tick soon() const;
    void set_up_side_by_side();
    void between(Tick end);
    void close_journals() {
        for (const auto &j : journals_)
            j->close();
    }
    /// With a log of transactions the journals are replayed in one order.
    unsigned journal_parts() const { return attribution_.logs() ? 1 : Attribution::kParts; }
    void replay_journals() {
        close_journals();
        for (unsigned part = 0; part < journal_parts(); ++part)
            Journal::replay(journals_, part, attribution_);
    }
    bool any_dozing() const;
    void wake_the_dozing();

    Board &board_;
    Machine &machine_;
    x86::SplitLock split_lock_;
    std::vector<std::unique_ptr<x86::TimedCore>> cores_;
    Attribution attribution_;
    std::vector<std::unique_ptr<Journal>> journals_; ///< by chip where each has its own queue
    struct Aside {
        Tick tick;
        x86::TimedCore *core;
        unsigned number;
    };
    std::vector<std::vector<Aside>> aside_; ///< by chip: cores that wait for all to be at rest
    Component end_;                         ///< wakes at the end of a run, so that statistics are those of that moment
    Tick reached_ = 0;                      ///< run() got to the end of this time
    bool active_ = false, leaving_ = false;
};

} // namespace moscope
