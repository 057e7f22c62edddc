// SPDX-License-Identifier: BSD-3-Clause
// Base of the controllers that the SLICC compiler generates: identity, clock, the wake-up discipline and the
// bookkeeping of causes. A controller wakes at edges of its clock when one of its buffers has a message due;
// it polls its in_ports by rank and runs at most `transitions_per_cycle` transitions. If the head of a buffer cannot be
// served for lack of resources, the controller tries again in the next cycle. If the protocol stalls the head, the
// controller tries again after any other transition of its own, since nothing else can change the outcome.
#pragma once

#include <array>
#include <bit>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hh"
#include "mem/ruby/runtime/cache_memory.hh"
#include "mem/ruby/runtime/crossing.hh"
#include "mem/ruby/runtime/data_block.hh"
#include "mem/ruby/runtime/directory_memory.hh"
#include "mem/ruby/runtime/history.hh"
#include "mem/ruby/runtime/message.hh"
#include "mem/ruby/runtime/message_buffer.hh"
#include "mem/ruby/runtime/message_pool.hh"
#include "mem/ruby/runtime/perfect_cache_memory.hh"
#include "mem/ruby/runtime/requests.hh"
#include "mem/ruby/runtime/tbe_table.hh"
#include "mem/ruby/runtime/timer_table.hh"
#include "mem/ruby/runtime/trace_hook.hh"
#include "sim/clock.hh"
#include "sim/event_queue.hh"

namespace moscope::ruby {

class Sequencer;
class DMASequencer;
struct MachineInfo;
struct Packet;

/// How a buffer declared by a protocol is connected.
struct BufferPort {
    const char *name;
    MessageBuffer *buffer;
    char direction; ///< 'T' to the network, 'F' from it, '-' internal
    int vnet;       ///< -1: none
    const char *vnet_type;
    bool ordered;
    std::int64_t shortest; ///< 'T': least latency of anything that is sent, in cycles
    bool unsolicited;      ///< 'F': its messages may act on lines that can be hit, not only on those waited for
};

/// What a pure hit touches; see Port.
struct HitInfo {
    Tick *stamp = nullptr;
    std::byte *bytes = nullptr;
    bool other = false; ///< an access of the other type would also be a pure hit, on the same entry
};

/// What a controller is to the machine, whatever its protocol calls it: caches hold copies, a home keeps a node's memory
/// and orders its lines, a DMA controller acts for devices.
enum class Role : std::uint8_t { cache, home, dma };

class AbstractController : public Component {
  protected:
    // Members that every wake-up reads lie together, because the host's caches seldom hold a controller that has slept.
    ClockCursor clock_;
    ClockCursor::Edge planned_; ///< the edge at which it will probably wake
    Tick now_ = 0;
    Tick again_ = kNever; ///< when to look again at a head that lacks resources, or has come back
    static constexpr unsigned kHeads = 8;
    Tick heads_[kHeads];           ///< when the first messages of buffers that in_ports read are due
    Message *cause_ = &no_message; ///< never null, so that recording and sending need no test
    Message *retired_ = nullptr;   ///< the last message taken out of a buffer; freed with the next one
    Segment work_ = Segment::cache;
    unsigned in_state_ = 0; ///< the line's state before the transition that is running
    std::uint64_t *counts_ = nullptr;
    std::vector<MessageBuffer *> in_buffers_;
    std::uint64_t stalling_ = 0; ///< those with stalled messages, by bit

  public:
    AbstractController(EventQueue &queue, std::string name, WakeFn wake, Clock clock)
        : Component(queue, std::move(name), wake), clock_(clock) {}

    // ---- set by the machine before the first tick
    const MachineInfo *info = nullptr;
    MachineID machineID;
    NodeID version = 0;
    NodeID clusterID = 0;
    NodeIndex node = 0;
    std::uint16_t chip = 0;
    std::uint16_t core = 0xffff;
    Role role = Role::cache;
    int recycle_latency = 10;
    int transitions_per_cycle = 32;
    int number_of_TBEs = 1024; ///< transitions that can stall check for a free TBE; the others rely on one
    Segment work_segment = Segment::cache;
    /// The sequencer whose lines change with this controller's transitions; one of them if there are several, whose
    /// hits are then never served inline.
    Sequencer *sequencer_ = nullptr;
    const std::vector<Sequencer *> *requestors = nullptr; ///< by core: controllers report to them what they send
    std::uint64_t as_sender = 0;                          ///< this controller in such a report: Sequencer::Sender
    TraceHook *trace = nullptr;
    MessageBuffer *memory_responses = nullptr; ///< of a home: where DRAM answers
    History *history = nullptr;
    std::byte *guest_memory = nullptr;
    bool checks_data = false;
    MachineID downstream; ///< in a hierarchy by parameters: the first of the next ones towards memory, one per home
    NetDest upstream;     ///< the controllers next towards the cores

