// SPDX-License-Identifier: BSD-3-Clause
// Records everything that the protocol does while it is attached to a machine: messages from their sending to
// each delivery, the links they cross, and transitions with the message that caused them. The result is the
// body of a document of schema moscope.trace/1. Times are femtoseconds of simulated time.
#pragma once

#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "mem/ruby/runtime/controller.hh"
#include "mem/ruby/runtime/trace_hook.hh"

namespace moscope {

class Machine;
class StateRecorder;

class TraceRecorder : public ruby::TraceHook {
  public:
    explicit TraceRecorder(Machine &machine);
    ~TraceRecorder() override;

    /// Names the access to which write() attributes the transaction's messages and transitions.
    void name_transaction(TxnId txn, unsigned access) { access_of_[txn] = access; }

    /// Delays a message by `extra` at each receiver where it would arrive after the tick `after`; this arrival includes
    /// the delays from earlier calls. Later messages of an ordered virtual network do not overtake it. Has no effect on
    /// the requests that cores pass to their caches.
    void delay(unsigned message, Tick extra, Tick after);
    /// Also reports each transition to `states`.
    void set_states(StateRecorder *states) { states_ = states; }
    std::size_t transitions() const { return transitions_.size(); }

    /// Adds "controllers", "messages" and "transitions" to the document.
    void write(nlohmann::ordered_json &document) const;

    void transition(const ruby::AbstractController &c, Tick now, unsigned state, unsigned event, unsigned next_state,
                    Addr line, const ruby::Message *cause) override;
    Tick sent(const ruby::AbstractController &c, Tick now, const ruby::Message &m, Tick arrival,
              const ruby::Message *cause) override;
    void hop(const ruby::Message &m, unsigned from, unsigned to, Tick depart, Tick arrive) override;
    Tick delivered(const ruby::Message &m, ruby::NodeIndex to, Tick arrival) override;

  private:
    static constexpr int kNone = -1;

    struct Delivery {
        ruby::NodeIndex to;
        Tick at;
    };
    struct Hop {
        unsigned from, to;
        Tick depart, arrive;
    };
    struct MessageRecord {
        std::uint64_t uid;
        std::uint16_t type;
        std::uint8_t vnet;
        bool carries_data;
        bool from_memory; ///< DRAM's answer; `from` is then the controller that receives it
        ruby::NodeIndex from;
        ruby::NetDest open; ///< destinations to which it is still under way
        bool network;       ///< it has destinations
        TxnId txn;
        Addr line;
        Tick sent, ready;
        int cause;
        std::string fields;
        std::vector<Delivery> deliveries;
        std::vector<Hop> hops;
    };
    struct TransitionRecord {
        ruby::NodeIndex controller;
        Tick at;
        unsigned state, event, next;
        Addr line;
        TxnId txn;
        int cause;
    };

    int message_of(const ruby::Message &m);
    int cause_of(const ruby::AbstractController &c, Tick now, const ruby::Message *cause);
    int add(const ruby::Message &m, ruby::NodeIndex from, Tick now, Tick ready, int cause);
    std::string controller_name(ruby::NodeIndex node) const;
    nlohmann::ordered_json access(TxnId txn) const;

    Machine &machine_;
    std::vector<MessageRecord> messages_;
    std::vector<TransitionRecord> transitions_;
    std::unordered_map<std::uint64_t, int> by_uid_;
    std::unordered_map<TxnId, unsigned> access_of_;
    StateRecorder *states_ = nullptr;

    struct Delay {
        Tick extra, after;
    };
    /// How much later than `arrival` the message arrives.
    Tick later(int id, Tick arrival) const;
    std::unordered_map<int, std::vector<Delay>> delays_; ///< by message, in the order in which they apply
    std::vector<bool> ordered_;                          ///< by virtual network
    std::map<std::tuple<ruby::NodeIndex, ruby::NodeIndex, unsigned>, Tick>
        last_; ///< of ordered networks, while there are delays
};

} // namespace moscope
