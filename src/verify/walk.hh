// SPDX-License-Identifier: BSD-3-Clause
// A random path through the states of a model that a machine can take, too: steps that a machine takes by itself come
// first. A test replays it on the engine, which has to take the same transitions (tests/protocol/test_verify.py).
#pragma once

#include <random>

#include "verify/path.hh"

namespace moscope::verify {

/// Cores make requests only in the first `most` steps. Up to ten times as many follow, to serve the last requests.
template <class Machine> nlohmann::json walk(std::uint64_t seed, unsigned most) {
    using State = typename Machine::State;
    std::mt19937_64 random(seed);
    auto start = std::make_unique<State>();
    std::memset(static_cast<void *>(start.get()), 0, sizeof(State));
    Machine::begin(*start);
    Path<Machine> path(*start);
    for (unsigned i = 0; i < 11 * most; ++i) {
        std::vector<State> others;
        State first;
        typename Path<Machine>::Turn turn;
        path.each([&](const State &next, const Step &how, bool only_blocked) {
            State canonical = next;
            make_canonical<Machine>(canonical);
            if (how.kind == Step::evict || (i >= most && how.asks()))
                return;
            if (!path.at_once(how))
                others.push_back(canonical);
            else if (!only_blocked && path.turn(how) < turn && std::memcmp(&next, &path.state(), used_bytes(next)) != 0)
                first = canonical, turn = path.turn(how);
        });
        if (turn == typename Path<Machine>::Turn{}) {
            if (others.empty())
                break;
            first = others[random() % others.size()];
        }
        path.follow([&](const State &canonical) { return std::memcmp(&canonical, &first, used_bytes(first)) == 0; });
    }
    return path.steps();
}

} // namespace moscope::verify
