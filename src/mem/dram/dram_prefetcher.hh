// SPDX-License-Identifier: BSD-3-Clause
// The prefetcher of a node's memory controller (AMD 31116, DRAM prefetcher): it follows strides in the reads of all cores
// and devices, and reads lines ahead into a buffer of the controller. A read of a buffered line completes after the
// controller's own time, like a read of a line with a queued write; a read of a line that is still under way waits for
// it. A write to a buffered line discards the line. The prefetcher does not hold back reads of cores, but a prefetch
// that the DRAM has begun delays the reads behind it.
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
    /// A write arrives.
    void wrote(Addr line);
    /// A read of the DRAM has completed. False: it was not a prefetch.
    bool done(void *context, Tick when);

    PrefetchStats stats;

  private:
    /// The DRAM reports `ready` in a wake-up of its choice, at least one DRAM clock before that tick (controller.hh),
    /// so nothing may depend on it earlier.
    struct Entry {
        Addr line = kNoLine;     ///< kNoLine: the entry is free from tick `ready` on
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
