// SPDX-License-Identifier: BSD-3-Clause
#include "experiment/script.hh"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "experiment/access_json.hh"
#include "experiment/access_request.hh"

namespace moscope {

using experiment::MessageDelays;
using experiment::ValueCheck;

namespace {

/// How many bytes of the access its value fills.
std::size_t value_bytes(const ScriptAccess &s) { return std::min<std::size_t>(s.access.size, sizeof s.value); }

} // namespace

Script::~Script() {
    paced_.look = nullptr;
    paced_.looks.clear();
    std::move(issues_.begin(), issues_.end(), std::back_inserter(paced_.kept));
}

void Script::Issue::wake(Component &c, Tick now) {
    auto &self = static_cast<Issue &>(c);
    const auto next = [&] { return self.start_ + self.accesses_[self.next_]->at; };
    while (self.next_ < self.accesses_.size() && next() <= now)
        self.script_.issue(*self.accesses_[self.next_++], now);
    if (self.next_ < self.accesses_.size())
        self.schedule(next());
}

void Script::choose_issuer(ScriptAccess &s, const ConfigReader &j) const {
    if (!j.has("device")) {
        s.core = experiment::core_of(paced_.machine, j);
        return;
    }
    if (paced_.machine.dma_ports() == 0)
        j.at("device").refuse("there are no devices", "a protocol with a DMA machine");
    s.device = j.at("device").integer(0u, paced_.machine.dma_ports() - 1);
}

ScriptAccess &Script::add(const ConfigReader &j) {
    auto &s = accesses_.emplace_back();
    s.script = this;
    s.number = static_cast<unsigned>(accesses_.size()) - 1;
    s.step = static_cast<unsigned>(steps_.size()) - 1;
    s.in_delays = j.get_or("number", static_cast<int>(s.number));
    choose_issuer(s, j);
    const Addr at = experiment::address_of(paced_.machine, j.get<Addr>("address"), 1);
    const auto rest = static_cast<unsigned>(kLineBytes - line_offset(at));
    auto &a = s.access;
    a.addr = PhysAddr(at);
    a.kind = experiment::kind_of(j.get<std::string>("op"));
    s.sized = j.has("size");
    a.size =
        static_cast<std::uint16_t>(s.sized ? j.at("size").integer(1u, rest) : std::min<unsigned>(sizeof s.value, rest));
    a.data = a.kind == AccessKind::flush || a.kind == AccessKind::rmw ? nullptr : s.bytes.data();
    a.rmw = modify;
    a.rmw_context = a.owner = &s;
    a.on_done = [](Access &x) {
        auto &self = *static_cast<ScriptAccess *>(x.owner);
        self.script->done(self);
    };
    if (std::find(lines_.begin(), lines_.end(), line_of(at)) == lines_.end())
        lines_.push_back(line_of(at));
    return s;
}

/// Reads the accesses: those of the steps first, so that added ones do not change their numbers.
void Script::describe() {
    for (const ConfigReader &step : phase_.at("steps").list()) {
        auto &together = steps_.emplace_back();
        for (const ConfigReader &j : step.list()) {
            together.push_back(&add(j));
            if (j.has("at"))
                together.back()->at = j.at("at").integer(Tick{0}, kNever / 2);
        }
        std::stable_sort(together.begin(), together.end(), [](auto *a, auto *b) { return a->at < b->at; });
    }
    if (!phase_.has("added"))
        return;
    for (const ConfigReader &j : phase_.at("added").list()) {
        ScriptAccess &s = add(j);
        s.added = true;
        issue_at(paced_.edge_after(std::max(j.get<Tick>("at"), paced_.machine.now())), {&s});
    }
}

void Script::attach_check() {
    if (!paced_.machine.checks_data())
        throw UserError("experiment: the protocol library cannot check values: expected the checking library");
    std::vector<ValueCheck::Planned> planned;
    for (const ScriptAccess &s : accesses_) {
        const auto who = static_cast<testers::Agent>(s.device ? testers::kFirstDevice + *s.device : *s.core);
        planned.push_back({s.access.kind, s.access.addr.value, s.access.size, who});
    }
    check_.emplace(planned);
}

void Script::attach_delays() {
    const bool listed = phase_.get_or("list_delays", false);
    if (!listed && !phase_.has("message_delays"))
        return;
    delays_.emplace(paced_.machine, [this](TxnId txn) { return number_of(txn); });
    if (phase_.has("message_delays"))
        delays_->read(phase_.at("message_delays"));
    if (listed)
        delays_->keep_list();
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
    if (phase_.get_or("check", false))
        attach_check();
    attach_delays();
}

void Script::look_at(Tick t) {
    looks_.push_back(
        {{"at", t}, {"held", held_of(paced_.machine, lines_)}, {"bytes", bytes_of(paced_.machine, lines_)}});
}

void Script::issue_at(Tick t, std::vector<ScriptAccess *> together) {
    if (together.empty())
        return;
    const Tick first = t + together.front()->at;
    issues_.push_back(std::make_unique<Issue>(paced_.machine.queue(), "script" + std::to_string(issues_.size()), *this,
                                              std::move(together), t));
    issues_.back()->schedule(first);
}

void Script::issue(ScriptAccess &s, Tick now) {
    s.issued = true;
    if (s.added) {
        s.step = step_;
        ++left_;
    }
    if (check_) {
        if (!check_->begin(s.number, now, s.bytes.data())) {
            s.skipped = true;
            --left_;
            return;
        }
    } else if (s.writes() && s.access.kind != AccessKind::rmw) {
        // Stores write their own number, counted from 1, so that a later load shows whose value it saw.
        s.value = s.number + 1;
        std::memcpy(s.bytes.data(), &s.value, sizeof s.value);
    }
    flying_.push_back(&s);
    (s.device ? paced_.machine.dma_port(*s.device) : paced_.machine.port(*s.core)).issue(s.access, now);
}

void Script::modify(void *access, void *bytes) {
    auto &s = *static_cast<ScriptAccess *>(access);
    if (auto &check = s.script->check_) {
        check->modify(s.number, bytes, s.access.issued, s.script->paced_.machine.queue().now());
    } else {
        std::memcpy(&s.value, bytes, value_bytes(s));
        ++s.value;
        std::memcpy(bytes, &s.value, value_bytes(s));
    }
    std::memcpy(s.bytes.data(), bytes, s.access.size);
}

void Script::done(ScriptAccess &s) {
    --left_;
    std::erase(flying_, &s);
    if (recorder_)
        recorder_->name_transaction(s.access.txn, s.number);
    if (delays_ && s.access.txn)
        delays_->name_transaction(s.access.txn, s.in_delays);
    if (states_ && s.writes())
        states_->written(node_of(s), s.access.done, s.access.addr.value, s.bytes.data(), s.access.size, s.number,
                         recorder_->transitions());
    if (check_)
        check_->done(s.number, s.access, s.bytes.data());
    else if (!s.writes() && s.access.kind != AccessKind::flush)
        std::memcpy(&s.value, s.bytes.data(), value_bytes(s));
}

int Script::number_of(TxnId txn) const {
    const auto i = std::find_if(flying_.begin(), flying_.end(), [txn](auto *s) { return s->access.txn == txn; });
    return i == flying_.end() ? MessageDelays::kUnknown : (*i)->in_delays;
}

/// The controller that the access begins at.
ruby::NodeIndex Script::node_of(const ScriptAccess &s) const {
    const auto &all = paced_.machine.controllers();
    const auto i = std::find_if(all.begin(), all.end(), [&s](const auto *c) {
        return s.device ? c->role == ruby::Role::dma && static_cast<unsigned>(c->version) == *s.device
                        : c->core == *s.core;
    });
    return (*i)->node;
}

void Script::to_the_end() {
    // A checked script may have many thousand accesses: coarse slices while many are left.
    paced_.run_while(PacedMachine::kSlice, [&] { return check_ && left_ > 100 && !failed(); });
    paced_.run_while(PacedMachine::kStep, [&] { return left_ > 0 && !failed(); });
    if (!failed())
        paced_.settle();
}

void Script::play() {
    const std::size_t added = issues_.size();
    const bool absolute = phase_.get_or("absolute", false);
    for (step_ = 0; step_ < steps_.size() && !failed(); ++step_) {
        left_ += static_cast<unsigned>(steps_[step_].size());
        issue_at(absolute ? 0 : paced_.start_time(), steps_[step_]);
        to_the_end();
        if (transitions_)
            transitions_->end_step();
    }
    step_ = static_cast<unsigned>(steps_.size()) - 1;
    for (std::size_t i = 0; i < added && !failed(); ++i)
        if (const Tick t = issues_[i]->next_wake(); t != kNever) {
            paced_.run_until(t + 1);
            to_the_end();
        }
    if (check_ && !failed())
        check_->check_end(paced_.machine);
    if (!paced_.looks.empty() && !failed())
        paced_.run_until(paced_.looks.back() + 1);
}

Script::Json Script::run() {
    if (paced_.machine.processes().size() > 1)
        throw UserError("experiment: the steps of a script begin on all chips at once: expected no threads");
    describe();
    attach();
    try {
        play();
    } catch (const ProtocolError &error) {
        if (!check_)
            throw;
        error_ = error.what();
        for (const ScriptAccess *s : flying_) // the trace names unfinished accesses, too
            if (recorder_ && s->access.txn)
                recorder_->name_transaction(s->access.txn, s->number);
    }
    Json answer;
    write(answer);
    return answer;
}

Script::Json Script::account(const ScriptAccess &s) const {
    Json j{{"id", s.number}, {"step", s.step}, {"core", nullptr}};
    if (s.core)
        j["core"] = *s.core;
    if (s.device)
        j["device"] = *s.device;
    if (s.sized)
        j["size"] = s.access.size;
    if (s.access.done == kNever) { // not begun, or an error came first
        j.update({{"op", experiment::op_of(s.access.kind)}, {"address", experiment::hex(s.access.addr.value)}});
        j["issued"] = s.issued && !s.skipped ? Json(s.access.issued) : Json(nullptr);
        j["done"] = nullptr;
        return j;
    }
    j.update(experiment::access_json(paced_.machine, s.access));
    j["value"] = s.access.kind == AccessKind::flush || check_ ? Json(nullptr) : Json(s.value);
    if (check_) {
        const auto found = check_->found(s.number);
        j["value_of"] = found ? Json(*found) : Json(nullptr);
    }
    return j;
}

void Script::write(Json &answer) const {
    answer["accesses"] = Json::array();
    for (const auto &s : accesses_)
        answer["accesses"].push_back(account(s));
    if (error_)
        answer["protocol_error"] = *error_;
    if (check_)
        answer["violations"] = check_->violations();
    if (delays_ && phase_.get_or("list_delays", false))
        answer["message_delays"] = delays_->list();
    if (recorder_)
        recorder_->write(answer);
    if (transitions_)
        transitions_->write(answer);
    if (states_)
        states_->write(answer);
    if (!looks_.empty())
        answer["looks"] = looks_;
}

} // namespace moscope
