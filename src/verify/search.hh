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

#include "verify/expand.hh"
#include "verify/visited.hh"

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
            answer["steps"] = path(at_, true);
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
                at_ = number;
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
                at_ = static_cast<std::uint32_t>(i);
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

    /// The steps that lead to a state; `breaks`: and the one after them that ends in a violation.
    nlohmann::json path(std::uint32_t to, bool breaks) {
        std::vector<std::uint32_t> numbers;
        for (std::uint32_t i = to; i != 0; i = visited_.parent(i))
            numbers.push_back(i);
        nlohmann::json steps = nlohmann::json::array();
        auto s = std::make_unique<State>();
        initial(*s);
        std::vector<std::string> log;
        record().log = &log;
        for (std::size_t i = numbers.size(); i-- > 0;) {
            State found;
            nlohmann::json step;
            log.clear();
            try {
                expansion_.successors(*s, [&](State &next, const Step &how, bool) {
                    State canonical = next;
                    make_canonical<Machine>(canonical);
                    if (step.is_null() && visited_.number(hash_of(&canonical, used_bytes(canonical))) == numbers[i]) {
                        step = describe(*s, how, log);
                        found = next;
                        forget_old_values(found);
                        sort_messages(found);
                    }
                    log.clear();
                });
            } catch (const Violation &) { // of a step that comes after the one that was looked for
            }
            steps.push_back(step);
            *s = found;
        }
        if (breaks) {
            log.clear();
            try {
                expansion_.successors(*s, [&](State &, const Step &, bool) { log.clear(); });
            } catch (const Violation &) {
                steps.push_back(describe(*s, expansion_.step(), log));
            }
        }
        record().log = nullptr;
        return steps;
    }

    nlohmann::json describe(const State &s, const Step &how, const std::vector<std::string> &log) {
        std::string what;
        switch (how.kind) {
        case Step::request:
            what = "core " + std::to_string(how.who) +
                   " asks: " + RubyRequestType_to_string(static_cast<RubyRequestType>(how.type)) + " of line " +
                   std::to_string(how.line);
            break;
        case Step::evict: what = "cache of core " + std::to_string(how.who) + " makes room"; break;
        case Step::memory: what = "memory serves line " + std::to_string(how.line); break;
        case Step::message: {
            const auto &m = s.slots[how.who];
            what = name_of(m.to) + " takes " + State::kind_name(m.kind) + " from " + name_of(m.from) + " in " +
                   State::buffer_name(layout.id[m.to].type, m.buffer) + ", line " + std::to_string(m.line);
        }
        }
        return {{"what", what}, {"transitions", log}};
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
    std::uint32_t at_ = 0; ///< the state at hand
    std::uint64_t taken_ = 0;
    unsigned depth_ = 0;
    bool complete_ = false;
    std::chrono::steady_clock::time_point began_ = std::chrono::steady_clock::now();
    double reported_ = 0;
};

template <class Machine> int explore(int argc, char **argv) {
    Limits limits;
    if (argc > 1)
        limits.memory = std::strtoull(argv[1], nullptr, 10);
    if (argc > 2)
        limits.seconds = std::strtod(argv[2], nullptr);
    Machine::lay_out();
    std::puts(Search<Machine>(limits).run().dump().c_str());
    return 0;
}

} // namespace moscope::verify
