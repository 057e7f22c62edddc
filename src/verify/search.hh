// SPDX-License-Identifier: BSD-3-Clause
// Breadth-first exploration of all states of a model. Checked in every state: at most one core may write a line, and then no other
// may read it; something can happen while anything waits. Checked in every step: what the protocol asserts, that
// it has a transition, that a load reads the last value written (or one that was it while the load waited). At the end: from
// every state, without further requests, all cores can get what they asked for.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include <nlohmann/json.hpp>

#include "verify/visited.hh"
#include "verify/walk.hh"

namespace moscope::verify {

/// States of a layer, in the bytes that are not zero: runs of zeros and of other bytes, each with its length.
class Layer {
  public:
    void push(const void *state, std::size_t bytes, std::uint32_t number) {
        const auto *p = static_cast<const std::uint8_t *>(state);
        const auto length = static_cast<std::uint16_t>(bytes);
        append(&number, sizeof number);
        append(&length, sizeof length);
        for (std::size_t i = 0; i < bytes;) {
            std::size_t zeros = i, end;
            while (zeros < bytes && zeros - i < 255 && p[zeros] == 0)
                ++zeros;
            for (end = zeros; end < bytes && end - zeros < 255; ++end)
                if (p[end] == 0 && end + 2 < bytes && p[end + 1] == 0 && p[end + 2] == 0)
                    break;
            const std::uint8_t head[] = {static_cast<std::uint8_t>(zeros - i), static_cast<std::uint8_t>(end - zeros)};
            append(head, 2);
            append(p + zeros, end - zeros);
            i = end;
        }
        ++count_;
    }
    /// The next state from `at`, which moves on. False: no more.
    bool pop(std::size_t &at, void *state, std::size_t bytes, std::uint32_t &number) const {
        if (at == bytes_.size())
            return false;
        std::uint16_t length;
        std::memcpy(&number, &bytes_[at], sizeof number);
        std::memcpy(&length, &bytes_[at + sizeof number], sizeof length);
        at += sizeof number + sizeof length;
        auto *p = static_cast<std::uint8_t *>(state);
        std::memset(p, 0, bytes);
        for (std::size_t i = 0; i < length;) {
            const std::size_t zeros = bytes_[at], others = bytes_[at + 1];
            std::memcpy(p + i + zeros, &bytes_[at + 2], others);
            at += 2 + others;
            i += zeros + others;
        }
        return true;
    }
    std::size_t size() const { return count_; }
    std::size_t bytes() const { return bytes_.capacity(); }
    void clear() { std::vector<std::uint8_t>().swap(bytes_), count_ = 0; }
    void swap(Layer &o) { bytes_.swap(o.bytes_), std::swap(count_, o.count_); }

  private:
    void append(const void *data, std::size_t n) {
        const auto *p = static_cast<const std::uint8_t *>(data);
        bytes_.insert(bytes_.end(), p, p + n);
    }
    std::vector<std::uint8_t> bytes_;
    std::size_t count_ = 0;
};

struct Limits {
    std::size_t memory = std::size_t{4} << 30; ///< bytes
    double seconds = 1e18;
};

template <class Machine> class Search {
  public:
    using State = typename Machine::State;

    explicit Search(Limits limits) : limits_(limits) {}

    nlohmann::json run() {
        auto start = std::make_unique<State>();
        initial(*start);
        bool fresh;
        visited_.insert(hash_of(start.get(), used_bytes(*start)), Visited::kNone, fresh);
        Layer now;
        now.push(start.get(), used_bytes(*start), 0);
        offsets_.push_back(0);
        nlohmann::json answer;
        try {
            while (now.size() && !full()) {
                layer(now);
                now.swap(next_);
                next_.clear();
                ++depth_;
                progress(now.size());
            }
            complete_ = now.size() == 0;
            if (complete_)
                check_liveness();
        } catch (const Violation &v) {
            answer["violation"] = v.what();
            answer["steps"] = path(at_);
        }
        answer["seconds"] = elapsed();
        answer["complete"] = complete_;
        answer["states"] = visited_.size();
        answer["depth"] = depth_;
        answer["steps_taken"] = taken_;
        answer["memory"] = visited_.bytes() + edges_.capacity() * 4 + offsets_.capacity() * 8;
        answer["state_bytes"] = sizeof(State);
        answer["renamings"] = std::size(Machine::kRenamings) * std::size(Machine::kLineRenamings);
        answer["reached"] = reached();
        return answer;
    }

  private:
    void initial(State &s) {
        std::memset(static_cast<void *>(&s), 0, sizeof s);
        Machine::begin(s);
        make_canonical<Machine>(s); // memory has age 0: the first value
    }

    void layer(const Layer &now) {
        std::size_t at = 0;
        State s;
        while (now.pop(at, &s, sizeof s, at_)) {
            bool moves = false;
            at_rest_.push_back(rests(s));
            expansion_.successors(s, [&](State &next, const Step &step, bool only_blocked) {
                ++taken_;
                make_canonical<Machine>(next);
                const std::uint32_t before = static_cast<std::uint32_t>(visited_.size());
                bool fresh;
                const std::uint32_t number = visited_.insert(hash_of(&next, used_bytes(next)), at_, fresh);
                if (fresh) {
                    check_rights(next, before);
                    next_.push(&next, used_bytes(next), number);
                }
                if (!step.asks()) {
                    edges_.push_back(number);
                    moves |= !only_blocked && number != at_;
                }
            });
            offsets_.push_back(edges_.size());
            if (!moves)
                check_rest(s);
        }
    }

    /// One writer, or readers.
    void check_rights(State &s, std::uint32_t number) {
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
            if (writers > 1 || (writers && readers)) {
                at_ = number, in_state_ = true;
                throw Violation("two copies: " + name_of(writer) + " may write line " + std::to_string(line) +
                                " while " +
                                (writers > 1 ? "another core may write it, too" : name_of(reader) + " may read it"));
            }
        }
    }

