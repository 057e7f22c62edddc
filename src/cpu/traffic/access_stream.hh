// SPDX-License-Identifier: BSD-3-Clause
// A stream of accesses from one port with a fixed number in flight: 1 is a chain of dependent loads (each is
// issued at the tick at which the one before completed), more models a core with that many outstanding misses.
// It counts what measurements need: latencies by segment, links crossed, suppliers. Every access goes through the
// memory system, hits as well. Times are ticks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cpu/traffic/line_sequence.hh"
#include "mem/port.hh"
#include "sim/event_queue.hh"

namespace moscope {

/// What a stream has seen since its counts were last reset.
struct StreamCounts {
    static constexpr unsigned kHopBins = 32; ///< the last one holds all longer paths
    std::uint64_t done = 0;
    Tick latency = 0; ///< sum
    Tick shortest = kNever, longest = 0;
    PathTimes path; ///< sums; they add up to `latency`
    std::array<std::uint64_t, kHopBins> by_hops{};
    std::array<std::uint64_t, 256> by_supplier{}; ///< index: the protocol's machine type

    void add(const Access &a) {
        const Tick t = a.done - a.issued;
        ++done;
        latency += t;
        shortest = t < shortest ? t : shortest;
        longest = t > longest ? t : longest;
        for (unsigned i = 0; i < kSegments; ++i)
            path.in[i] += a.path.in[i];
        ++by_hops[a.hops < kHopBins ? a.hops : kHopBins - 1];
        ++by_supplier[a.supplier];
    }
};

class AccessStream : public Component {
  public:
    AccessStream(EventQueue &queue, std::string name, Port &port, LineSequence lines, unsigned in_flight,
                 AccessKind kind);

    /// The instruction address that all accesses of this stream carry, for prefetchers; 0: unknown.
    void as_instruction(Addr pc) { pc_ = pc; }
    /// Issues up to `accesses` more (kForever: until stop()), from tick t on. Not while it is running.
    static constexpr std::uint64_t kForever = ~std::uint64_t{0};
    void start(Tick t, std::uint64_t accesses);
    /// Issues no more; what is in flight completes.
    void stop() { left_ = 0; }
    /// Nothing in flight and nothing left to issue.
    bool idle() const { return in_flight_ == 0 && left_ == 0; }

    const StreamCounts &counts() const { return counts_; }
    /// Sets all counts to zero and logs each of the next `log` accesses.
    void reset_counts(std::size_t log = 0) {
        counts_ = {};
        log_.clear();
        log_.reserve(log);
        to_log_ = log;
    }
    /// The logged accesses, in the order of their completion.
    const std::vector<Access> &log() const { return log_; }
    /// Lines in one round of the sequence.
    std::uint64_t lines() const { return lines_.lines(); }

  private:
    static void wake_entry(Component &c, Tick now);
    static void done_entry(Access &a);
    void issue(Access &a, Tick now);

    Port &port_;
    LineSequence lines_;
    AccessKind kind_;
    Addr pc_ = 0;
    std::vector<Access> slots_;
    std::vector<Access *> free_;
    std::uint64_t left_ = 0;
    unsigned in_flight_ = 0;
    StreamCounts counts_;
    std::vector<Access> log_;
    std::size_t to_log_ = 0; ///< accesses that are still to be logged
};

} // namespace moscope