    /// Called after the controller's number, core and chip are set.
    void report_to(const std::vector<Sequencer *> &of_cores);

    virtual std::vector<BufferPort> buffers() = 0;
    // Setters return whether the machine has such a parameter; an empty name means any of that type.
    virtual bool set_cache(std::string_view param, CacheMemory *) = 0;
    virtual bool set_directory(std::string_view param, DirectoryMemory *) = 0;
    virtual bool set_sequencer(std::string_view param, Sequencer *) = 0;
    virtual bool set_dma_sequencer(std::string_view param, DMASequencer *) = 0;
    virtual bool set_value(std::string_view param, std::int64_t) = 0;
    /// Called after all parameters are set: sizes the tables.
    virtual void init() = 0;

    // ---- state as others see it
    virtual AccessPermission permission(Addr line) = 0;
    /// State index of a line, for final-state comparisons and traces.
    virtual unsigned state_of(Addr line) = 0;
    virtual void functional_read(Addr line, Packet &pkt) = 0;
    virtual unsigned tbes_in_use() const = 0;
    /// What the controller holds of a line; for a home, of one of its own lines. Changes nothing that the protocol
    /// notices.
    virtual void view(Addr line, LineView &out) = 0;
    /// Calls f for every line that a cache array of the controller holds.
    virtual void for_each_entry(void *context, void (*f)(void *, const AbstractCacheEntry &)) = 0;
    /// Whether an access of a type is a pure hit; if so, also whether one of type `other` would be. NULL: it is not asked.
    virtual bool probe_hit(Addr line, RubyRequestType type, RubyRequestType other, HitInfo &out) = 0;

    const std::uint64_t *transition_counts() const { return counts_; }
    Tick now() const { return now_; }
    const ClockCursor &clock() const { return clock_; }

    LineStores stores;

    /// A message will be due at `arrival`: wake at the first edge from then on.
    void arrive(Tick arrival) {
        if (arrival < next_wake())
            wake_at(clock_.edge_at_or_after(arrival));
    }

    /// The crossbar's port towards this controller, and how many of the messages that wait there are for it.
    Crossing *crossing = nullptr;
    unsigned crossing_to_here = 0;
    /// A message to this controller enters the port at tick `entry`.
    void enter_crossing(Message *m, Tick entry) {
        note_crossing(*m);
        enter_between(m, entry);
    }
    /// The same, with calls only at its end, so that it saves no registers.
    [[gnu::always_inline]] void enter_crossing_now(Message *m, Tick entry) {
        note_crossing(*m);
        if (__builtin_expect(crossing->jitter != nullptr, 0))
            return enter_delayed(m, entry);
        const Tick arrival = crossing->enter_last(m, entry);
        if (__builtin_expect(arrival == kNever, 0))
            enter_between(m, entry);
        else if (arrival < next_wake())
            wake_for(arrival);
    }
    [[gnu::noinline]] void enter_between(Message *m, Tick entry) {
        if (__builtin_expect(crossing->jitter != nullptr, 0))
            return enter_delayed(m, entry);
        arrive(crossing->enter(m, entry));
    }
    /// The same with a random delay.
    [[gnu::noinline]] void enter_delayed(Message *m, Tick entry) {
        crossing->jitter->draw(*m, node, entry);
        arrive(crossing->enter(m, entry) + m->delay);
    }
    [[gnu::noinline]] void wake_for(Tick arrival) { wake_at(clock_.edge_at_or_after(arrival)); }
    /// What the controller itself records about a message that enters the port.
    void note_crossing(const Message &m) {
        ++crossing_to_here;
        stores.prefetch(m.line);
    }
    /// By virtual network: where the port puts messages for this controller; null: the network has to handle them.
    std::array<MessageBuffer *, Crossing::kVnets> from_crossing{};
    /// Edge `cycles` after the edge at or after t, for producers outside.
    Tick edge_from(Tick t, std::int64_t cycles) const { return clock_.after_edge(t, cycles); }
    ClockCursor::Edge edge_itself_from(Tick t, std::int64_t cycles) const { return clock_.edge_after(t, cycles); }

