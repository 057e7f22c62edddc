// SPDX-License-Identifier: BSD-3-Clause
// The prefetcher of a core's L1 data cache or L1 instruction cache. It sits at the core's sequencer, which sees every
// access that misses the L1. A prefetch is a load or an instruction fetch through the protocol for which no instruction
// waits; a demand access to its line joins it. The prefetcher learns from misses and, if the policy says so, from the
// first use of a line that it has fetched, so that a stream that always hits continues. Demand accesses have priority:
// they are sent in any case, prefetches only while few of the core's lines are in flight.
#pragma once

#include <memory>
#include <vector>

#include "mem/port.hh"
#include "mem/prefetch/prefetch_policy.hh"
#include "mem/ruby/runtime/message.hh"
#include "schema/prefetch.hh"

namespace moscope::ruby {

class Sequencer;

class L1Prefetcher {
  public:
    struct Params {
        PrefetchLevel level; ///< l1d or l1i
        std::string policy;
        unsigned streams, ahead, buffers;
        explicit Params(const L1dPrefetchParams &p)
            : level(PrefetchLevel::l1d), policy(p.policy), streams(p.streams), ahead(p.ahead), buffers(p.buffers) {}
        explicit Params(const L1iPrefetchParams &p)
            : level(PrefetchLevel::l1i), policy(p.policy), streams(1), ahead(p.ahead), buffers(p.buffers) {}
    };
    L1Prefetcher(Sequencer &sequencer, const Params &params);

    /// Whether an access is one of its prefetches.
    bool owns(const Access &a) const { return a.owner == this; }
    /// A demand access has been sent (`before` is null), or waits for `before`, an access to its line in flight.
    void demanded(const Access &a, const Access *before);
    /// An access at `when` that was served without a request. Cheap unless the line was prefetched and is used first now.
    void hit(Addr line, Tick when) {
        if (Brought &b = brought_[index(line)]; __builtin_expect(b.line == line, 0))
            used(b, when);
    }

    PrefetchStats stats;

  private:
    struct Flight {
        Access access; ///< the first member: on_done finds the rest
        std::int32_t stride = 0;
        unsigned stream = 0;
        bool free = true, late = false;
    };
    /// A line in the L1 that was prefetched and not used yet.
    struct Brought {
        Addr line = kNoLine;
        std::int32_t stride = 0;
        unsigned stream = 0;
    };
    static constexpr Addr kNoLine = ~Addr{0};
    static constexpr unsigned kBrought = 512;
    static unsigned index(Addr line) { return static_cast<unsigned>(line >> kLineBits) & (kBrought - 1); }

    bool in_l1(Addr line, RubyRequestType by) const;
    void used(Brought &b, Tick when);
    void go_on(unsigned stream, std::int32_t stride, Addr line, Tick when);
    void fetch(unsigned stream, std::int32_t stride, Addr line, Tick when);
    void arrived(Flight &f);

    Sequencer &sequencer_;
    const Params params_;
    const RubyRequestType request_;
    const PrefetchPolicy &policy_;
    PrefetchStreams streams_;
    std::vector<Flight> flights_;
    std::vector<Brought> brought_;
};

} // namespace moscope::ruby
