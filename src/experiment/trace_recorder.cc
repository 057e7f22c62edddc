// SPDX-License-Identifier: BSD-3-Clause
// The trace recorder. The network clones a message where the paths to its receivers diverge, and a clone has a number
// of its own. A delivered message is therefore matched with the message sent by number first, then by the fields that
// clones share.
#include "experiment/trace_recorder.hh"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "experiment/access_json.hh"
#include "experiment/message_name.hh"
#include "experiment/state_recorder.hh"
#include "machine/machine.hh"
#include "mem/ruby/runtime/protocol_support.hh"
#include "mem/ruby/runtime/requests.hh"

namespace moscope {

namespace {

using experiment::hex;
using experiment::name_in;
using experiment::structure_of_message;

} // namespace

TraceRecorder::TraceRecorder(Machine &machine) : machine_(machine) { machine_.set_trace(this); }

TraceRecorder::~TraceRecorder() { machine_.set_trace(nullptr); }

int TraceRecorder::add(const ruby::Message &m, ruby::NodeIndex from, Tick now, Tick ready, int cause) {
    const auto &protocol = machine_.protocol();
    MessageRecord r{m.uid, m.type, m.vnet, m.carries_data,       false, from, {}, m.dest_offset != 0, m.txn, m.line,
                    now,   ready,  cause,  protocol.describe(m), {},    {}};
    if (r.network)
        r.open = m.destination();
    messages_.push_back(std::move(r));
    const int id = static_cast<int>(messages_.size()) - 1;
    by_uid_[m.uid] = id;
    return id;
}

int TraceRecorder::message_of(const ruby::Message &m) {
    if (const auto i = by_uid_.find(m.uid); i != by_uid_.end())
        return i->second;
    if (m.dest_offset == 0)
        return kNone;
    for (std::size_t i = 0; i < messages_.size(); ++i) {
        const auto &r = messages_[i];
        if (r.network && r.from == m.source && r.vnet == m.vnet && r.type == m.type && r.txn == m.txn &&
            r.line == m.line && r.open.isSuperset(m.destination())) {
            by_uid_[m.uid] = static_cast<int>(i);
            return static_cast<int>(i);
        }
    }
    return kNone;
}

int TraceRecorder::cause_of(const ruby::AbstractController &c, Tick now, const ruby::Message *cause) {
    if (!cause)
        return kNone;
    const int id = message_of(*cause);
    if (cause->type != ruby::MemoryMsg::kType || (id != kNone && messages_[static_cast<std::size_t>(id)].from_memory))
        return id;
    // The machine, not a controller, makes DRAM's answers, so the recorder first sees them when they arrive.
    const int answer = add(*cause, c.node, now, now, id);
    auto &r = messages_[static_cast<std::size_t>(answer)];
    r.from_memory = true;
    r.carries_data = ruby::size_carries_data(static_cast<const ruby::MemoryMsg &>(*cause).MessageSize);
    r.deliveries.push_back({c.node, now});
    return answer;
}

Tick TraceRecorder::sent(const ruby::AbstractController &c, Tick now, const ruby::Message &m, Tick arrival,
                         const ruby::Message *cause) {
    const int why = cause_of(c, now, cause);
    const int id = add(m, c.node, now, arrival, why);
    if (m.dest_offset != 0)
        return 0;
    const bool of_core = m.type == ruby::RubyRequest::kType || m.type == ruby::SequencerMsg::kType;
    const Tick extra = of_core ? 0 : later(id, arrival);
    messages_[static_cast<std::size_t>(id)].deliveries.push_back({c.node, arrival + extra});
    return extra;
}

void TraceRecorder::delay(unsigned message, Tick extra, Tick after) {
    delays_[static_cast<int>(message)].push_back({extra, after});
    for (auto *c : machine_.controllers())
        for (const auto &b : c->buffers())
            if (b.vnet >= 0 && b.ordered) {
                ordered_.resize(std::max(ordered_.size(), static_cast<std::size_t>(b.vnet) + 1));
                ordered_[static_cast<std::size_t>(b.vnet)] = true;
            }
}

Tick TraceRecorder::later(int id, Tick arrival) const {
    const auto i = delays_.find(id);
    if (i == delays_.end())
        return 0;
    Tick extra = 0;
    for (const Delay &d : i->second)
        extra += arrival + extra > d.after ? d.extra : 0;
    return extra;
}

void TraceRecorder::hop(const ruby::Message &m, unsigned from, unsigned to, Tick depart, Tick arrive) {
    if (const int id = message_of(m); id != kNone)
        messages_[static_cast<std::size_t>(id)].hops.push_back({from, to, depart, arrive});
}

Tick TraceRecorder::delivered(const ruby::Message &m, ruby::NodeIndex to, Tick arrival) {
    const int id = message_of(m);
    if (id == kNone)
        return 0; // sent before the recorder was attached
    Tick extra = later(id, arrival);
    if (!delays_.empty() && m.vnet < ordered_.size() && ordered_[m.vnet]) {
        Tick &last = last_[{m.source, to, m.vnet}];
        last = std::max(last, arrival + extra);
        extra = last - arrival;
    }
    auto &r = messages_[static_cast<std::size_t>(id)];
    r.open.remove_index(to);
    r.deliveries.push_back({to, arrival + extra});
    return extra;
}

void TraceRecorder::transition(const ruby::AbstractController &c, Tick now, unsigned state, unsigned event, unsigned,
                               Addr line, const ruby::Message *cause) {
    const int id = cause_of(c, now, cause);
    // Not the declared next state: a controller that has neither an entry nor a TBE for the line cannot hold it.
    const unsigned next = machine_.controllers()[c.node]->state_of(line);
    transitions_.push_back({c.node, now, state, event, next, line, cause ? cause->txn : 0, id});
    if (states_)
        states_->after_transition(c.node, now, state, line, transitions_.size() - 1);
}

std::string TraceRecorder::controller_name(ruby::NodeIndex node) const {
    const auto *c = machine_.controllers()[node];
    return std::string(c->info->name) + "-" + std::to_string(c->version);
}

nlohmann::ordered_json TraceRecorder::access(TxnId txn) const {
    const auto i = access_of_.find(txn);
    return i == access_of_.end() ? nlohmann::ordered_json(nullptr) : nlohmann::ordered_json(i->second);
}

void TraceRecorder::write(nlohmann::ordered_json &document) const {
    using Json = nlohmann::ordered_json;
    auto number_or_null = [](int id) { return id == kNone ? Json(nullptr) : Json(id); };

    Json controllers = Json::array();
    for (const auto *c : machine_.controllers()) {
        Json j{
            {"name", controller_name(c->node)}, {"machine", c->info->name}, {"version", c->version}, {"chip", c->chip}};
        j["core"] = c->core == 0xffff ? Json(nullptr) : Json(c->core);
        controllers.push_back(std::move(j));
    }
    document["controllers"] = std::move(controllers);

    const auto &protocol = machine_.protocol();
    Json messages = Json::array();
    for (std::size_t i = 0; i < messages_.size(); ++i) {
        const auto &r = messages_[i];
        const bool memory = r.type == ruby::MemoryMsg::kType;
        const std::string memory_name = "DRAM-" + std::to_string(machine_.controllers()[r.from]->version);
        const std::string type = structure_of_message(protocol, r.type);
        Json j{{"id", i}, {"access", access(r.txn)}, {"type", name_in(r.fields, type)}, {"structure", type}};
        j["address"] = hex(r.line);
        j["from"] = r.from_memory ? memory_name : controller_name(r.from);
        j["network"] = r.network;
        j["vnet"] = r.network ? Json(r.vnet) : Json(nullptr);
        j["data"] = r.carries_data;
        j["sent"] = r.sent;
        j["ready"] = r.ready;
        Json deliveries = Json::array();
        for (const auto &d : r.deliveries)
            deliveries.push_back(
                {{"to", memory && !r.from_memory ? memory_name : controller_name(d.to)}, {"at", d.at}});
        j["deliveries"] = std::move(deliveries);
        Json hops = Json::array();
        for (const auto &h : r.hops)
            hops.push_back({{"from", h.from}, {"to", h.to}, {"depart", h.depart}, {"arrive", h.arrive}});
        j["hops"] = std::move(hops);
        j["cause"] = number_or_null(r.cause);
        j["fields"] = r.fields;
        messages.push_back(std::move(j));
    }
    document["messages"] = std::move(messages);

    Json transitions = Json::array();
    for (const auto &t : transitions_) {
        const auto *c = machine_.controllers()[t.controller];
        transitions.push_back({{"at", t.at},
                               {"controller", controller_name(t.controller)},
                               {"machine", c->info->name},
                               {"state", c->info->state[t.state].name},
                               {"event", c->info->event[t.event]},
                               {"next", c->info->state[t.next].name},
                               {"address", hex(t.line)},
                               {"access", access(t.txn)},
                               {"cause", number_or_null(t.cause)}});
    }
    document["transitions"] = std::move(transitions);
}

} // namespace moscope