    static bool rests(const State &s) {
        return std::ranges::all_of(s.cores, [](const Core &c) { return !c.waits(); });
    }

    void check_rest(const State &s) {
        in_state_ = true;
        for (unsigned c = 0; c < State::kCores; ++c)
            if (s.cores[c].waits())
                throw Violation("stuck: core " + std::to_string(c) + " waits for line " +
                                std::to_string(s.cores[c].line) + ", and nothing can happen");
        if (s.messages)
            throw Violation("stuck: " + std::string(State::kind_name(s.slots[0].kind)) + " for " +
                            name_of(s.slots[0].to) + " is never taken");
    }

    /// Backwards from the states in which no core waits, along the steps that need no new request.
    void check_liveness() {
        const std::size_t n = visited_.size();
        std::vector<bool> good(n);
        for (std::size_t i = 0; i < n; ++i)
            good[i] = i < at_rest_.size() && at_rest_[i];
        for (bool changed = true; changed;) {
            changed = false;
            for (std::size_t i = n; i-- > 0;)
                if (!good[i])
                    for (std::size_t e = offsets_[i]; e < offsets_[i + 1]; ++e)
                        if (good[edges_[e]]) {
                            good[i] = changed = true;
                            break;
                        }
        }
        for (std::size_t i = 0; i < n; ++i)
            if (!good[i]) {
                at_ = static_cast<std::uint32_t>(i), in_state_ = true;
                throw Violation("never done: from here on, whatever happens, a core does not get what it asked for");
            }
    }

    bool full() {
        const std::size_t bytes =
            visited_.bytes_of_growth() + edges_.capacity() * 4 + offsets_.capacity() * 8 + next_.bytes() * 2;
        return bytes > limits_.memory || elapsed() > limits_.seconds;
    }
    double elapsed() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count(); }
    void progress(std::size_t open) {
        if (elapsed() - reported_ < 2)
            return;
        reported_ = elapsed();
        std::fprintf(stderr, "depth %u: %zu states, %zu in the last layer, %.0f s\n", depth_, visited_.size(), open,
                     reported_);
    }

    /// The steps that lead to a state, and the one after them that ends in a violation.
    nlohmann::json path(std::uint32_t to) {
        std::vector<std::uint32_t> numbers;
        for (std::uint32_t i = to; i != 0; i = visited_.parent(i))
            numbers.push_back(i);
        auto start = std::make_unique<State>();
        initial(*start);
        Path<Machine> path(*start);
        for (std::size_t i = numbers.size(); i-- > 0;)
            path.follow([&](const State &canonical) {
                return visited_.number(hash_of(&canonical, used_bytes(canonical))) == numbers[i];
            });
        if (!in_state_)
            path.break_off();
        return path.steps();
    }

    nlohmann::json reached() {
        nlohmann::json all = nlohmann::json::array();
        for (const MachineNames &m : Machine::names)
            for (unsigned t = 0; t < MachineType_NUM; ++t)
                if (std::string(MachineType_to_string(static_cast<MachineType>(t))) == m.machine)
                    for (unsigned i = 0; i < m.count; ++i) {
                        const auto &seen = record().reached[t];
                        all.push_back({m.machine, m.transitions[i].state, m.transitions[i].event,
                                       i + 1 < seen.size() && seen[i + 1]});
                    }
        return all;
    }

    Limits limits_;
    Expansion<Machine> expansion_;
    Visited visited_;
    Layer next_;
    std::vector<std::uint32_t> edges_;
    std::vector<std::uint64_t> offsets_;
    std::vector<bool> at_rest_;
    std::uint32_t at_ = 0;  ///< the state at hand
    bool in_state_ = false; ///< a violation is of this state, not of a step that leaves it
    std::uint64_t taken_ = 0;
    unsigned depth_ = 0;
    bool complete_ = false;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    double reported_ = 0;
};

/// Arguments: BYTES SECONDS, or `walk` SEED STEPS.
template <class Machine> int explore(int argc, char **argv) {
    const auto number = [&](int i, double otherwise) { return argc > i ? std::strtod(argv[i], nullptr) : otherwise; };
    Machine::lay_out();
    nlohmann::json answer;
    if (argc > 1 && std::string_view(argv[1]) == "walk") {
        answer["steps"] =
            walk<Machine>(static_cast<std::uint64_t>(number(2, 1)), static_cast<unsigned>(number(3, 100)));
    } else {
        const Limits limits{static_cast<std::size_t>(number(1, 4e9)), number(2, 1e18)};
        answer = Search<Machine>(limits).run();
    }
    std::puts(answer.dump().c_str());
    return 0;
}

} // namespace moscope::verify