  protected:
    // ---- for generated code
    enum class Result : std::uint8_t { valid, resource_stall, protocol_stall };

    [[gnu::always_inline]] void begin_wake(Tick t) {
        if (__builtin_expect(t == planned_.tick, 1))
            clock_.move_to(planned_);
        else
            clock_.advance_to(t);
        now_ = t;
        again_ = kNever;
        if (crossing_to_here)
            crossing->grant_arrived(t); // puts the messages that have arrived into their buffers
    }
    /// Registers buffer b, once for all in_ports that read it. The tick of its head is kept in heads_[place].
    void reads(MessageBuffer &b, unsigned place) {
        reads(b);
        b.keep_head_at(&heads_[place]);
    }
    /// The same for a buffer whose head is not kept.
    void reads(MessageBuffer &b) {
        MOSCOPE_CHECK(in_buffers_.size() < 64); // bits of stalling_
        b.note_stalls_in(&stalling_, static_cast<unsigned>(in_buffers_.size()));
        in_buffers_.push_back(&b);
    }
    /// The earliest tick at which one of the first n heads is due, which may be past.
    Tick first_head(unsigned n) const {
        Tick first = kNever;
#pragma GCC unroll 8 // as in next_head()
        for (unsigned i = 0; i < n; ++i)
            first = std::min(first, heads_[i]);
        return first;
    }
    bool head_ready(unsigned place) const { return heads_[place] <= now_; }
    /// The earliest tick after now at which one of the first n heads becomes due; kNever: none. Heads that are due by
    /// now wait for another reason.
    Tick next_head(unsigned n) const {
        // Distances from the next tick. For a head that is due by now, the unsigned difference is above all others.
        std::uint64_t least = ~std::uint64_t{0};
        const std::uint64_t from = static_cast<std::uint64_t>(now_) + 1;
#pragma GCC unroll 8 // one by one: for so few heads, a loop over vectors takes twice the instructions
        for (unsigned i = 0; i < n; ++i)
            least = std::min(least, static_cast<std::uint64_t>(heads_[i]) - from);
        return static_cast<std::int64_t>(least) < 0 ? kNever : now_ + 1 + static_cast<Tick>(least);
    }
    void look_again_next_cycle() { again_ = std::min(again_, clock_.after(1)); }
    /// Stalled messages have come back to a buffer while the controller runs. It wakes again in this tick, unless
    /// rest_until() finds that it has polled the buffer since and no message is due.
    void woken() { again_ = now_; }
    /// No in_port has a message before tick `next`: there is nothing to look at again.
    Tick rest_until(Tick next) {
        again_ = kNever;
        return next;
    }
    Tick due(const MessageBuffer &b, Tick soonest) const {
        const Tick t = b.head_tick();
        return t > now_ && t < soonest ? t : soonest;
    }
    Tick due(const TimerTable &b, Tick soonest) const {
        const Tick t = b.next_tick();
        return t > now_ && t < soonest ? t : soonest;
    }
    [[gnu::always_inline]] void end_wake(Tick soonest) {
        if (crossing_to_here)
            soonest = std::min(soonest, crossing->earliest(node));
        if (soonest < next_wake())
            wake_at(clock_.edge_at_or_after(soonest));
        if (__builtin_expect(again_ != kNever, 0))
            schedule_no_later_than(again_);
        retire(nullptr);
    }
    void wake_at(const ClockCursor::Edge &e) {
        if (e.tick < next_wake()) {
            planned_ = e;
            schedule(e.tick);
        }
    }

    Tick clockEdge() const { return now_; }
    Tick clockEdge(std::int64_t cycles) const { return clock_.after(cycles); }
    std::int64_t curCycle() const { return clock_.cycle(); }
    std::int64_t ticksToCycles(Tick t) const { return clock_.clock().edge_at_or_after(t); }
    Tick cyclesToTicks(std::int64_t c) const { return clock_.clock().edge(c); }

    /// The message at the head of a port becomes the cause of what follows.
    void cause(MessageBuffer &b) { cause(b, *b.peek()); }
    /// The same if the caller has the message already.
    void cause(const MessageBuffer &b, Message &head) {
        cause_ = &head;
        head.account(b.wait_segment, now_);
        work_ = b.work_segment;
    }
    void no_cause() {
        cause_ = &no_message;
        work_ = work_segment;
    }

