// SPDX-License-Identifier: BSD-3-Clause
// The random tester: every core and every device keeps several accesses in flight to a small pool of lines,
// with false sharing, and each value read is checked against the Reference. It drives ports only and knows no
// protocol. Issuers are components, not fibers, and nothing is allocated per access. Ticks are femtoseconds.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/rng.hh"
#include "cpu/testers/reference.hh"
#include "mem/port.hh"
#include "sim/event_queue.hh"

namespace moscope::testers {

constexpr unsigned kMostInFlight = 16;

struct RandomTesterParams {
    std::uint64_t ops = 100'000;
    std::uint64_t seed = 1;
    unsigned in_flight = 3; ///< accesses of one core at a time: 1 to kMostInFlight
    unsigned locations_per_line = 5;
    unsigned hot_lines = 6;       ///< half of the accesses go to this many lines, which change now and then
    unsigned think_cycles = 12;   ///< longest pause of a core between two accesses
    unsigned max_violations = 10; ///< reported; then the run ends
    // Shares of the accesses of a core, per thousand; 0 leaves a kind out. What remains are loads.
    unsigned fetches = 60, stores = 250, rmws = 70, flushes = 15, nt_stores = 20, uncached_loads = 15;
    /// Cores write only whole lines past the caches.
    bool whole_line_nt_stores = true;
    bool inline_hits = true;          ///< also use the ports' inline path
    unsigned device_gap_cycles = 200; ///< longest pause of a device
    /// A device writes a whole line while no other issuer writes it, and two devices never use a line at the same time.
    bool gentle_devices = false;
};

struct RandomTesterCounts {
    std::uint64_t issued = 0, finished = 0;
    std::array<std::uint64_t, kAccessKinds> by_kind{};
    std::uint64_t checked_loads = 0; ///< loads, fetches, and device reads
    std::uint64_t inline_hits = 0;
    std::uint64_t device_reads = 0, device_writes = 0;
    std::uint64_t violations = 0;
};

/// An access that the tester issued, for a replay.
struct IssuedAccess {
    Agent who = 0;
    AccessKind kind = AccessKind::load;
    std::uint16_t size = 0;
    Addr addr = 0;
    Tick issued = 0;
};

class RandomTester {
  public:
    /// lines: the pool, line addresses of zeroed memory. devices may be empty.
    RandomTester(EventQueue &queue, const std::vector<Port *> &cores, const std::vector<Port *> &devices,
                 const std::vector<Addr> &lines, RandomTesterParams params);
    ~RandomTester();

    void start(Tick t);
    /// All accesses issued have come back and no more will be issued.
    bool finished() const;
    const RandomTesterCounts &counts() const { return counts_; }
    const std::vector<std::string> &violations() const { return violations_; }
    const Reference &reference() const { return ref_; }
    /// Compares a line's bytes at the end of the run.
    void check_final(unsigned line, const std::byte *bytes);
    /// From now on keeps a record of the accesses issued. Those that hit inline are left out.
    void record() { recording_ = true; }
    const std::vector<IssuedAccess> &recorded() const { return recorded_; }
    /// The number in the record of the access with this transaction (in flight, or the last one of its slot); -1: none.
    int number_of(TxnId txn) const;
    /// Called when a recorded access is done.
    std::function<void(TxnId, int number)> on_done;
    /// More about a line, for the text of a violation.
    std::function<std::string(Addr line)> context;
    /// Counts and reports a violation that only the caller can see.
    void violation(std::string text);

  private:
    class Issuer;
    friend class Issuer;

    bool may_issue() const { return counts_.issued < p_.ops && counts_.violations < p_.max_violations; }
    unsigned pick_line(Rng &rng);
    /// A tick before which no access in flight was issued, and no further one will be.
    Tick oldest() const;
    bool can_write(unsigned location);
    void wrong_value(unsigned location, std::string text);

    RandomTesterParams p_;
    EventQueue &queue_;
    Rng rng_;
    Reference ref_;
    RandomTesterCounts counts_;
    bool recording_ = false;
    std::vector<IssuedAccess> recorded_;
    std::vector<std::string> violations_;
    std::vector<std::unique_ptr<Issuer>> issuers_;
    std::vector<unsigned> hot_;
    std::vector<std::uint8_t> line_in_device_; ///< accesses of devices in flight, per line
    std::uint64_t next_change_ = 0;
    Tick known_oldest_ = 0;
};

} // namespace moscope::testers
