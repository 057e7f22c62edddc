// SPDX-License-Identifier: BSD-3-Clause
// Runs a litmus test many times on TSO cores placed at random, several copies in parallel on disjoint groups of
// cores and lines, and counts the outcomes. Each round sets the variables to 0, warms random caches
// with them, runs the threads with random skews, and reads the variables back. Ticks are femtoseconds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "base/rng.hh"
#include "cpu/testers/tso_core.hh"

namespace moscope::testers {

struct LitmusOp {
    TsoOp::Kind kind = TsoOp::Kind::fence;
    unsigned variable = 0;
    unsigned reg = 0; ///< numbered across all threads of the test
    std::uint32_t value = 0;
};

struct LitmusTest {
    std::vector<std::vector<LitmusOp>> threads;
    unsigned variables = 0;
    unsigned registers = 0;
    unsigned rounds = 100;
    std::uint64_t seed = 1;
};

class Litmus : public Component {
  public:
    /// The values of the registers, then those of the variables at the end; and how often they occurred.
    using Outcomes = std::map<std::vector<std::uint32_t>, std::uint64_t>;

    /// lines: the pool in which variables are placed, with room for at least one copy of the test.
    Litmus(EventQueue &queue, const std::vector<Port *> &cores, const std::vector<Addr> &lines, LitmusTest test);

    void start(Tick t) { schedule(t); }
    bool finished() const { return finished_; }
    std::uint64_t runs() const { return runs_; }
    const Outcomes &outcomes() const { return outcomes_; }

  private:
    enum class Phase { reset, warm, run, read };
    struct Group {
        std::vector<unsigned> cores; ///< one per thread
        std::vector<PhysAddr> variables;
        unsigned reader = 0;
    };

    void wake(Tick now);
    void new_round();
    void begin(Tick now);
    void collect();
    void harvest();
    void core_finished();
    template <class T> void shuffle(std::vector<T> &v) {
        for (std::size_t i = v.size(); i > 1; --i)
            std::swap(v[i - 1], v[rng_.below(i)]);
    }

    LitmusTest test_;
    Rng rng_;
    std::vector<std::unique_ptr<TsoCore>> cores_;
    std::vector<unsigned> core_order_;
    std::vector<Addr> lines_;
    std::vector<Group> groups_;
    std::vector<std::vector<std::uint32_t>> values_; ///< per group
    Phase phase_ = Phase::reset;
    unsigned round_ = 0, waiting_ = 0;
    bool finished_ = false;
    std::uint64_t runs_ = 0;
    Outcomes outcomes_;
};

} // namespace moscope::testers
