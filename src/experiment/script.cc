// SPDX-License-Identifier: BSD-3-Clause
#include "experiment/script.hh"

#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>
#include <memory>
#include <optional>
#include <vector>

#include <nlohmann/json.hpp>

#include "schema/config_reader.hh"

#include "experiment/access_json.hh"
#include "experiment/access_request.hh"
#include "experiment/state_recorder.hh"
#include "experiment/trace_recorder.hh"
#include "experiment/transition_recorder.hh"

namespace moscope {

namespace {

using experiment::access_json;
using experiment::address_of;
using experiment::core_of;
using experiment::kind_of;

using Json = nlohmann::ordered_json;

class Script;

/// One access of a script, with what it moves.
struct ScriptAccess {
    Access access;
    unsigned core = 0;
    unsigned step = 0;
    std::uint64_t value = 0;
    unsigned number = 0;
    bool added = false;
    Script *script = nullptr;
};

/// Issues accesses at one tick.
struct Issue : Component {
    Issue(EventQueue &queue, std::string name, Script &script, std::vector<ScriptAccess *> accesses)
        : Component(queue, std::move(name), wake), script_(script), accesses_(std::move(accesses)) {}

    static void wake(Component &c, Tick now);

    Script &script_;
    std::vector<ScriptAccess *> accesses_;
};

class Script {
  public:
    Script(PacedMachine &paced, const ConfigReader &phase) : paced_(paced), phase_(phase) {}
    Script(const Script &) = delete;
    Script &operator=(const Script &) = delete;
    ~Script() {
        paced_.look = nullptr;
        paced_.looks.clear();
        std::move(issues_.begin(), issues_.end(), std::back_inserter(paced_.kept));
    }

    Json run();
    void done(ScriptAccess &a);

  private:
    void describe();
    ScriptAccess &add(const ConfigReader &j);
    void attach();
    void look_at(Tick t);
    Tick issue_at(Tick t, std::vector<ScriptAccess *> together);
    void to_the_end();
    void write(Json &answer) const;

