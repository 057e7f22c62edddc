// SPDX-License-Identifier: BSD-3-Clause
#include "experiment/state_recorder.hh"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "experiment/access_json.hh"
#include "machine/machine.hh"

namespace moscope {

namespace {

using experiment::hex;

using Json = nlohmann::ordered_json;
using ruby::LineView;

/// Whether the controller can hold the line: a cache can hold any, a home those of its node.
bool concerns(const Machine &machine, const ruby::AbstractController &c, Addr line) {
    return c.role == ruby::Role::cache ||
           (c.role == ruby::Role::home && line - machine.node_base(c.chip) < machine.node_bytes(c.chip));
}

LineView view_of(const Machine &machine, ruby::NodeIndex node, Addr line) {
    LineView view;
    machine.controllers()[node]->view(line, view);
    return view;
}

std::string name_of(const Machine &machine, ruby::NodeIndex node) {
    const auto *c = machine.controllers()[node];
    return std::string(c->info->name) + "-" + std::to_string(c->version);
}

std::string hex_bytes(const std::byte *bytes, unsigned n) {
    std::string text;
    for (unsigned i = 0; i < n; ++i) {
        char two[3];
        std::snprintf(two, sizeof two, "%02x", static_cast<unsigned>(bytes[i]));
        text += two;
    }
    return text;
}

const LineView::Way *way_in(const LineView &view, const char *array) {
    const auto i =
        std::find_if(view.ways.begin(), view.ways.end(), [array](const auto &w) { return w.array == array; });
    return i == view.ways.end() ? nullptr : &*i;
}

Json tbe_of(const LineView &view) { return view.has_tbe ? Json(view.tbe) : Json(nullptr); }

} // namespace

StateRecorder::StateRecorder(Machine &machine, const std::vector<Addr> &lines)
    : machine_(machine), touched_(machine.controllers().size()) {
    for (const auto *c : machine.controllers())
        for (const Addr line : lines)
            if (concerns(machine, *c, line)) {
                Held &held = held_[{c->node, line}];
                held.first = held.last = view_of(machine, c->node, line);
            }
}

Json StateRecorder::change(Tick at, const Json &transition, ruby::NodeIndex node, Addr line, const char *kind) const {
    return {{"at", at},
            {"transition", transition},
            {"controller", name_of(machine_, node)},
            {"line", hex(line)},
            {"kind", kind}};
}

void StateRecorder::after_transition(ruby::NodeIndex node, Tick at, unsigned state, Addr line, std::size_t number) {
    auto [i, unknown] = held_.try_emplace({node, line_of(line)});
    if (unknown)
        i->second.first.state = i->second.last.state = state;
    if (!i->second.touched) {
        i->second.touched = true;
        touched_[node].push_back(line_of(line));
    }
    for (const Addr touched : touched_[node])
        compare(node, touched, held_[{node, touched}], at, number);
}

void StateRecorder::compare(ruby::NodeIndex node, Addr line, Held &held, Tick at, std::size_t number) {
    const LineView now = view_of(machine_, node, line);
    for (const auto &w : held.last.ways)
        if (!way_in(now, w.array)) {
            Json j = change(at, number, node, line, "way");
            j["array"] = w.array;
            j["way"] = nullptr;
            j["replaced"] = nullptr;
            changes_.push_back(std::move(j));
        }
    for (const auto &w : now.ways) {
        const auto *before = way_in(held.last, w.array);
        if (before && before->set == w.set && before->way == w.way)
            continue;
        Json j = change(at, number, node, line, "way");
        j["array"] = w.array;
        j["way"] = {w.set, w.way};
        const auto [there, first] = last_in_.try_emplace({node, w.array, w.set, w.way}, line);
        j["replaced"] = first || there->second == line ? Json(nullptr) : Json(hex(there->second));
        there->second = line;
        changes_.push_back(std::move(j));
    }
    if (now.state != held.last.state || now.entry != held.last.entry) {
        Json j = change(at, number, node, line, "entry");
        j["state"] = machine_.controllers()[node]->info->state[now.state].name;
        j["fields"] = now.entry;
        changes_.push_back(std::move(j));
    }
    if (now.has_tbe != held.last.has_tbe || now.tbe != held.last.tbe) {
        Json j = change(at, number, node, line, "tbe");
        j["fields"] = tbe_of(now);
        changes_.push_back(std::move(j));
    }
    held.last = now;
}

void StateRecorder::written(ruby::NodeIndex node, Tick at, Addr address, const std::byte *bytes, unsigned size,
                            unsigned access, std::size_t number) {
    Json j = change(at, number, node, line_of(address), "bytes");
    j["offset"] = line_offset(address);
    j["bytes"] = hex_bytes(machine_.checks_data() ? bytes : machine_.memory() + address, size);
    j["access"] = access;
    changes_.push_back(std::move(j));
}

/// Adds the states of the touched lines before the first change.
void StateRecorder::put_first(Json &changes) const {
    for (const auto &[where, held] : held_) {
        const auto [node, line] = where;
        if (!held.touched)
            continue;
        Json entry = change(0, nullptr, node, line, "entry");
        entry["state"] = machine_.controllers()[node]->info->state[held.first.state].name;
        entry["fields"] = held.first.entry;
        changes.push_back(std::move(entry));
    }
}

void StateRecorder::write(Json &answer) const {
    Json changes = Json::array();
    put_first(changes);
    changes.insert(changes.end(), changes_.begin(), changes_.end());
    answer["changes"] = std::move(changes);
}

Json held_of(Machine &machine, const std::vector<Addr> &lines) {
    Json all = Json::array();
    for (const auto *c : machine.controllers())
        for (const Addr line : lines) {
            if (!concerns(machine, *c, line))
                continue;
            const LineView view = view_of(machine, c->node, line);
            Json ways = Json::object();
            for (const auto &w : view.ways)
                ways[w.array] = {w.set, w.way};
            all.push_back({{"controller", name_of(machine, c->node)},
                           {"line", hex(line)},
                           {"state", c->info->state[view.state].name},
                           {"fields", view.entry},
                           {"tbe", tbe_of(view)},
                           {"ways", std::move(ways)}});
        }
    return all;
}

Json bytes_of(Machine &machine, const std::vector<Addr> &lines) {
    Json all = Json::array();
    for (const Addr line : lines)
        all.push_back({{"line", hex(line)}, {"bytes", hex_bytes(machine.memory() + line, kLineBytes)}});
    return all;
}

} // namespace moscope
