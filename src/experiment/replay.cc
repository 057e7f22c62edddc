// SPDX-License-Identifier: BSD-3-Clause
#include "experiment/replay.hh"

#include <cstring>

namespace moscope::experiment {

namespace {

constexpr int kInitial = testers::Reference::kInitial;

bool is_write(AccessKind k) { return k == AccessKind::store || k == AccessKind::nt_store || k == AccessKind::rmw; }

} // namespace

Replay::Replay(Machine &machine, const ConfigReader &request, const TestPoll &poll)
    : machine_(machine), request_(request), poll_(poll), messages_at_rest_(machine.messages()) {}

Replay::Entry &Replay::add(const ConfigReader &j, unsigned step) {
    Entry &e = entries_.emplace_back();
    e.replay = this;
    e.number = static_cast<unsigned>(entries_.size()) - 1;
    e.step = step;
    e.in_delays = j.get_or("number", static_cast<int>(e.number));
    if (j.has("device")) {
        if (machine_.dma_ports() == 0)
            j.at("device").refuse("there are no devices", "a protocol with a DMA machine");
        e.device = j.at("device").integer(0u, machine_.dma_ports() - 1);
    } else {
        e.core = j.at("core", "a core's number").integer(0u, machine_.cores() - 1);
    }
    if (j.has("at"))
        e.at = j.at("at").integer(Tick{0}, kNever / 2);
    const Addr at = j.get<Addr>("address");
    Access &a = e.access;
    if (at >= machine_.memory_bytes())
        j.at("address").refuse(hex(at) + " is outside memory", "an address below " + hex(machine_.memory_bytes()));
    a.addr = PhysAddr(at);
    a.kind = kind_of(j.get<std::string>("op"));
    a.size = static_cast<std::uint16_t>(std::min<unsigned>(sizeof e.value, kLineBytes - line_offset(at)));
    if (j.has("size"))
        a.size =
            static_cast<std::uint16_t>(j.at("size").integer(1u, static_cast<unsigned>(kLineBytes - line_offset(at))));
    a.data = a.kind == AccessKind::flush || a.kind == AccessKind::rmw ? nullptr : e.bytes.data();
    a.rmw = modify;
    a.rmw_context = &e;
    a.owner = &e;
    a.on_done = finished;
    return e;
}

Port &Replay::port_of(const Entry &e) { return e.device ? machine_.dma_port(*e.device) : machine_.port(*e.core); }

void Replay::issue(Entry &e, Tick now) {
    e.issued = true;
    e.bytes.fill(std::byte{0});
    if (check_) {
        if (!check_->begin(e.number, now, e.bytes.data())) {
            e.skipped = true;
            --left_;
            return;
        }
    } else if (is_write(e.access.kind)) {
        // Stores write their own number, counted from 1.
        e.value = e.number + 1;
        std::memcpy(e.bytes.data(), &e.value, sizeof e.value);
    }
    open_.push_back(&e);
    port_of(e).issue(e.access, now);
}

void Replay::modify(void *entry, void *bytes) {
    Entry &e = *static_cast<Entry *>(entry);
    if (e.replay->check_) {
        e.replay->check_->modify(e.number, bytes, e.access.issued, e.replay->machine_.queue().now());
        return;
    }
    const std::size_t size = std::min<std::size_t>(e.access.size, sizeof e.value);
    e.value = 0;
    std::memcpy(&e.value, bytes, size);
    ++e.value;
    std::memcpy(bytes, &e.value, size);
}

/// Bytes move when an access is done, so the last that was done before it has written what an access finds.
void Replay::note_values(Entry &e) {
    const Access &a = e.access;
    if (a.kind == AccessKind::flush)
        return;
    auto [line, fresh] = writers_.try_emplace(line_of(a.addr.value));
    if (fresh)
        line->second.fill(kInitial);
    int *of_bytes = &line->second[line_offset(a.addr.value)];
    if (a.kind != AccessKind::store && a.kind != AccessKind::nt_store)
        e.written_by = *std::max_element(of_bytes, of_bytes + a.size);
    if (is_write(a.kind))
        std::fill(of_bytes, of_bytes + a.size, static_cast<int>(e.number));
}

void Replay::finished(Access &a) {
    Entry &e = *static_cast<Entry *>(a.owner);
    Replay &self = *e.replay;
    --self.left_;
    std::erase(self.open_, &e);
    if (self.recorder_)
        self.recorder_->name_transaction(a.txn, e.number);
    if (self.delays_ && a.txn)
        self.delays_->name_transaction(a.txn, e.in_delays);
    if (self.check_) {
        self.check_->done(e.number, a, e.bytes.data());
        e.written_by = self.check_->found(e.number);
    } else {
        if (a.kind == AccessKind::load || a.kind == AccessKind::fetch || a.kind == AccessKind::uncached_load)
            std::memcpy(&e.value, e.bytes.data(), std::min<std::size_t>(a.size, sizeof e.value));
        self.note_values(e);
    }
}

void Replay::Step::wake(Component &c, Tick now) {
    auto &self = static_cast<Step &>(c);
    while (self.next_ < self.accesses_.size() && self.start_ + self.accesses_[self.next_]->at <= now)
        self.replay_.issue(*self.accesses_[self.next_++], now);
    if (self.next_ < self.accesses_.size())
        self.schedule(self.start_ + self.accesses_[self.next_]->at);
}

int Replay::number_of(TxnId txn) const {
    for (const Entry *e : open_)
        if (e->access.txn == txn)
            return e->in_delays;
    return MessageDelays::kUnknown;
}

Json Replay::account(const Entry &e) {
    Json j{{"id", e.number}, {"step", e.step}, {"core", nullptr}};
    if (e.core)
        j["core"] = *e.core;
    if (e.device)
        j["device"] = *e.device;
    j["size"] = e.access.size;
    if (e.access.done == kNever) { // not begun, or an error came first
        j.update({{"op", op_of(e.access.kind)}, {"address", hex(e.access.addr.value)}});
        j["issued"] = e.issued && !e.skipped ? Json(e.access.issued) : Json(nullptr);
        j["done"] = nullptr;
        return j;
    }
    j.update(access_json(machine_, e.access));
    j["value"] = e.access.kind == AccessKind::flush || check_ ? Json(nullptr) : Json(e.value);
    j["value_of"] = e.written_by ? Json(*e.written_by) : Json(nullptr);
    return j;
}

void Replay::run_until_done() {
    for (unsigned looks = 1; left_ > 0 && !failed(); ++looks) {
        now_ = std::max(now_, machine_.now()) + (left_ > 100 ? kSlice : kLook);
        machine_.run(now_);
        if (poll_ && looks % 4096 == 0)
            poll_(entries_.size() - left_);
    }
}

/// Until nothing is under way. What a protocol leaves lying about on purpose is given kSettle to go away.
void Replay::settle() {
    const Tick start = now_;
    while (machine_.in_flight() > 0 || (machine_.messages() != messages_at_rest_ && now_ - start < kSettle)) {
        now_ += kLook;
        machine_.run(now_);
    }
}

void Replay::run_steps(Json &answer) {
    std::vector<std::vector<Entry *>> steps;
    for (const ConfigReader &step : request_.at("steps").list()) {
        auto &together = steps.emplace_back();
        for (const ConfigReader &j : step.list())
            together.push_back(&add(j, static_cast<unsigned>(steps.size()) - 1));
        std::stable_sort(together.begin(), together.end(), [](auto *a, auto *b) { return a->at < b->at; });
    }
    if (request_.get_or("check", false)) {
        if (!machine_.checks_data())
            throw UserError("experiment: values can be checked only with a protocol's checking library");
        std::vector<ValueCheck::Planned> planned;
        for (const Entry &e : entries_) {
            const auto who = static_cast<testers::Agent>(e.device ? testers::kFirstDevice + *e.device : *e.core);
            planned.push_back({e.access.kind, e.access.addr.value, e.access.size, who});
        }
        check_.emplace(planned);
    }
    if (request_.has("delays") || request_.get_or("list_delays", false)) {
        delays_.emplace(machine_, [this](TxnId txn) { return number_of(txn); });
        if (request_.has("delays"))
            delays_->read(request_.at("delays"));
        if (request_.get_or("list_delays", false))
            delays_->keep_list();
    }
    const bool absolute = request_.get_or("absolute", false);
    answer["starts"] = Json::array();
    for (auto &together : steps) {
        const Clock clock = machine_.port(0).core_clock_;
        now_ = std::max(now_, machine_.now());
        const Tick t = absolute ? 0 : clock.edge(clock.edge_at_or_after(now_ + 1));
        answer["starts"].push_back(t);
        left_ = static_cast<unsigned>(together.size());
        if (together.empty())
            continue;
        const Tick first = t + together.front()->at;
        steps_.push_back(std::make_unique<Step>(machine_.queue(), "step" + std::to_string(steps_.size()), *this,
                                                std::move(together)));
        steps_.back()->start_ = t;
        steps_.back()->schedule(first);
        run_until_done();
        if (failed())
            return;
        settle();
    }
    if (check_)
        check_->check_end(machine_);
}

Json Replay::run() {
    if (request_.get_or("trace", false))
        recorder_.emplace(machine_);
    Json answer;
    try {
        run_steps(answer);
    } catch (const ProtocolError &error) {
        answer["protocol_error"] = error.what();
        for (const Entry *e : open_) // what it did until then is its own all the same
            if (recorder_ && e->access.txn)
                recorder_->name_transaction(e->access.txn, e->number);
    }
    answer["accesses"] = Json::array();
    for (const Entry &e : entries_)
        answer["accesses"].push_back(account(e));
    if (check_)
        answer["violations"] = check_->violations();
    if (delays_ && request_.get_or("list_delays", false))
        answer["delays"] = delays_->list();
    if (recorder_)
        recorder_->write(answer);
    recorder_.reset();
    delays_.reset();
    return answer;
}

} // namespace moscope::experiment

namespace moscope {

std::string run_replay(const std::string &machine, const std::string &library, const std::string &request,
                       MachineOptions options, const TestPoll &poll) {
    const auto asked = ConfigReader::parse(request, "replay", "a request as experiment/replay.hh has it");
    Machine m(machine, library, options);
    return experiment::Replay(m, ConfigReader(asked, "replay"), poll).run().dump();
}

} // namespace moscope
