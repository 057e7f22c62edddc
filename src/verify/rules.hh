// SPDX-License-Identifier: BSD-3-Clause
// The base class of the rules that the SLICC compiler generates for a model: a controller that takes one message. The
// sequencer, its core, DRAM's queue and the network are also modelled here. A core has one request at a time. A store
// makes every other block of its line one write older.
#pragma once

#include <algorithm>
#include <string>

#include "verify/messages.hh"
#include "verify/world.hh"

namespace moscope::verify {

struct TransitionName {
    const char *state, *event;
    bool stalls;
};
struct MachineNames {
    const char *machine;
    const TransitionName *transitions;
    unsigned count;
};

/// Which transitions have been taken or have stalled, by machine type and number; and, for a counterexample, a log.
struct Record {
    std::vector<std::vector<bool>> reached = std::vector<std::vector<bool>>(MachineType_NUM);
    std::vector<std::string> *log = nullptr;
    void merge(const Record &o) {
        for (std::size_t t = 0; t < reached.size(); ++t) {
            reached[t].resize(std::max(reached[t].size(), o.reached[t].size()));
            for (std::size_t i = 0; i < o.reached[t].size(); ++i)
                reached[t][i] = reached[t][i] || o.reached[t][i];
        }
    }
};
/// True: each load must read the last value written. False: it may also read one that was current while the load
/// waited.
inline bool strict = true;
/// A load has not read the last value written. Without `strict` that may be allowed.
struct StaleLoad : Violation {
    using Violation::Violation;
};

inline Record &record() {
    static thread_local Record r;
    return r;
}

inline std::string name_of(unsigned controller) {
    if (controller == kMemory)
        return "memory";
    const MachineID m = layout.id[controller];
    return std::string(MachineType_to_string(m.type)) + "-" + std::to_string(m.num);
}

/// A visitor of structures that passes blocks of data to f and ignores all other fields.
template <class F> struct DataVisitor {
    F f;
    void data(const char *, DataBlock &d) { f(d); }
    template <class X> void line(const char *, X &) {}
    template <class X> void machine(const char *, X &) {}
    template <class X> void machines(const char *, X &) {}
    template <class X> void plain(const char *, X &) {}
};
template <class F> DataVisitor(F) -> DataVisitor<F>;

/// Calls f(DataBlock &) for every block of a line.
template <class State, class F> void each_block(State &s, Addr line, F &&f) {
    DataVisitor v{[&](DataBlock &d) { f(d); }};
    s.visit_tables([&](const char *, auto &table) {
        if (auto *e = table.find(line))
            std::remove_pointer_t<decltype(e)>::visit(*e, v);
    });
    for (unsigned i = 0; i < s.messages; ++i)
        if (s.slots[i].line == line)
            State::visit_body(s.slots[i], v);
    f(s.memory[line - 1]);
}

/// The value of a line changes: other blocks age. `d` is the new value.
template <class State> void write_line(State &s, Addr line, DataBlock &d) {
    each_block(s, line, [](DataBlock &b) { b.grow(); });
    d.age = 0;
    for (Core &c : s.cores)
        if (!strict && c.reads() && c.line == line && c.since != Core::kManyWrites)
            ++c.since;
}

/// A device's bytes become the value of a line when they are sent to DRAM, which serves the requests for a line in
/// order.
template <class State> void write_of_device(State &s, Addr line, DataBlock &d) {
    for (unsigned c = State::kCores; c < std::size(s.cores); ++c)
        if (s.cores[c].waits() && !s.cores[c].reads() && s.cores[c].line == line)
            s.cores[c].since = 1;
    write_line(s, line, d);
}

/// The bytes of a store past the caches become the value of a line when DRAM has them, before the store is complete.
template <class State> void write_past_caches(State &s, Addr line, DataBlock &d) {
    for (unsigned c = 0; c < State::kCores; ++c)
        if (s.cores[c].waits() && s.cores[c].type() == RubyRequestType_COMMIT && s.cores[c].line == line)
            s.cores[c].since = 1;
    write_line(s, line, d);
}

/// DRAM does what a message asks, and the message becomes its answer.
template <class State> void serve_memory(State &s, MemoryMsg &m, MachineID home) {
    DataBlock &there = s.memory[m.addr - 1];
    if (m.Type == MemoryRequestType_MEMORY_READ) {
        m.DataBlk = there;
        m.MessageSize = MessageSizeType_Response_Data;
    } else {
        if (m.DataBlk.age == DataBlock::kDevice) { // a part of the line, which DRAM merges
            there.copyPartial(m.DataBlk);
            if (there.age != DataBlock::kMerged)
                throw Violation("stale data: DRAM merges a device's bytes with a value of line " +
                                std::to_string(m.addr) + " that is not the last one written");
            write_of_device(s, m.addr, there);
        } else {
            there = m.DataBlk;
            if (there.age == DataBlock::kNew)
                write_past_caches(s, m.addr, there);
        }
        m.DataBlk = DataBlock{};
        m.MessageSize = MessageSizeType_Response_Control;
    }
    m.OriginalRequestorMachId = m.Sender;
    m.Sender = home;
}

template <class State> class RulesOf {
  public:
    using Message = typename State::Message;
    using Rules = RulesOf;

    RulesOf(State &s, unsigned controller)
        : machineID(layout.id[controller]), version(machineID.num), s_(s), controller_(controller) {}

    enum class Outcome : std::uint8_t { nothing, taken, stalled, abandoned };
    Outcome outcome_ = Outcome::nothing;
    bool dequeued_ = false;
    Message *message_ = nullptr; ///< the message that the rule takes
    unsigned buffer_ = 0;        ///< the buffer in which it lies

    /// Sets where in the protocol's text a rule is: the action or in_port, and the statement.
    void in(const char *what, const char *file, unsigned line) { what_ = what, at(file, line); }
    void at(const char *file, unsigned line) { file_ = file, line_ = line; }
    /// Adds this place to a violation.
    void locate(Violation &v) const {
        if (what_)
            v.locate(name_of(controller_), std::string(what_) + ", " + file_ + ":" + std::to_string(line_));
    }

    // ---- the prelude's members of every controller
    MachineID machineID;
    NodeID version;
    NodeID clusterID = 0;
    std::int64_t recycle_latency = 0;
    int number_of_TBEs = 1, transitions_per_cycle = 1;
    Tick clockEdge(std::int64_t = 0) const { return 0; }
    std::int64_t curCycle() const { return 0; }
    std::int64_t ticksToCycles(Tick) const { return 0; }
    Tick cyclesToTicks(std::int64_t) const { return 0; }
    void wakeUpBuffers(Addr a) { wake_(a); }
    void wakeUpBuffer(Addr a) { wake_(a); }
    void wakeUpAllBuffers(Addr a) { wake_(a); }
    void wakeUpAllBuffers() { wake_(0); }
    void dequeueMemRespQueue() { dequeued_ = true; }
    template <class... X> void profileRequest(X...) {}
    template <class... X> void profileMsgDelay(X...) {}

    // ---- buffers
    struct NetworkBuffer {
        RulesOf &r;
        unsigned vnet;
        const char *name;
        /// A message without a size is a violation, and one without a destination is not sent, as on the engine.
        template <class M> void send(const M &m) const {
            if constexpr (requires { m.MessageSize; })
                if (m.MessageSize == MessageSizeType_NUM)
                    throw Violation("enqueue: the message into " + name_of(r.controller_) + "." + name +
                                    " has no MessageSize: expected an assignment of one");
            for (unsigned c = 0; c < layout.total; ++c)
                if (m.Destination.isElement(layout.id[c])) {
                    const int buffer = State::receiver(vnet, layout.id[c].type);
                    if (buffer < 0)
                        throw Violation(name_of(r.controller_) + " sends to " + name_of(c) +
                                        ", which has no buffer of virtual network " + std::to_string(vnet));
                    r.put_(m, c, static_cast<unsigned>(buffer));
                }
        }
        template <class... X> bool areNSlotsAvailable(X...) const { return true; }
    };
    struct MemoryBuffer {
        RulesOf &r;
        void send(MemoryMsg m) const {
            const bool whole = m.Len == 0 || m.Len == kLineBytes;
            if (m.DataBlk.age == DataBlock::kMerged || (m.DataBlk.age == DataBlock::kDevice && whole))
                write_of_device(r.s_, m.addr, m.DataBlk);
            if constexpr (State::kEager) {
                serve_memory(r.s_, m, layout.id[r.controller_]);
                r.put_(m, r.controller_, State::from_memory(r.machineID.type), kMemory);
            } else {
                r.put_(m, kMemory, 0, static_cast<std::uint8_t>(r.controller_));
            }
        }
        template <class... X> bool areNSlotsAvailable(X...) const { return true; }
    };
    struct OwnBuffer {
        RulesOf &r;
        unsigned number;
        bool isReady(Tick) const { return r.buffer_ == number; }
        bool isEmpty() const {
            for (unsigned i = 0; i < r.s_.messages; ++i)
                if (r.s_.slots[i].to == r.controller_ && r.s_.slots[i].buffer == number && !r.s_.slots[i].aside)
                    return false;
            return true;
        }
        template <class M> M &peek() const {
            if (r.buffer_ != number)
                throw Violation(name_of(r.controller_) +
                                " peeks into a buffer other than the one that triggered the transition");
            if (r.message_->kind != M::kKind)
                throw Violation("peek: the message in " + std::string(State::buffer_name(r.machineID.type, number)) +
                                " is of another type");
            return r.message_->template as<M>();
        }
        Tick dequeue(Tick) const {
            if (r.buffer_ != number)
                throw Violation(name_of(r.controller_) +
                                " dequeues from a buffer other than the one that triggered the transition");
            r.dequeued_ = true;
            return 0;
        }
        template <class... X> void recycle(X...) const {}
        void set_aside(Addr a) const {
            if (r.buffer_ != number)
                throw Violation(name_of(r.controller_) +
                                " stalls a message other than the one that triggered the transition");
            r.message_->aside = a;
        }
        void wake(Addr a) const { r.wake_(a, number); }
        bool hasStalledMsg(Addr a) const {
            for (unsigned i = 0; i < r.s_.messages; ++i)
                if (r.s_.slots[i].to == r.controller_ && r.s_.slots[i].buffer == number && r.s_.slots[i].aside == a)
                    return true;
            return false;
        }
        template <class M> void send(const M &m) const { r.put_(m, r.controller_, number); }
        template <class... X> bool areNSlotsAvailable(X...) const { return true; }
    };

    // ---- the sequencer
    using Sequencer = RulesOf;
    template <class... X> void readCallback(Addr a, const DataBlock &d, X...) {
        Core &c = waiting_(a, "reads");
        if (c.type() != RubyRequestType_LD && c.type() != RubyRequestType_IFETCH)
            throw Violation(name_of(controller_) + " lets its core read, which asked for " +
                            RubyRequestType_to_string(c.type()));
        read_(c, a, d, "lets its core read");
    }
    template <class... X> void writeCallback(Addr a, DataBlock &d, X...) {
        Core &c = waiting_(a, "writes");
        if (c.type() == RubyRequestType_FLUSH) {
            c = {};
            return;
        }
        if (d.age != 0 && d.age != DataBlock::kNew)
            throw Violation("stale data: " + name_of(controller_) + " lets its core write into a copy of line " +
                            std::to_string(a) + " that is not the last value written");
        const bool in_memory = c.type() == RubyRequestType_COMMIT && c.since;
        c = {};
        if (!in_memory)
            write_line(s_, a, d);
    }
    template <class... X> void atomicCallback(Addr a, DataBlock &d, X...) { writeCallback(a, d); }
    void writeUniqueCallback(Addr a, DataBlock &d) { writeCallback(a, d); }
    template <class... X> void unaddressedCallback(X...) {}
    void evictionCallback(Addr) {}
    void invL1Callback() {}
    template <class... X> void recordRequestType(X...) {}
    template <class... X> bool checkResourceAvailable(X...) { return true; }
    bool llscCheckMonitor(Addr) { return true; }
    void llscClearLocalMonitor() {}

    // ---- the sequencer of a device
    struct DeviceSequencer {
        RulesOf &r;
        void dataCallback(const DataBlock &d, Addr a) const { r.read_(r.device_(a, "gets"), a, d, "gives its device"); }
        void ackCallback(Addr a) const {
            Core &c = r.device_(a, "has written");
            if (c.reads() || !c.since)
                throw Violation("stale data: " + name_of(r.controller_) + " reports a write of line " +
                                std::to_string(a) + ", but DRAM does not hold the last value with the device's bytes");
            c = {};
        }
        void atomicCallback(const DataBlock &, Addr a) const { ackCallback(a); }
        template <class... X> void recordRequestType(X...) const {}
    };

  protected:
    [[noreturn]] void no_transition_(const char *state, const char *event) {
        throw Violation(name_of(controller_) + ": no transition for event " + event + " in state " + state);
    }
    bool stalled_() {
        outcome_ = Outcome::stalled;
        return false;
    }
    bool abandon_() {
        outcome_ = Outcome::abandoned;
        return true;
    }
    template <class S, class E> void note_(unsigned machine, unsigned number, S state, E event, Addr a) {
        outcome_ = Outcome::taken;
        auto &reached = record().reached[machine];
        if (number >= reached.size())
            reached.resize(number + 1);
        reached[number] = true;
        if (record().log)
            record().log->push_back(name_of(controller_) + ": " + to_text(event) + " in " + to_text(state) + ", line " +
                                    std::to_string(a));
    }
    State &s_;
    unsigned controller_;

  private:
    const char *what_ = nullptr, *file_ = nullptr;
    unsigned line_ = 0;

    template <class M> void put_(const M &m, unsigned to, unsigned buffer) {
        put_(m, to, buffer, static_cast<std::uint8_t>(controller_));
    }
    template <class M> void put_(const M &m, unsigned to, unsigned buffer, std::uint8_t from) {
        if (s_.messages == State::kSlots)
            throw Violation("more than " + std::to_string(State::kSlots) +
                            " messages are under way: a protocol that sends without end, or --messages is too small");
        Message &slot = s_.slots[s_.messages++];
        slot = Message{}; // what lay here is not part of the state
        slot.kind = M::kKind;
        slot.to = static_cast<std::uint8_t>(to);
        slot.buffer = static_cast<std::uint8_t>(buffer);
        slot.from = from;
        slot.line = m.line();
        M kept = m;
        if (to != kMemory)
            State::forget(kept);
        std::memcpy(slot.body, static_cast<const void *>(&kept), sizeof(M));
    }
    void wake_(Addr a, unsigned buffer = ~0u) {
        for (unsigned i = 0; i < s_.messages; ++i) {
            Message &m = s_.slots[i];
            if (m.to == controller_ && m.aside && (!a || m.aside == a) && (buffer == ~0u || m.buffer == buffer))
                m.aside = 0;
        }
    }
    Core &waiting_(Addr a, const char *what) {
        Core &c = s_.cores[controller_ - layout.base[machineID.type]];
        if (!c.waits() || c.line != a)
            throw Violation(name_of(controller_) + ": its core " + what + " line " + std::to_string(a) +
                            ", for which it has no request");
        return c;
    }
    Core &device_(Addr a, const char *what) {
        Core &c = s_.cores[State::kCores + machineID.num];
        if (!c.waits() || c.line != a)
            throw Violation(name_of(controller_) + ": its device " + what + " line " + std::to_string(a) +
                            ", for which it has no request");
        return c;
    }
    /// Ends a request to read. StaleLoad if the request may not read a value of this age.
    void read_(Core &c, Addr a, const DataBlock &d, const char *what) {
        if (d.age > c.since && c.since != Core::kManyWrites) {
            const std::string why =
                d.age <= DataBlock::kOldest ? std::to_string(d.age - c.since) + " writes replaced before the load began"
                : d.age == DataBlock::kStale ? "was overwritten before the load began, or was never filled in"
                                             : "has bytes that were not sent to DRAM yet";
            throw StaleLoad("stale data: " + name_of(controller_) + " " + what + " a value of line " +
                            std::to_string(a) + " that " + why);
        }
        c = {};
    }
};

} // namespace moscope::verify
