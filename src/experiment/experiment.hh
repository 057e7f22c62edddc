// SPDX-License-Identifier: BSD-3-Clause
// Experiments on the memory side of a machine, for the commands latency, trace and bench: a request (JSON text)
// lists phases that run one after the other on one machine, each from quiet to quiet; the answer (JSON text)
// holds what each saw. Times in femtoseconds, host times
// in seconds of the simulating thread's processor time, or of the clock where there are several.
//
// request: {"phases": [PHASE..]}, PHASE one of
//   {"kind": "loads", "streams": [STREAM..], and either "warm" and "accesses" (per stream) or "warm_fs" and
//    "window_fs"}: streams of accesses. Only what follows the warm-up is counted. "statistics": true adds the
//    machine's. "trace": true (not with a window) records every message.
//    STREAM: {"core", "op", "in_flight", "ranges": [[base, bytes]..], "order": "ascending" | "pages" (ascending within
//    pages of 4 KiB, these in a random order) | "shuffled" | "random", "step", "skip": lines to begin after, "seed",
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

/// Called now and then while a run is under way; ends it by throwing.
using Poll = std::function<void()>;

/// Builds the machine and runs the request's phases. UserError if the request does not fit the machine.
std::string run_experiment(const std::string &description, const std::string &library, const std::string &request,
                           const MachineOptions &options, const Poll &poll);

} // namespace moscope
