// SPDX-License-Identifier: BSD-3-Clause
// The prefetcher of a node's memory controller (AMD 31116, DRAM prefetcher): it follows strides in the reads of all cores
// and devices, and reads lines ahead into a buffer of the controller. A read of a buffered line is answered as one of a
// queued write is, after the controller's own time; one of a line that is under way waits for it. A write empties the entry
// of its line. Reads of cores are not held back, but a prefetch that the DRAM has begun with delays those behind it.
#pragma once

#include <vector>

#include "mem/dram/controller.hh"
#include "mem/prefetch/prefetch_policy.hh"
#include "schema/prefetch.hh"

namespace moscope::dram {

class DramPrefetcher {
  public:
    /// Called for a read that the prefetcher answers, with the tick at which its data is there.
    using DoneFn = void (*)(void *owner, void *context, Tick when);

    DramPrefetcher(const DramPrefetchParams &params, DramController &controller, DoneFn done, void *owner);

    /// A read arrives. True: the prefetcher answers it. False: it goes to the DRAM.
    bool read(Addr line, Tick now, void *context);
    /// After each read: learns, and may read ahead.
    void learn(Addr line, Tick now);
    void wrote(Addr line);
    /// The end of a read of the DRAM. False: it is none of the prefetcher's.
    bool done(void *context, Tick when);

    PrefetchStats stats;

  private:
    /// When the DRAM tells `ready` is up to it (controller.hh), so nothing depends on it before that tick.
    struct Entry {
        Addr line = kNoLine;     ///< kNoLine: free, from `ready` on
        Tick ready = 0;          ///< kNever: not known yet
        void *waiting = nullptr; ///< a read that waits for it
        Tick since = 0;          ///< the waiting read arrived
        std::uint64_t age = 0;
    };
    static constexpr Addr kNoLine = ~Addr{0};
    Entry *find(Addr line);
    Entry *room(Tick now);

    const DramPrefetchParams params_;
    const PrefetchPolicy &policy_;
    DramController &controller_;
    DoneFn done_;
    void *owner_;
    Tick own_time_; ///< from a read's arrival to its data, if the buffer has it
    PrefetchStreams streams_;
    std::vector<Entry> entries_;
    std::uint64_t next_age_ = 1;
};

} // namespace moscope::dram