    friend struct Issue;
    PacedMachine &paced_;
    const ConfigReader &phase_;
    std::deque<ScriptAccess> accesses_;
    std::vector<std::vector<ScriptAccess *>> steps_;
    std::vector<Addr> lines_;
    std::vector<std::unique_ptr<Issue>> issues_;
    std::optional<TraceRecorder> recorder_;
    std::optional<TransitionLog> transitions_;
    std::optional<StateRecorder> states_;
    Json looks_ = Json::array();
    unsigned step_ = 0; ///< the one at work
    unsigned open_ = 0; ///< accesses that are not done: those of the step, and added ones that are issued
};

void Issue::wake(Component &c, Tick now) {
    auto &self = static_cast<Issue &>(c);
    for (ScriptAccess *a : self.accesses_) {
        if (a->added) {
            a->step = self.script_.step_;
            ++self.script_.open_;
        }
        self.script_.paced_.machine.port(a->core).issue(a->access, now);
    }
}

ScriptAccess &Script::add(const ConfigReader &j) {
    auto &s = accesses_.emplace_back();
    s.core = core_of(paced_.machine, j);
    s.step = static_cast<unsigned>(steps_.size()) - 1;
    s.number = static_cast<unsigned>(accesses_.size()) - 1;
    s.script = this;
    const Addr at = j.get<Addr>("address");
    auto &a = s.access;
    a.addr = PhysAddr(address_of(paced_.machine, at, 1));
    a.size = static_cast<std::uint16_t>(std::min<unsigned>(sizeof s.value, kLineBytes - line_offset(at)));
    a.kind = kind_of(j.get<std::string>("op"));
    // Stores write their own number, counted from 1, so that a later load shows whose value it saw.
    s.value = a.kind == AccessKind::store || a.kind == AccessKind::nt_store ? s.number + 1 : 0;
    a.data = a.kind == AccessKind::flush || a.kind == AccessKind::rmw ? nullptr : &s.value;
    a.rmw = [](void *context, void *bytes) {
        auto &self = *static_cast<ScriptAccess *>(context);
        std::memcpy(&self.value, bytes, self.access.size);
        ++self.value;
        std::memcpy(bytes, &self.value, self.access.size);
    };
    a.rmw_context = &s;
    a.owner = &s;
    a.on_done = [](Access &x) {
        auto &self = *static_cast<ScriptAccess *>(x.owner);
        self.script->done(self);
    };
    if (std::find(lines_.begin(), lines_.end(), line_of(at)) == lines_.end())
        lines_.push_back(line_of(at));
    return s;
}

void Script::done(ScriptAccess &s) {
    --open_;
    if (recorder_)
        recorder_->name_transaction(s.access.txn, s.number);
    const AccessKind k = s.access.kind;
    if (states_ && (k == AccessKind::store || k == AccessKind::nt_store || k == AccessKind::rmw))
        states_->written(s.core, s.access.done, s.access.addr.value, s.access.size, s.value, s.number,
                         recorder_->transitions());
}

/// The accesses: those of the steps first, so that added ones do not change their numbers.
void Script::describe() {
    for (const ConfigReader &step : phase_.at("steps").list()) {
        steps_.emplace_back();
        for (const ConfigReader &j : step.list())
            steps_.back().push_back(&add(j));
    }
    if (!phase_.has("added"))
        return;
    for (const ConfigReader &j : phase_.at("added").list()) {
        ScriptAccess &a = add(j);
        a.added = true;
        issue_at(paced_.edge_after(std::max(j.get<Tick>("at"), paced_.machine.now())), {&a});
    }
}

void Script::attach() {
    if (phase_.has("trace") && phase_.at("trace").value() == "transitions")
        transitions_.emplace(paced_.machine);
    else if (phase_.get_or("trace", true))
        recorder_.emplace(paced_.machine);
    if (recorder_ && phase_.has("delays"))
        for (const ConfigReader &j : phase_.at("delays").list())
            recorder_->delay(j.get<unsigned>("message"), j.get<Tick>("extra_fs"), j.get_or("after", Tick{0}));
    if (recorder_ && phase_.get_or("states", false)) {
        states_.emplace(paced_.machine, lines_);
        recorder_->set_states(&*states_);
    }
    if (phase_.has("looks")) {
        const auto ticks = phase_.at("looks").as<std::vector<Tick>>();
        paced_.looks.assign(ticks.begin(), ticks.end());
        paced_.look = [this](Tick t) { look_at(t); };
    }
}

void Script::look_at(Tick t) {
    looks_.push_back(
        {{"at", t}, {"held", held_of(paced_.machine, lines_)}, {"bytes", bytes_of(paced_.machine, lines_)}});
}

Tick Script::issue_at(Tick t, std::vector<ScriptAccess *> together) {
    issues_.push_back(std::make_unique<Issue>(paced_.machine.queue(), "script" + std::to_string(issues_.size()), *this,
                                              std::move(together)));
    issues_.back()->schedule(t);
    return t;
}

void Script::to_the_end() {
    paced_.run_while(PacedMachine::kStep, [&] { return open_ > 0; });
    paced_.settle();
}

Json Script::run() {
    if (paced_.machine.processes().size() > 1)
        throw UserError("experiment: the steps of a script begin on all chips at once: expected no threads");
    describe();
    attach();
    const std::size_t added = issues_.size();
    for (step_ = 0; step_ < steps_.size(); ++step_) {
        open_ += static_cast<unsigned>(steps_[step_].size());
        issue_at(paced_.start_time(), steps_[step_]);
        to_the_end();
        if (transitions_)
            transitions_->end_step();
    }
    step_ = static_cast<unsigned>(steps_.size()) - 1;
    for (std::size_t i = 0; i < added; ++i)
        if (const Tick t = issues_[i]->next_wake(); t != kNever) {
            paced_.run_until(t + 1);
            to_the_end();
        }
    if (!paced_.looks.empty())
        paced_.run_until(paced_.looks.back() + 1);
    Json answer;
    write(answer);
    return answer;
}

void Script::write(Json &answer) const {
    answer["accesses"] = Json::array();
    for (const auto &s : accesses_) {
        Json j{{"id", s.number}, {"step", s.step}, {"core", s.core}};
        j.update(access_json(paced_.machine, s.access));
        j["value"] = s.access.kind == AccessKind::flush ? Json(nullptr) : Json(s.value);
        answer["accesses"].push_back(std::move(j));
    }
    if (recorder_)
        recorder_->write(answer);
    if (transitions_)
        transitions_->write(answer);
    if (states_)
        states_->write(answer);
    if (!looks_.empty())
        answer["looks"] = looks_;
}

} // namespace

Json run_script(PacedMachine &paced, const ConfigReader &phase) {
    Script script(paced, phase);
    return script.run();
}

} // namespace moscope
