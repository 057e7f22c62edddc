// SPDX-License-Identifier: BSD-3-Clause
// A path through the states of a model, as steps that people and scripts can follow: cores and lines keep their names,
// and each message has a number and names the request that it was sent for.
#pragma once

#include <functional>
#include <memory>

#include <nlohmann/json.hpp>

#include "verify/expand.hh"

namespace moscope::verify {

template <class Machine> class Path {
  public:
    using State = typename Machine::State;

    explicit Path(const State &start) : state_(std::make_unique<State>(start)) {}
    const State &state() const { return *state_; }
    const nlohmann::json &steps() const { return steps_; }

    using Found = std::function<void(const State &, const Step &, bool)>;
    /// Calls found for all successors. Not a template: callers that need not be fast share one compiled expansion.
    void each(const Found &found) { expansion_.successors(*state_, found); }

    /// Takes the first step to a state whose canonical form is wanted. False: none.
    template <class F> bool follow(F &&wanted) {
        State found;
        bool there = false;
        std::vector<Tag> tags;
        nlohmann::json step;
        logged([&](std::vector<std::string> &log) {
            each([&](const State &next, const Step &how, bool) {
                State canonical = next;
                make_canonical<Machine>(canonical);
                if (!there && wanted(canonical)) {
                    there = true;
                    found = next;
                    step = describe(how, log);
                    tags = tags_after(next, how, step);
                }
                log.clear();
            });
        });
        if (there) {
            forget_old_values(found);
            sort_messages(found, [&](unsigned a, unsigned b) { std::swap(tags[a], tags[b]); });
            *state_ = found;
            tags_ = tags;
            steps_.push_back(step);
        }
        return there;
    }

    /// Adds the step that ends in a violation, if one does. Returns the violation.
    std::string break_off() {
        std::string what;
        logged([&](std::vector<std::string> &log) {
            try {
                each([&](const State &, const Step &, bool) { log.clear(); });
            } catch (const Violation &v) {
                what = v.what();
                nlohmann::json step = describe(expansion_.step(), log);
                if (expansion_.step().kind == Step::request)
                    step["access"] = accesses_++;
                steps_.push_back(step);
            }
        });
        return what;
    }

    /// Whether a machine takes this step by itself as soon as it can: steps of DRAM, of messages that do not cross the
    /// network, and of messages that have arrived before.
    bool at_once(const Step &how) const {
        if (how.kind != Step::message)
            return how.kind == Step::memory;
        const auto &m = state_->slots[how.who];
        return m.from == kMemory || m.from == m.to || tags_[how.who].arrived;
    }
    /// The order of such steps; the least comes first. Messages that were set aside wake before DRAM answers. Those of
    /// one receiver wake in the order in which the receiver looks at its buffers, then in the order of their arrival.
    struct Turn {
        unsigned receiver = ~0u, buffer = 0, arrived = 0;
        auto operator<=>(const Turn &) const = default;
    };
    Turn turn(const Step &how) const {
        if (how.kind != Step::message || state_->slots[how.who].from == kMemory)
            return {kMemory, 0, 0};
        return {state_->slots[how.who].to, state_->slots[how.who].buffer, tags_[how.who].arrived};
    }

  private:
    /// Of a message under way: its number, and the request that it was sent for (-1: none, as for an eviction).
    struct Tag {
        int number = -1, access = -1;
        unsigned arrived = 0; ///< rank in the order in which receivers first looked at messages; 0: not yet
    };

    /// Calls f with a log of transitions. Ignores a violation, which is in another step than the one that f looks for.
    template <class F> void logged(F &&f) {
        std::vector<std::string> log;
        record().log = &log;
        try {
            f(log);
        } catch (const Violation &) {}
        record().log = nullptr;
    }

    nlohmann::json describe(const Step &how, const std::vector<std::string> &log) {
        nlohmann::json step{{"transitions", log}, {"line", how.line}, {"at_once", at_once(how)}};
        switch (how.kind) {
        case Step::request: {
            const std::string type = RubyRequestType_to_string(static_cast<RubyRequestType>(how.type));
            step["what"] =
                "core " + std::to_string(how.who) + " asks: " + type + " of line " + std::to_string(how.line);
            step["core"] = how.who, step["request"] = type;
            break;
        }
        case Step::evict:
            step["what"] = name_of(how.who) + " makes room";
            step["evicts"] = how.who;
            break;
        case Step::device: {
            static constexpr const char *kinds[] = {"to read", "to write", "to write a part of"};
            step["what"] =
                "the device of " + name_of(how.who) + " asks " + kinds[how.type] + " line " + std::to_string(how.line);
            step["device"] = how.who;
            break;
        }
        case Step::memory: step["what"] = "memory serves line " + std::to_string(how.line); break;
        case Step::message: {
            const auto &m = state_->slots[how.who];
            step["what"] = name_of(m.to) + " takes " + State::message_name(m) + " from " + name_of(m.from) + ", line " +
                           std::to_string(m.line);
            step["takes"] = tags_[how.who].number;
        }
        }
        return step;
    }

    /// The tags of a successor's messages, in the successor's order. Adds the messages that were sent to `step`.
    std::vector<Tag> tags_after(const State &next, const Step &how, nlohmann::json &step) {
        std::vector<Tag> tags = tags_;
        unsigned slot = how.who;
        int access = -1;
        if (how.asks()) {
            slot = static_cast<unsigned>(tags.size());
            access = how.kind == Step::request ? accesses_ : -1;
            tags.push_back({-1, access});
            if (how.kind == Step::request)
                step["access"] = accesses_++;
        } else {
            access = tags[slot].access;
        }
        if (how.kind == Step::message || how.kind == Step::request)
            tags[slot].arrived = tags[slot].arrived ? tags[slot].arrived : ++arrivals_;
        if (expansion_.removed())
            tags.erase(tags.begin() + slot);
        nlohmann::json sent = nlohmann::json::array();
        for (unsigned i = static_cast<unsigned>(tags.size()); i < next.messages; ++i) {
            tags.push_back({numbers_++, access});
            const auto &m = next.slots[i];
            sent.push_back({{"number", tags.back().number},
                            {"access", access},
                            {"message", State::message_name(m)},
                            {"to", name_of(m.to)},
                            {"through_network", m.to != kMemory && m.from != kMemory && m.from != m.to}});
        }
        if (!sent.empty())
            step["sends"] = sent;
        return tags;
    }

    Expansion<Machine> expansion_;
    std::unique_ptr<State> state_;
    std::vector<Tag> tags_;
    nlohmann::json steps_ = nlohmann::json::array();
    int numbers_ = 0, accesses_ = 0;
    unsigned arrivals_ = 0;
};

} // namespace moscope::verify
