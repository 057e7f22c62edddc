// SPDX-License-Identifier: BSD-3-Clause
// Checks that renamed states have renamed successors, at the states of random walks, before an exploration relies on
// it. A protocol that computes with numbers of nodes may treat one chip differently from another.
#pragma once

#include <algorithm>
#include <functional>
#include <random>

#include "verify/expand.hh"
#include "verify/visited.hh"

namespace moscope::verify {

/// The sorted hashes of all successors' canonical forms; none if a step ends in a violation. Calls each(canonical
/// form).
template <class Machine>
std::vector<std::pair<std::uint64_t, std::uint32_t>>
successor_hashes(Expansion<Machine> &expansion, const typename Machine::State &s,
                 const std::function<void(const typename Machine::State &)> &each) {
    using State = typename Machine::State;
    std::vector<std::pair<std::uint64_t, std::uint32_t>> found;
    const std::function<void(const State &, const Step &, bool)> add = [&](const State &next, const Step &, bool) {
        State canonical;
        copy_used(canonical, next);
        make_canonical<Machine>(canonical);
        const Hash h = hash_of(&canonical, used_bytes(canonical));
        found.emplace_back(h.high, h.low);
        each(canonical);
    };
    try {
        expansion.successors(s, add);
    } catch (const Violation &) {
        found.clear(); // how far it came depends on the order
    }
    std::ranges::sort(found);
    found.erase(std::ranges::unique(found).begin(), found.end());
    return found;
}

/// Renamings that are tried at a state; if there are more, as many of them at random.
inline constexpr std::size_t kRenamingsTried = 24;

/// A renaming that makes a difference, as text; empty if none was found. The canonical form of a state with many caches
/// takes long, so the search stops when over() holds.
template <class Machine>
std::string asymmetry(const typename Machine::State &start, std::uint64_t seed, unsigned states,
                      const std::function<bool()> &over) {
    using State = typename Machine::State;
    std::mt19937_64 random(seed);
    Expansion<Machine> expansion;
    auto now = std::make_unique<State>(start);
    for (unsigned i = 0; i < states; ++i) {
        std::vector<State> next;
        const auto here = successor_hashes<Machine>(expansion, *now, [&](const State &s) { next.push_back(s); });
        for (const auto &line : Machine::kLineRenamings)
            for (std::size_t t = 0; t < std::min(std::size(Machine::kRenamings), kRenamingsTried); ++t) {
                if (over())
                    return "";
                const bool all = std::size(Machine::kRenamings) <= kRenamingsTried;
                const std::size_t r = all ? t : random() % std::size(Machine::kRenamings);
                const auto &controller = Machine::kRenamings[r];
                auto renamed = std::make_unique<State>();
                auto from = std::make_unique<State>(*now);
                rename_front<Machine>(*renamed, *from, {controller, line}, inverse_renamings<Machine>[r].data(),
                                      nullptr);
                rename_messages(*renamed, *from, {controller, line});
                if (successor_hashes<Machine>(expansion, *renamed, [](const State &) {}) == here)
                    continue;
                std::string names;
                for (unsigned c = 0; c < layout.total; ++c)
                    if (controller[c] != c)
                        names += (names.empty() ? "" : ", ") + name_of(c) + " as " + name_of(controller[c]);
                return names.empty() ? "the lines" : names;
            }
        if (here.empty() || i % 100 == 99)
            *now = start;
        else
            *now = next[random() % next.size()];
    }
    return "";
}

} // namespace moscope::verify
