// SPDX-License-Identifier: BSD-3-Clause
#include "experiment/transition_recorder.hh"

#include <nlohmann/json.hpp>

#include "machine/machine.hh"

namespace moscope {

TransitionLog::TransitionLog(Machine &machine) : machine_(machine) { machine_.set_trace(this); }

TransitionLog::~TransitionLog() { machine_.set_trace(nullptr); }

void TransitionLog::transition(const ruby::AbstractController &c, Tick, unsigned state, unsigned event,
                               unsigned next_state, Addr line, const ruby::Message *) {
    entries_.push_back({static_cast<std::uint16_t>(c.node), static_cast<std::uint16_t>(state),
                        static_cast<std::uint16_t>(event), static_cast<std::uint16_t>(next_state), line});
}

Tick TransitionLog::delivered(const ruby::Message &m, ruby::NodeIndex to, Tick) {
    ++deliveries_[{to, m.vnet}];
    return 0;
}

void TransitionLog::write(nlohmann::ordered_json &answer) const {
    using Json = nlohmann::ordered_json;
    Json controllers = Json::array();
    Json names = Json::object();
    for (const auto *c : machine_.controllers()) {
        controllers.push_back({{"machine", c->info->name}, {"version", c->version}});
        if (names.contains(c->info->name))
            continue;
        Json &own = names[c->info->name] = {{"states", Json::array()}, {"events", Json::array()}};
        for (unsigned s = 0; s < c->info->states; ++s)
            own["states"].push_back(c->info->state[s].name);
        for (unsigned e = 0; e < c->info->events; ++e)
            own["events"].push_back(c->info->event[e]);
    }
    answer["controllers"] = std::move(controllers);
    answer["names"] = std::move(names);
    Json flat = Json::array();
    flat.get_ref<Json::array_t &>().reserve(5 * entries_.size());
    for (const auto &e : entries_)
        for (const std::uint64_t word : {std::uint64_t{e.controller}, std::uint64_t{e.state}, std::uint64_t{e.event},
                                         std::uint64_t{e.next}, std::uint64_t{e.line}})
            flat.push_back(word);
    answer["transitions"] = std::move(flat);
    answer["step_ends"] = ends_;
    Json deliveries = Json::array();
    for (const auto &[where, count] : deliveries_)
        deliveries.push_back({{"controller", where.first}, {"vnet", where.second}, {"count", count}});
    answer["deliveries"] = std::move(deliveries);
}

} // namespace moscope
