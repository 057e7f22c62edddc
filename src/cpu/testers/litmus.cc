// SPDX-License-Identifier: BSD-3-Clause
// Rounds of a litmus test, phase by phase; a phase begins when every core has finished the one before.
#include "cpu/testers/litmus.hh"

#include <algorithm>
#include <numeric>

namespace moscope::testers {

namespace {
constexpr unsigned kSkews[] = {0, 8, 60, 300, 900}; // cycles; a miss is a few hundred
constexpr unsigned kDrains[] = {0, 0, 30, 300};
} // namespace

Litmus::Litmus(EventQueue &queue, const std::vector<Port *> &cores, const std::vector<Addr> &lines, LitmusTest test)
    : Component(queue, "litmus", [](Component &c, Tick now) { static_cast<Litmus &>(c).wake(now); }),
      test_(std::move(test)),
      rng_(test_.seed),
      core_order_(cores.size()),
      lines_(lines) {
    MOSCOPE_CHECK(test_.threads.size() <= cores.size() && test_.variables <= lines.size());
    for (unsigned i = 0; i < cores.size(); ++i) {
        cores_.push_back(std::make_unique<TsoCore>(queue, i, *cores[i], rng_.next()));
        cores_[i]->context = this;
        cores_[i]->on_finished = [](void *l, TsoCore &) { static_cast<Litmus *>(l)->core_finished(); };
    }
    std::iota(core_order_.begin(), core_order_.end(), 0u);
}

void Litmus::core_finished() {
    if (--waiting_ == 0)
        schedule_no_later_than(queue().now() + kTicksPerNs);
}

void Litmus::wake(Tick now) {
    // A phase without participants is skipped.
    while (!finished_ && waiting_ == 0) {
        switch (phase_) {
        case Phase::reset:
            harvest();
            if (round_++ == test_.rounds) {
                finished_ = true;
                return;
            }
            new_round();
            begin(now);
            phase_ = Phase::warm;
            break;
        case Phase::warm:
            begin(now);
            phase_ = Phase::run;
            break;
        case Phase::run:
            begin(now);
            phase_ = Phase::read;
            break;
        case Phase::read:
            collect();
            begin(now);
            phase_ = Phase::reset;
            break;
        }
    }
}

void Litmus::harvest() {
    // Readers hold the variables' last values in their registers.
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        for (unsigned v = 0; v < test_.variables; ++v)
            values_[g].push_back(cores_[groups_[g].reader]->reg(v));
        ++outcomes_[values_[g]];
        ++runs_;
    }
}

void Litmus::new_round() {
    shuffle(core_order_);
    shuffle(lines_);
    const std::size_t n = std::min(cores_.size() / test_.threads.size(),
                                   test_.variables ? lines_.size() / test_.variables : cores_.size());
    groups_.assign(n, {});
    values_.assign(n, {});
    std::size_t core = 0, line = 0;
    for (auto &g : groups_) {
        for (std::size_t t = 0; t < test_.threads.size(); ++t)
            g.cores.push_back(core_order_[core++]);
        const bool one_line = rng_.below(8) == 0; // variables beside each other
        const unsigned at = static_cast<unsigned>(rng_.below(kLineBytes / 4 - test_.variables)) * 4;
        for (unsigned v = 0; v < test_.variables; ++v)
            g.variables.emplace_back(lines_[line + (one_line ? 0 : v)] + at + (one_line ? 4 * v : 0));
        line += test_.variables;
        g.reader = g.cores[rng_.below(g.cores.size())];
    }
}

void Litmus::begin(Tick now) {
    const unsigned skew = kSkews[rng_.below(std::size(kSkews))];
    const unsigned drain = kDrains[rng_.below(std::size(kDrains))];
    // Count all programs before any of them starts: a program may end at once.
    std::vector<std::pair<unsigned, Tick>> starts;
    for (auto &g : groups_) {
        for (const unsigned c : g.cores)
            cores_[c]->clear();
        if (phase_ == Phase::reset || phase_ == Phase::read) {
            const unsigned who = phase_ == Phase::reset ? g.cores[rng_.below(g.cores.size())] : g.reader;
            for (unsigned v = 0; v < test_.variables; ++v)
                cores_[who]->add({phase_ == Phase::reset ? TsoOp::Kind::store : TsoOp::Kind::load,
                                  static_cast<std::uint8_t>(v), g.variables[v], 0});
            starts.emplace_back(who, now);
            continue;
        }
        for (std::size_t t = 0; t < g.cores.size(); ++t) {
            TsoCore &core = *cores_[g.cores[t]];
            if (phase_ == Phase::warm) {
                for (unsigned v = 0; v < test_.variables; ++v)
                    if (rng_.below(2))
                        core.add({TsoOp::Kind::load, 0, g.variables[v], 0});
                starts.emplace_back(g.cores[t], now);
                continue;
            }
            unsigned reg = 0;
            for (const LitmusOp &o : test_.threads[t]) {
                const bool reads = o.kind == TsoOp::Kind::load || o.kind == TsoOp::Kind::swap;
                core.add({o.kind, static_cast<std::uint8_t>(reads ? reg++ : 0),
                          o.kind == TsoOp::Kind::fence ? PhysAddr() : g.variables[o.variable], o.value});
            }
            starts.emplace_back(g.cores[t], now + static_cast<Tick>(rng_.below(skew + 1)) * kTicksPerNs / 2);
        }
    }
    waiting_ = static_cast<unsigned>(starts.size());
    for (const auto &[core, t] : starts)
        cores_[core]->start(t, phase_ == Phase::run ? drain : 0);
}

void Litmus::collect() {
    for (std::size_t g = 0; g < groups_.size(); ++g) {
        values_[g].assign(test_.registers, 0);
        for (std::size_t t = 0; t < test_.threads.size(); ++t) {
            unsigned reg = 0;
            for (const LitmusOp &o : test_.threads[t])
                if (o.kind == TsoOp::Kind::load || o.kind == TsoOp::Kind::swap)
                    values_[g][o.reg] = cores_[groups_[g].cores[t]]->reg(reg++);
        }
    }
}

} // namespace moscope::testers
