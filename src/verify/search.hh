// SPDX-License-Identifier: BSD-3-Clause
// Breadth-first exploration of all states of a model. It checks
// - in every state: at most one core may write a line, and then no other may read it; something can happen while
//   anything waits;
// - in every step: the protocol's assertions hold, there is a transition, and a load reads the last value written (or,
//   if not `strict`, one that was current while the load waited);
// - at the end: from every state, without further requests, all cores can get what they asked for.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <thread>

#include <nlohmann/json.hpp>

#include "verify/end.hh"
#include "verify/layer.hh"
#include "verify/steps.hh"
#include "verify/symmetry.hh"
#include "verify/visited.hh"
#include "verify/walk.hh"

namespace moscope::verify {

struct Limits {
    std::size_t memory = std::size_t{4} << 30; ///< bytes
    double seconds = 1e18;
    unsigned threads = 1;
};

template <class Machine> class Search {
  public:
    using State = typename Machine::State;

    /// Whether the violation is a StaleLoad, which may be allowed without `strict`.
    bool stale_load() const { return stale_load_; }
    explicit Search(Limits limits) : limits_(limits), workers_(std::max(1u, limits.threads)) {}

    nlohmann::json run() {
        auto start = std::make_unique<State>();
        initial(*start);
        nlohmann::json answer;
        try {
            const double most = std::min(kSymmetrySeconds, limits_.seconds / 10);
            if (const std::string why = asymmetry<Machine>(*start, 1, kTried, [&] { return elapsed() > most; });
                !why.empty())
                return {{"asymmetric", why}};
        } catch (const TooLarge &v) {
            return {{"too_large", v.what()}};
        }
        bool fresh;
        const std::uint32_t first = visited_.insert(hash_of(start.get(), used_bytes(*start)), Visited::kNone, fresh);
        now_.blocks.resize(1);
        now_.blocks[0].push(start.get(), used_bytes(*start), first);
        for (std::size_t open = 1; open && !stop_; progress(open)) {
            layer(open);
            open = now_.size();
            depth_ += !stop_ && open;
        }
        if (!too_large_.empty())
            return {{"too_large", too_large_}};
        for (Worker &w : workers_)
            steps_.add(std::move(w.steps));
        complete_ = !stop_;
        try {
            if (complete_ && !steps_.dropped())
                check_liveness();
        } catch (const std::bad_alloc &) {
            steps_.drop();
        }
        if (!violation_.empty() || fault_) {
            answer["steps"] = path(at_, first, answer);
            answer["violation"] = violation_;
        }
        answer["seconds"] = elapsed();
        answer["complete"] = complete_;
        answer["liveness"] = complete_ && !steps_.dropped();
        if (limit_)
            answer["limit"] = limit_;
        answer["states"] = visited_.size();
        answer["depth"] = depth_;
        std::uint64_t taken = 0;
        for (const Worker &w : workers_)
            taken += w.taken;
        answer["steps_taken"] = taken;
        answer["memory"] = std::max(most_bytes_, bytes());
        answer["state_bytes"] = sizeof(State);
        answer["renamings"] = std::size(Machine::kRenamings) * std::size(Machine::kLineRenamings);
        answer["reached"] = reached();
        return answer;
    }

  private:
    /// What is wrong with a state as such; empty: nothing.
    using Fault = std::string (*)(State &);

    /// The data of one thread.
    struct Worker {
        Expansion<Machine> expansion;
        std::vector<Block> next = std::vector<Block>(1);
        Steps::List steps;
        std::uint64_t taken = 0;
        std::uint32_t at = 0;  ///< the state at hand
        Fault fault = nullptr; ///< a violation is of this state; null: of a step that leaves it
    };

    void initial(State &s) {
        std::memset(static_cast<void *>(&s), 0, sizeof s);
        Machine::begin(s);
        make_canonical<Machine>(s); // memory has age 0: the first value
    }

    /// Explores the states of now_, and replaces them by the new states found. The threads share the blocks of now_.
    void layer(std::size_t open) {
        next_block_ = 0;
        std::vector<std::thread> others;
        if (open >= kShared)
            for (std::size_t i = 1; i < workers_.size(); ++i)
                others.emplace_back([this, i] { work(workers_[i]); });
        work(workers_[0]);
        for (std::thread &t : others)
            t.join();
        now_.blocks.clear();
        for (Worker &w : workers_) {
            for (Block &b : w.next)
                if (b.count())
                    now_.blocks.push_back(std::move(b));
            w.next.assign(1, Block{});
        }
        open_bytes_ = 0;
        for (const Block &b : now_.blocks)
            open_bytes_ += b.bytes();
    }

    void work(Worker &w) {
        try {
            for (std::size_t i; !stop_ && (i = next_block_++) < now_.blocks.size();) {
                block(w, now_.blocks[i]);
                open_bytes_ -= now_.blocks[i].bytes();
                now_.blocks[i].clear();
                if (full())
                    stop_ = true;
            }
        } catch (const Violation &v) {
            const std::lock_guard guard(lock_);
            if (violation_.empty()) {
                violation_ = v.what(), at_ = w.at, fault_ = w.fault;
                stale_load_ = dynamic_cast<const StaleLoad *>(&v) != nullptr;
            }
            stop_ = true;
        } catch (const TooLarge &v) {
            const std::lock_guard guard(lock_);
            too_large_ = v.what();
            stop_ = true;
        } catch (const TooManyStates &) {
            end_at("states");
        } catch (const std::bad_alloc &) {
            // The host has less memory than the limit, or allows a process less. This makes room for the answer:
            w.next.clear();
            w.steps = {};
            steps_.drop();
            end_at("memory");
        }
        const std::lock_guard guard(lock_);
        reached_.merge(record());
    }

    void end_at(const char *limit) {
        const std::lock_guard guard(lock_);
        limit_ = limit;
        stop_ = true;
    }

    void block(Worker &w, const Block &states) {
        std::size_t at = 0;
        State s;
        while (states.pop(at, &s, sizeof s, w.at)) {
            bool moves = false;
            const std::size_t before = w.steps.size();
            w.expansion.successors(s, [&](State &next, const Step &step, bool only_blocked) {
                ++w.taken;
                make_canonical<Machine>(next);
                bool fresh;
                const std::uint32_t number = visited_.insert(hash_of(&next, used_bytes(next)), w.at, fresh);
                if (fresh) {
                    check(w, two_copies, next, number);
                    if (w.next.back().full()) {
                        open_bytes_ += w.next.back().bytes();
                        w.next.emplace_back();
                    }
                    w.next.back().push(&next, used_bytes(next), number);
                }
                if (!step.asks()) {
                    w.steps.push_back(number);
                    moves |= !only_blocked && number != w.at;
                }
            });
            if (!moves)
                check(w, stuck, s, w.at);
            const auto many = static_cast<std::uint32_t>(w.steps.size() - before);
            w.steps.push_back(many << 1 | rests(s));
            w.steps.push_back(w.at);
            if (w.steps.size() + kMostSteps > Steps::kBlock) {
                steps_.add(std::move(w.steps));
                w.steps = {};
            }
            w.steps.reserve(Steps::kBlock);
        }
    }

    static void check(Worker &w, Fault fault, State &s, std::uint32_t number) {
        if (const std::string why = fault(s); !why.empty()) {
            w.at = number, w.fault = fault;
            throw Violation(why);
        }
    }

    /// Each line has one writer, or only readers.
    static std::string two_copies(State &s) {
        for (Addr line = 1; line <= State::kLines; ++line) {
            unsigned readers = 0, writers = 0, writer = 0, reader = 0;
            for (unsigned c = 0; c < State::kCores; ++c) {
                const unsigned controller = Machine::kFirstCore + c;
                AccessPermission p{};
                Machine::with(s, controller, [&](auto &rules) { p = rules.permission_(line); });
                if (p == AccessPermission_Read_Write)
                    ++writers, writer = controller;
                else if (p == AccessPermission_Read_Only)
                    ++readers, reader = controller;
            }
            if (writers > 1 || (writers && readers))
                return "two copies: " + name_of(writer) + " may write line " + std::to_string(line) + " while " +
                       (writers > 1 ? "another core may write it, too" : name_of(reader) + " may read it");
        }
        return "";
    }

    static bool rests(const State &s) {
        return std::ranges::all_of(s.cores, [](const Core &c) { return !c.waits(); });
    }

    /// Nothing waits in a state in which nothing can happen.
    static std::string stuck(State &s) {
        for (unsigned c = 0; c < std::size(s.cores); ++c)
            if (s.cores[c].waits())
                return "stuck: " + (c < State::kCores ? "core " + std::to_string(c) : "the device") +
                       " waits for line " + std::to_string(s.cores[c].line);
        if (s.messages)
            return "stuck: " + std::string(State::kind_name(s.slots[0].kind)) + " for " + name_of(s.slots[0].to) +
                   " is never taken";
        return "";
    }

    static std::string never_done(State &) {
        return "never done: from here on, whatever happens, a core does not get what it asked for";
    }

    void check_liveness() {
        const std::vector<std::uint32_t> bad = steps_.hopeless(visited_.end());
        if (bad.empty())
            return;
        at_ = *std::ranges::min_element(bad, {}, [this](std::uint32_t n) { return distance(n); });
        fault_ = never_done;
        complete_ = false;
    }

    /// How many states the path from the first state to this one has.
    unsigned distance(std::uint32_t number) const {
        unsigned n = 0;
        for (; number != Visited::kNone; number = visited_.parent(number))
            ++n;
        return n;
    }
    std::size_t bytes() const { return visited_.bytes() + steps_.bytes() + open_bytes_; }
    /// Whether a limit is reached. To save memory the steps are dropped first; then liveness cannot be checked.
    bool full() {
        const std::lock_guard guard(lock_);
        most_bytes_ = std::max(most_bytes_, bytes());
        if (bytes() > limits_.memory)
            steps_.drop();
        if (bytes() > limits_.memory)
            limit_ = "memory";
        else if (elapsed() > limits_.seconds)
            limit_ = "time";
        return limit_ != nullptr;
    }
    double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }
    void progress(std::size_t open) {
        if (elapsed() - reported_ < 2)
            return;
        reported_ = elapsed();
        std::fprintf(stderr, "depth %u: %zu states, %zu in the last layer, %.0f s, %zu MiB\n", depth_, visited_.size(),
                     open, reported_, bytes() >> 20);
    }

