// SPDX-License-Identifier: BSD-3-Clause
// The phase "script" of an experiment (experiment.hh): accesses of cores and devices in steps, and further accesses at
// given ticks. On request, it delays messages, checks values, and reads the machine's state at given ticks. Times in
// femtoseconds.
//
// phase {"steps": [[{"core" or "device", "op", "address", "size": bytes (default: 8, or to the end of the line), "at":
//     time after the beginning of the step (default: 0), "number": its number in "message_delays" (default: its
//     position)}..]..]: the next step begins when nothing is under way;
//   "absolute": true: the one step begins at tick 0;
//   "added": accesses as those of a step; each is issued at the first edge of the core's clock after its tick "at";
//   "trace": true (every message; the default) | "transitions" (only transitions: transition_recorder.hh) | false;
//   "states": true records each change of state, "looks": [ticks] reads the state at these;
//   "check": true checks values (value_check.hh) and ends at the first wrong one, or at a protocol error;
//   "delays": [{"message": its number in the trace, "extra_fs", "after"}..]: delays messages (TraceRecorder::delay);
//   "message_delays": as message_delays.hh reads them, on a machine with random delays (network.jitter_fs);
//   "list_delays": true lists the delays of messages}.
// answer {"accesses": [{"id", "step", "core", "device", "op", "address", "size", "issued", "done" (null: an error came first),
//   and what access_json.hh has}..], "violations", "protocol_error": text if one ended the run, "message_delays", "changes",
//   "looks", and what a trace has}.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "experiment/message_delays.hh"
#include "experiment/paced_machine.hh"
#include "experiment/script_access.hh"
#include "experiment/state_recorder.hh"
#include "experiment/trace_recorder.hh"
#include "experiment/transition_recorder.hh"
#include "experiment/value_check.hh"
#include "schema/config_reader.hh"

namespace moscope {

class Script {
  public:
    using Json = nlohmann::ordered_json;

    Script(PacedMachine &paced, const ConfigReader &phase) : paced_(paced), phase_(phase) {}
    Script(const Script &) = delete;
    Script &operator=(const Script &) = delete;
    ~Script();

    Json run();

  private:
    /// Issues accesses, in the order of their ticks.
    struct Issue : Component {
        Issue(EventQueue &queue, std::string name, Script &script, std::vector<ScriptAccess *> accesses, Tick start)
            : Component(queue, std::move(name), wake), script_(script), accesses_(std::move(accesses)), start_(start) {}
        static void wake(Component &c, Tick now);
        Script &script_;
        std::vector<ScriptAccess *> accesses_;
        Tick start_;
        std::size_t next_ = 0;
    };

    void describe();
    ScriptAccess &add(const ConfigReader &j);
    void choose_issuer(ScriptAccess &s, const ConfigReader &j) const;
    void attach();
    void attach_check();
    void attach_delays();
    void look_at(Tick t);
    void issue_at(Tick t, std::vector<ScriptAccess *> together);
    void issue(ScriptAccess &s, Tick now);
    static void modify(void *access, void *bytes);
    void done(ScriptAccess &s);
    int number_of(TxnId txn) const;
    ruby::NodeIndex node_of(const ScriptAccess &s) const;
    bool failed() const { return check_ && check_->failed(); }
    void to_the_end();
    void play();
    Json account(const ScriptAccess &s) const;
    void write(Json &answer) const;

    PacedMachine &paced_;
    const ConfigReader phase_;
    std::deque<ScriptAccess> accesses_;
    std::vector<std::vector<ScriptAccess *>> steps_;
    std::vector<Addr> lines_;
    std::vector<std::unique_ptr<Issue>> issues_;
    std::optional<TraceRecorder> recorder_;
    std::optional<TransitionLog> transitions_;
    std::optional<StateRecorder> states_;
    std::optional<experiment::MessageDelays> delays_;
    std::optional<experiment::ValueCheck> check_;
    std::optional<std::string> error_; ///< the protocol error that ended a checked script
    Json looks_ = Json::array();
    unsigned step_ = 0; ///< the present step
    unsigned left_ = 0; ///< accesses that are not done: those of the step, and added ones that are issued
    std::vector<ScriptAccess *> flying_; ///< issued and not done
};

} // namespace moscope
