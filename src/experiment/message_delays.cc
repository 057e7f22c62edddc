// SPDX-License-Identifier: BSD-3-Clause
#include "experiment/message_delays.hh"

#include <nlohmann/json.hpp>

#include "experiment/message_name.hh"
#include "machine/machine.hh"
#include "schema/config_reader.hh"

namespace moscope::experiment {

namespace {

/// Mixes a word into a hash (the finaliser of splitmix64).
std::uint64_t mixed(std::uint64_t h, std::uint64_t word) {
    h = (h ^ word) + 0x9e3779b97f4a7c15ull;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    return h ^ (h >> 31);
}

std::string key_of(int access, const std::string &message, const std::string &to) {
    return std::to_string(access) + " " + message + " " + to;
}

} // namespace

MessageDelays::MessageDelays(Machine &machine, NumberOf number_of)
    : machine_(machine), number_of_(std::move(number_of)) {
    machine_.set_delays(this);
}

MessageDelays::~MessageDelays() { machine_.set_delays(nullptr); }

void MessageDelays::read(const ConfigReader &from) {
    from.only({"seed", "max_fs", "list"});
    from.read("seed", seed_);
    if (from.has("max_fs"))
        most_ = from.at("max_fs").integer(Tick{0}, kNever / 2);
    if (!from.has("list"))
        return;
    names_ = true;
    for (const ConfigReader &d : from.at("list").list()) {
        const std::string key = key_of(d.get<int>("access"), d.get<std::string>("message"), d.get<std::string>("to"));
        chosen_[key + " " + std::to_string(d.get_or("n", 0u))] = d.at("fs").integer(Tick{0}, kNever / 2);
    }
}

int MessageDelays::access_of(TxnId txn) {
    const auto known = access_of_.find(txn);
    if (known != access_of_.end())
        return known->second;
    const int number = number_of_(txn);
    if (number != kUnknown)
        access_of_[txn] = number;
    return number;
}

std::string MessageDelays::controller_name(ruby::NodeIndex node) const {
    const auto *c = machine_.controllers()[node];
    return std::string(c->info->name) + "-" + std::to_string(c->version);
}

Tick MessageDelays::delay(const ruby::Message &m, ruby::NodeIndex to) {
    const int access = access_of(m.txn);
    Tick t = 0;
    if (most_) {
        std::uint64_t h = seed_;
        for (const std::uint64_t word : {static_cast<std::uint64_t>(access), std::uint64_t{m.source}, std::uint64_t{to},
                                         std::uint64_t{m.vnet}, std::uint64_t{m.type}})
            h = mixed(h, word);
        h = mixed(h, alike_[h]++);
        t = static_cast<Tick>(h % (static_cast<std::uint64_t>(most_) + 1));
    }
    if (!names_)
        return t;
    const std::string message = name_of_message(machine_.protocol(), m), target = controller_name(to);
    const std::string key = key_of(access, message, target);
    const unsigned n = alike_named_[key]++;
    if (const auto chosen = chosen_.find(key + " " + std::to_string(n)); chosen != chosen_.end())
        t = chosen->second;
    if (keep_ && t)
        kept_.push_back({access, message, target, n, t});
    return t;
}

nlohmann::ordered_json MessageDelays::list() const {
    auto out = nlohmann::ordered_json::array();
    for (const Delay &d : kept_)
        out.push_back({{"access", d.access}, {"message", d.message}, {"to", d.to}, {"n", d.n}, {"fs", d.fs}});
    return out;
}

} // namespace moscope::experiment
