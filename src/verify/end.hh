// SPDX-License-Identifier: BSD-3-Clause
// The state in which a path ends, in words: the states of the controllers, what waits and why, and the steps that change
// nothing, such as those of a controller that polls.
#pragma once

#include "verify/path.hh"

namespace moscope::verify {

struct End {
    nlohmann::json states = nlohmann::json::array(), messages = nlohmann::json::array();
    std::vector<std::string> idle; ///< transitions of steps that lead back to the state
};

template <class Machine> End end_of(Path<Machine> &path) {
    using State = typename Machine::State;
    End end;
    State s = path.state(), canonical = s;
    make_canonical<Machine>(canonical);
    std::vector<const char *> why(s.messages, "waits");
    std::vector<std::string> log;
    record().log = &log;
    try {
        path.each([&](const State &next, const Step &how, bool only_blocked) {
            State there = next;
            make_canonical<Machine>(there);
            if (only_blocked) {
                why[how.who] = "stalled";
            } else if (!how.asks() && std::memcmp(&there, &canonical, used_bytes(there)) == 0) {
                why[how.who] = "taken again and again";
                end.idle.insert(end.idle.end(), log.begin(), log.end());
            }
            log.clear();
        });
    } catch (const Violation &) { // of a step that leaves the state
    }
    record().log = nullptr;
    for (unsigned i = 0; i < s.messages; ++i) {
        const auto &m = s.slots[i];
        const bool asked = m.kind == RubyRequest::kKind || m.kind == SequencerMsg::kKind;
        const std::string place = m.to == kMemory ? "" : State::buffer_name(layout.id[m.to].type, m.buffer);
        const std::string what = m.aside ? "set aside until messages for line " + std::to_string(m.aside) + " are woken"
                                 : m.blocked ? "stalled"
                                             : why[i];
        end.messages.push_back(std::string(State::message_name(m)) + " for line " + std::to_string(m.line) +
                               (asked ? "" : " from " + name_of(m.from)) + " to " + name_of(m.to) +
                               (place.empty() ? "" : "." + place) + ": " + what);
    }
    for (unsigned c = 0; c < layout.total; ++c)
        for (Addr line = 1; line <= State::kLines; ++line)
            try {
                Machine::with(s, c, [&](auto &rules) {
                    end.states.push_back(name_of(c) + ": line " + std::to_string(line) + " in " +
                                         Machine::state_name(c, rules.state_of_(line)));
                });
            } catch (const Violation &) { // its getState does not apply to the line
            }
    return end;
}

} // namespace moscope::verify