    /// Null: a timer, or nothing yet.
    const Message *caused_by() const { return cause_ == &no_message ? nullptr : cause_; }

    template <class T> static T *new_message() {
        T *m = message_pool().make_without_history<T>();
        m->type = T::kType;
        return m;
    }
    [[gnu::always_inline]] void send(MessageBuffer &b, Message *m, std::int64_t latency) {
        m->note_destination();
        if (b.ingress && m->to == kMaxNodes && m->dest_offset && b.vnet != 0xff && m->destination().isEmpty()) {
            message_pool().free(
                m); // no destination: protocols invalidate sets of sharers without asking whether there are any
            return;
        }
        send_on(b, m, latency);
    }
    static NodeIndex index_of(MachineID m) { return NodeMap::current->index(m); }
    /// Sends a message that goes to `to` alone.
    [[gnu::always_inline]] void send_only_to(MessageBuffer &b, Message *m, NodeIndex to, std::int64_t latency) {
        m->to = to;
        m->destination().add_index(to);
        send_on(b, m, latency);
    }
    [[gnu::always_inline]] void send_on(MessageBuffer &b, Message *m, std::int64_t latency) {
        Tick arrival = clock_.after(latency);
        note_sending(b, m, arrival);
        if (__builtin_expect(trace != nullptr, 0))
            arrival = traced_sending(*m, arrival);
        b.enqueue(m, arrival);
    }
    /// Gives a message its history and tells the requestor of it.
    [[gnu::always_inline]] void note_sending(const MessageBuffer &b, Message *m, Tick arrival) {
        m->source = node;
        m->vnet = b.vnet;
        m->inherit(*cause_);
        m->path.in[static_cast<unsigned>(work_)] += arrival - now_;
        m->stamp = arrival;
        // What the core's own controllers send counts neither as supply nor as a probe.
        if (m->txn_core != core && m->txn_core != 0xffff &&
            (m->carries_data ? !cause_->carries_data : kTold >> m->size_type & 1 || m->type == MemoryMsg::kType))
            tell_requestor(*m);
    }
    /// By bit: sizes of messages without data that an access's record counts as probes. (From a read of DRAM, the
    /// record takes the home's state.)
    static constexpr std::uint32_t kTold =
        1u << MessageSizeType_Forwarded_Control | 1u << MessageSizeType_Broadcast_Control |
        1u << MessageSizeType_Multicast_Control | 1u << MessageSizeType_Invalidate_Control;
    static_assert(MessageSizeType_NUM <= 32);
    void tell_requestor(const Message &m);
    void tell_elsewhere(const Message &m, Sequencer &to);
    [[gnu::cold, gnu::noinline]] Tick traced_sending(Message &m, Tick arrival);
    /// Takes the head of a port out; the message lives until the next one is taken out, or the wake-up ends.
    [[gnu::always_inline]] Tick dequeue(MessageBuffer &b) {
        retire(b.peek() == cause_ ? b.pop_accounted() : b.pop(now_));
        return 0;
    }
    [[gnu::always_inline]] void retire(Message *m) {
        if (retired_)
            message_pool().free(retired_);
        retired_ = m;
    }
    void wake_buffers(Addr line) {
        if (stalling_)
            wake_stalled(line);
    }
    [[gnu::noinline]] void wake_stalled(Addr line) {
        for (std::uint64_t left = stalling_; left; left &= left - 1)
            in_buffers_[static_cast<std::size_t>(std::countr_zero(left))]->wake(line);
    }
    void wake_all_buffers() {
        if (stalling_)
            wake_all_stalled();
    }
    [[gnu::noinline]] void wake_all_stalled() {
        for (std::uint64_t left = stalling_; left; left &= left - 1)
            in_buffers_[static_cast<std::size_t>(std::countr_zero(left))]->wake_all();
    }
    /// Called before a line changes: wakes a core that sleeps until then.
    inline void before_change(Addr line);
    /// Inline slots of the core may not outlive a transition on their line.
    inline void forget_line(Addr line);

    [[gnu::always_inline]] void traced(unsigned state, unsigned event, unsigned next, Addr line) {
        history->next() = {now_,
                           line,
                           cause_->uid,
                           node,
                           static_cast<std::uint16_t>(state),
                           static_cast<std::uint16_t>(event),
                           static_cast<std::uint16_t>(next),
                           cause_->type,
                           cause_->source};
    }
    /// After the line's state has been set.
    void settled(unsigned state, unsigned event, unsigned next, Addr line) {
        if (__builtin_expect(trace != nullptr, 0))
            trace->transition(*this, now_, state, event, next, line, caused_by());
    }

