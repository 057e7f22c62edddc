// SPDX-License-Identifier: BSD-3-Clause
// Experiments on the memory side of a machine, for the commands latency, trace and bench: a request (JSON text)
// lists phases that run one after the other on one machine; each begins and ends with nothing under way. The answer
// (JSON text) holds the results of each. Times in femtoseconds; host times in seconds: the processor time of the
// simulating thread, or wall-clock time where there are several.
//
// request: {"phases": [PHASE..]}, PHASE one of
//   {"kind": "loads", "streams": [STREAM..], and either "warm" and "accesses" (per stream) or "warm_fs" and
//    "window_fs"}: streams of accesses. Only what follows the warm-up is counted. "statistics": true adds the
//    machine's statistics. "trace": true (not with a window) records every message.
//    STREAM: {"core", "op", "in_flight", "ranges": [[base, bytes]..], "order": "ascending" | "pages" (ascending within
//    pages of 4 KiB, these in a random order) | "shuffled" | "random", "step", "skip": lines to skip at first, "seed",
//    "log": number of accesses that the answer lists one by one}
//   {"kind": "script", "steps": [[{"core", "op", "address"}..]..], and what script.hh lists}: the accesses of a step are
//    issued at the same time, the next step when the machine is quiet again.
//   {"kind": "hits", "core", "base", "bytes", "loads"}: one core that loads from its first-level cache.
// answer: {"phases": [..]}, the same order.
#pragma once

#include <functional>
#include <string>

#include "machine/machine.hh"

namespace moscope {

/// Called from time to time during a run; may throw to end the run.
using Poll = std::function<void()>;

/// Builds the machine and runs the request's phases. UserError if the request does not fit the machine.
std::string run_experiment(const std::string &description, const std::string &library, const std::string &request,
                           const MachineOptions &options, const Poll &poll);

} // namespace moscope