    /// The steps that lead to a state, and the one after them that ends in a violation. The steps keep the names of
    /// cores and lines, so violation_ becomes the violation in these names; that of the state seen may have others. If
    /// it is of a state, `answer` gets a description of that state.
    nlohmann::json path(std::uint32_t to, std::uint32_t first, nlohmann::json &answer) {
        std::vector<std::uint32_t> numbers;
        for (std::uint32_t i = to; i != first; i = visited_.parent(i))
            numbers.push_back(i);
        auto start = std::make_unique<State>();
        initial(*start);
        Path<Machine> path(*start);
        for (std::size_t i = numbers.size(); i-- > 0;)
            path.follow([&](const State &canonical) {
                return visited_.number(hash_of(&canonical, used_bytes(canonical))) == numbers[i];
            });
        *start = path.state();
        if (const std::string named = fault_ ? fault_(*start) : path.break_off(); !named.empty())
            violation_ = named;
        if (fault_) {
            const End end = end_of(path);
            answer["end"] = {{"states", end.states}, {"messages", end.messages}};
            if (fault_ == stuck)
                violation_ += end.idle.empty() ? ", and nothing can happen"
                                               : ", and the only steps change nothing: " + end.idle.front();
        }
        return path.steps();
    }

    nlohmann::json reached() {
        nlohmann::json all = nlohmann::json::array();
        for (const MachineNames &m : Machine::names)
            for (unsigned t = 0; t < MachineType_NUM; ++t)
                if (std::string(MachineType_to_string(static_cast<MachineType>(t))) == m.machine)
                    for (unsigned i = 0; i < m.count; ++i) {
                        const auto &seen = reached_.reached[t];
                        all.push_back({m.machine, m.transitions[i].state, m.transitions[i].event,
                                       i + 1 < seen.size() && seen[i + 1]});
                    }
        return all;
    }