    [[noreturn]] void no_transition(unsigned state, unsigned event, Addr line);
    [[noreturn]] void protocol_error(const std::string &what, const char *file, int line);
    [[noreturn, gnu::cold, gnu::noinline]] void assertion_failed(const char *what, const char *file, int line) {
        protocol_error(what, file, line);
    }
    [[gnu::always_inline]] void protocol_assert(bool ok, const char *what, const char *file, int line) {
        if (__builtin_expect(!ok, 0))
            assertion_failed(what, file, line);
    }

    // Under the names that protocols declare.
    void wakeUpBuffers(Addr a) { wake_buffers(a); }
    void wakeUpBuffer(Addr a) { wake_buffers(a); }
    void wakeUpAllBuffers() { wake_all_buffers(); }
    void wakeUpAllBuffers(Addr a) { wake_buffers(a); }

    void dequeueMemRespQueue() { dequeue(*memory_responses); }
    void profileMsgDelay(int, std::int64_t) {}
    // Of protocols whose controllers form a hierarchy by parameters (foreign/located.hh has the rest).
    MachineID mapAddressToDownstreamMachine(Addr a) const;
    bool respondsTo(Addr a) const;

    void functionalMemoryRead(Packet *pkt);
    bool functionalMemoryWrite(Packet *pkt);

    friend class MessageBuffer;
    friend class Sequencer;
    friend class DMASequencer;
};

[[gnu::always_inline]] inline void Crossing::grant_arrived(Tick now) {
    for (Tick entry; (entry = waiting.front_tick()) < now && std::max(entry, free_at) + latency <= now;)
        grant_first();
}

[[gnu::always_inline]] inline void Crossing::grant_first() {
    const auto [entry, m] = waiting.front();
    waiting.pop();
    AbstractController &to = *controllers[m->to];
    --to.crossing_to_here;
    MessageBuffer *const buffer = to.from_crossing[m->vnet % kVnets];
    if (__builtin_expect((m->hops >= kHops) | m->entered | otherwise_, 0) || __builtin_expect(!buffer, 0))
        grant_otherwise(m, entry, buffer);
    else
        pass(m, entry, *buffer, m->hops, [](Tick earliest) { return earliest; });
}

template <class Arrival>
[[gnu::always_inline]] inline void Crossing::pass(Message *m, Tick entry, MessageBuffer &buffer, unsigned column,
                                                  Arrival &&arrival_of) {
    const unsigned hops = m->hops;
    Kind &k = kinds[kind_number(m->vnet, column, m->carries_data)];
    const Tick across = latency; // read once: the compiler must assume that the writes below change it
    const Tick start = std::max(entry, free_at), arrival = arrival_of(start + across);
    free_at = start + occupancy(*m);
    ++k.messages;
    k.wait += start - entry;
    k.latency += arrival - m->stamp;
    m->path.in[static_cast<unsigned>(Segment::queue)] += start - m->stamp + (arrival - (start + across));
    m->path.in[static_cast<unsigned>(Segment::crossbar)] += across;
    m->stamp = arrival;
    buffer.deliver_expected(m, arrival);
    if (hops)
        left_input(*this, *m, start);
}

inline void MessageBuffer::enqueue_at_edge(Message *m, const ClockCursor::Edge &edge) {
    queue_.insert(edge.tick, m);
    note_head();
    if (queue_.front_tick() == edge.tick)
        consumer->wake_at(edge);
}

// ---- what a protocol library describes of itself

struct StateInfo {
    const char *name;
    AccessPermission permission;
};

struct TransitionInfo {
    std::uint16_t state, event;
    std::int16_t next;   ///< -1: computed
    const char *actions; ///< names, comma separated
    bool stall;
};

struct MachineInfo {
    MachineType type;
    const char *name;
    unsigned states, events;
    const StateInfo *state;
    const char *const *event;
    const TransitionInfo *transition;
    unsigned transitions;
    AbstractController *(*create)(EventQueue &, std::string name, Clock);
};

struct ProtocolInfo {
    const char *name;
    bool checks_data;
    const MachineInfo *machine;
    unsigned machines;
    const char *const *message_type; ///< names by Message::type
    unsigned message_types;
    /// Text of a message's fields, for traces and reports.
    std::string (*describe)(const Message &);
};

} // namespace moscope::ruby
