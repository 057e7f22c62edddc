// SPDX-License-Identifier: BSD-3-Clause
// What happens at probed instructions of programs (cpu/x86/decode/probes.hh), from JSON: a list of
//
//     {"file": a copy of the program's file on the host, "offset": of the instruction in the file, "name": text,
//      "does": "count": each time is an operation of the workload
//              "stop": the first time ends the step, with the marker `name`
//              "begin", "malloc", "calloc", "realloc", "aligned", "posix_memalign", "free": a program's first instruction, or an
//              allocator's function with such arguments (board/allocations.hh)
//              "see": nothing; the report says whether a core came there}
//
// and after these {"system_call": a number, or -1 for any, "name": text}: each such call of 64-bit code is an operation.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "board/allocations.hh"
#include "cpu/x86/decode/probes.hh"

namespace moscope {

class ProgramProbes {
  public:
    enum class Action : std::uint8_t { none, count, stop };

    /// UserError if a file cannot be read.
    ProgramProbes(const nlohmann::json &places, const PhysMap &phys);

    const std::shared_ptr<x86::Probes> &places() const { return places_; }
    /// A core has executed a probed instruction; returns what the board has to do.
    Action called(x86::Core &, unsigned probe, const x86::Probed &before);
    /// A core makes a system call; returns how many operations it counts as.
    unsigned system_called(std::uint64_t number);
    Allocations &allocations() { return allocations_; }
    const std::string &name(unsigned probe) const { return each_.at(probe).name; }
    /// Whether operations are the calls counted here; the program's own m5 workend marks then do not count.
    bool count_calls() const { return count_calls_; }
    /// [{"calls": number, "reached": bool}], in the order of the input.
    nlohmann::json report() const;

  private:
    struct Each {
        std::string name;
        Action action = Action::none;
        std::optional<Allocations::Role> role;
        std::atomic<std::uint64_t> calls = 0;
    };
    struct SystemCall {
        std::int64_t number; ///< -1: any
        std::atomic<std::uint64_t> calls = 0;
    };
    std::shared_ptr<x86::Probes> places_;
    std::deque<Each> each_;
    std::deque<SystemCall> system_calls_;
    bool count_calls_ = false;
    Allocations allocations_;
};

} // namespace moscope
