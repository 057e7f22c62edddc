// SPDX-License-Identifier: BSD-3-Clause
// Tests of a protocol on a whole machine, for `moscope protocol check` and the test suite: JSON text in and out.
// All take the elaborated machine and a protocol's library; those that check values need the checking library.
// Times in femtoseconds, host times in seconds.
//
// run_random_test: request {"ops", "seed", "in_flight", "hot_lines", "think_cycles", "lines_per_node",
//   "strided_lines_per_node", "max_violations", "flush": bool, "nt_store": "none" | "whole_line" | "any",
//   "uncached_load": bool, "fetch": bool, "devices": "none" | "gentle" (whole-line writes, no two devices at one line) | "any",
//   "inline_hits": bool, "record": bool, with "delays_max_fs" (message delays from a hash: message_delays.hh) and "record_last":
//   how many accesses}, all optional; answer {"ops", "checked_loads", "by_kind", "inline_hits", "device_reads",
//   "device_writes", "sim_fs", "seconds", "loads_per_second", "reached", "declared", "unreached":
//   ["machine.state.event"..], "violations": [text..]}, and "protocol_error": text if one ended the run, "stopped": true if its
//   poll did; if it failed while recording, "record": {"first": number of the first, "accesses": [[core or 0x8000 +
//   device, kind, address, bytes, tick]..]}.
// run_litmus: request {"threads": [[{"op": "load" | "store" | "swap" | "add" | "fence", "var", "reg", "value"}
//   ..]..], "vars", "regs", "rounds", "seed"}; answer {"runs", "outcomes": [{"values", "count"}..]}, the values
//   being those of the registers, then those of the variables at the end.
// run_contention: request {"kind": "store" | "rmw", "node", "until_fs"}; answer {"writes": [per core], "chips":
//   [per core], "longest_fs": [per core], "final": value}.
// run_mix: request {"steps", "seed", "private_bytes", "shared_bytes"}; answer {"hashes", "finished_fs",
//   "statistics": the machine's}.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "machine/machine.hh"

namespace moscope {

/// A poll throws it to end a random test, which then answers with the results so far.
struct TestStopped {};

/// Called from time to time during a run, with the number of accesses done so far; may throw to end the run.
using TestPoll = std::function<void(std::uint64_t done)>;

std::string run_random_test(const std::string &machine, const std::string &library, const std::string &request,
                            MachineOptions options, const TestPoll &poll);
std::string run_litmus(const std::string &machine, const std::string &library, const std::string &request,
                       MachineOptions options, const TestPoll &poll);
std::string run_contention(const std::string &machine, const std::string &library, const std::string &request,
                           MachineOptions options, const TestPoll &poll);
std::string run_mix(const std::string &machine, const std::string &library, const std::string &request,
                    MachineOptions options, const TestPoll &poll);

namespace testing {

/// Lines of every node: `near` adjacent ones, and `strided` ones so far apart that they fall into the same set of any
/// cache. UserError if a node's memory is too small.
std::vector<Addr> pool_of_lines(const Machine &m, unsigned near, unsigned strided);

/// Runs in slices until finished() holds, and then until the machine is quiet. ProtocolError if nothing moves.
void run_to_end(Machine &m, const std::function<bool()> &finished, const std::function<std::uint64_t()> &done,
                const TestPoll &poll);

std::vector<Port *> core_ports(Machine &m);

} // namespace testing

} // namespace moscope