    static constexpr unsigned kTried = 400;        ///< states at which the symmetry is tried
    static constexpr double kSymmetrySeconds = 20; ///< the time for it at most
    static constexpr std::size_t kShared = 4096;   ///< several threads share a layer with this many states
    static constexpr std::size_t kMostSteps = 512; ///< room kept in a block for the steps from one state
    Limits limits_;
    std::vector<Worker> workers_;
    Visited visited_;
    Layer now_;
    Steps steps_;
    std::atomic<std::size_t> next_block_ = 0, open_bytes_ = 0;
    std::atomic<bool> stop_ = false;
    std::mutex lock_; ///< of the violation and of what was reached
    std::string violation_, too_large_;
    Record reached_;
    std::uint32_t at_ = 0;  ///< the state of the violation
    Fault fault_ = nullptr; ///< it is of this state; null: of a step that leaves it
    unsigned depth_ = 0;
    bool complete_ = false, stale_load_ = false;
    const char *limit_ = nullptr; ///< the limit that ended the exploration
    std::size_t most_bytes_ = 0;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    double reported_ = 0;
};

/// Arguments: BYTES SECONDS THREADS, or `walk` SEED STEPS.
template <class Machine> int explore(int argc, char **argv) {
    const auto number = [&](int i, double otherwise) { return argc > i ? std::strtod(argv[i], nullptr) : otherwise; };
    Machine::lay_out();
    nlohmann::json answer;
    if (argc > 1 && std::string_view(argv[1]) == "walk") {
        answer["steps"] =
            walk<Machine>(static_cast<std::uint64_t>(number(2, 1)), static_cast<unsigned>(number(3, 100)));
    } else {
        const Limits limits{static_cast<std::size_t>(number(1, 4e9)), number(2, 1e18),
                            static_cast<unsigned>(number(3, 1))};
        for (const bool how : {true, false}) {
            strict = how;
            Search<Machine> search(limits);
            answer = search.run();
            if (!search.stale_load())
                break;
        }
        answer["strict"] = strict;
    }
    std::puts(answer.dump().c_str());
    return 0;
}

} // namespace moscope::verify
