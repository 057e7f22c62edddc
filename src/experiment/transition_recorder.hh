// SPDX-License-Identifier: BSD-3-Clause
// Records every transition of the protocol in a few bytes and counts the deliveries of its network, while attached to
// a machine. It is for runs of many accesses that are compared with another engine's, where a full trace
// (trace_recorder.hh) would be too large.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "mem/ruby/runtime/controller.hh"
#include "mem/ruby/runtime/trace_hook.hh"

namespace moscope {

class Machine;

class TransitionLog : public ruby::TraceHook {
  public:
    explicit TransitionLog(Machine &machine);
    ~TransitionLog() override;

    /// Later transitions belong to the next step.
    void end_step() { ends_.push_back(entries_.size()); }

    /// Adds "transitions" (a flat list: controller, state, event, next state, line, and so on), "step_ends" (how many
    /// transitions there are at the end of each step), "controllers" (name, machine, version, in the order of their
    /// numbers), "names" (states and events of each machine) and "deliveries" (by machine and virtual network).
    void write(nlohmann::ordered_json &answer) const;

    void transition(const ruby::AbstractController &c, Tick now, unsigned state, unsigned event, unsigned next_state,
                    Addr line, const ruby::Message *cause) override;
    Tick sent(const ruby::AbstractController &, Tick, const ruby::Message &, Tick, const ruby::Message *) override {
        return 0;
    }
    void hop(const ruby::Message &, unsigned, unsigned, Tick, Tick) override {}
    Tick delivered(const ruby::Message &m, ruby::NodeIndex to, Tick arrival) override;

  private:
    struct Entry {
        std::uint16_t controller, state, event, next;
        Addr line;
    };

    Machine &machine_;
    std::vector<Entry> entries_;
    std::vector<std::size_t> ends_;
    std::map<std::pair<ruby::NodeIndex, unsigned>, std::uint64_t> deliveries_; ///< by receiver and network
};

} // namespace moscope
