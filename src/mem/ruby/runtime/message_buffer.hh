// SPDX-License-Identifier: BSD-3-Clause
// SLICC's MessageBuffer. Three roles: leading into the network ("To": messages go to the ingress of the
// chip's router), out of it ("From"), or inside a controller (mandatory queue, trigger queue, memory). A buffer
// holds messages in the order of their arrival ticks; the controller sees the head once its tick has come. A
// message can be recycled (put back later) or set aside by address (stall_and_wait) until it is woken.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "mem/ruby/runtime/message_pool.hh"
#include "mem/ruby/runtime/timed_queue.hh"
#include "sim/clock.hh"
#include "sim/event_queue.hh"

namespace moscope::ruby {

class AbstractController;

/// Where messages of a chip's controllers enter the network; owned by the router, which drains it.
struct Ingress {
    EntryQueue queue;
    Component *router = nullptr; ///< wakes for them
    void *owner = nullptr;       ///< for the functions below
    // `router` may wake for several routers (Rounds): it serves those whose bit is set in `active`.
    std::uint64_t alone = 0, *active = &alone;
    std::uint64_t bit = 1;
    /// By node: with `direct`, the controllers of the same chip, which messages reach without a wake-up of the router;
    /// else null. kMaxNodes (several destinations): null. Like all others, these messages are ordered by `entry`.
    std::array<AbstractController *, kMaxNodes + 1> same_chip{};
    bool direct = false;
    /// With `direct`: takes a message whose destinations are all in `same_chip`. False: it has others, too, or none.
    bool (*split)(Ingress &, Message *, Tick ready) = nullptr;
    std::uint32_t entry = 0; ///< number of the next message to enter
    Tick slack = 0;          ///< how much later than the entry of a message for one destination the router may wake
    /// Until this tick the router must wake in time, because a message for several destinations enters or arrives then.
    Tick prompt = 0;
    /// Kept by the network: virtual networks, by bit, of which a message has gone through a router, not directly. All
    /// bits are set if there is no need to know.
    const std::uint32_t *routed = &kAllVnets;
    static constexpr std::uint32_t kAllVnets = ~0u;
    /// Called before the first message of a virtual network (given by its bit) goes through the router: sets the bit at
    /// all routers, also at those of other queues.
    void (*first_routed)(Ingress &, std::uint32_t vnet) = nullptr;

    /// Takes a message that has noted its destination.
    void push(Message *m, Tick ready);
    void push_inline(Message *m, Tick ready); ///< for MessageBuffer::enqueue alone
    /// There is something to decide: the router wakes at t or earlier.
    void wake(Tick t) {
        *active |= bit;
        router->schedule_no_later_than(t);
    }

  private:
    void push_to_router(Message *m, Tick ready);
    void push_first_to_router(Message *m, Tick ready);
    void push_to_several(Message *m, Tick ready);
    bool noted(const Message &m) const { return (*routed >> (m.vnet & 31) & 1) != 0; }
    void note_routed(const Message &m) {
        if (!noted(m))
            first_routed(*this, 1u << (m.vnet & 31));
    }
};

class MessageBuffer {
  public:
    MessageBuffer() = default;
    MessageBuffer(const MessageBuffer &) = delete; // head_ may point into it
    MessageBuffer &operator=(const MessageBuffer &) = delete;

    std::string name;
    AbstractController *consumer = nullptr; ///< wakes when a message arrives
    Ingress *ingress = nullptr;             ///< "To" the network when set
    std::uint8_t vnet = 0xff;
    bool ordered = false;                  ///< as declared; keep_order() where the network keeps it
    unsigned capacity = 0;                 ///< messages; 0: not bounded
    Segment wait_segment = Segment::queue; ///< what waiting in this buffer is charged to
    Segment work_segment = Segment::cache; ///< what acting on its messages is charged to

    /// "To" buffers: messages to one destination enter the network in the order in which they are sent.
    void keep_order() { latest_.resize(kMaxNodes); }
    /// Sends m so that it arrives (or enters the network) at `arrival`. The time until then has been accounted.
    void enqueue(Message *m, Tick arrival);
    /// Sends m from within the controller, to arrive at an edge of its clock.
    inline void enqueue_at_edge(Message *m, const ClockCursor::Edge &edge);
    /// Delivery by the network.
    void deliver(Message *m, Tick arrival);
    /// The same if the consumer is going to wake at `arrival` or before anyway.
    void deliver_expected(Message *m, Tick arrival) {
        queue_.insert(arrival, m);
        note_head();
    }

    bool isReady(Tick now) const { return queue_.front_tick() <= now; }
    Tick head_tick() const { return queue_.front_tick(); }
    Message *peek() const { return queue_.front().item; }
    /// Takes the head out; the caller owns it.
    Message *pop(Tick now) {
        Message *m = queue_.front().item;
        queue_.pop();
        note_head();
        m->account(wait_segment, now);
        return m;
    }
    /// The same of a head whose time has been accounted up to now.
    Message *pop_accounted() {
        Message *m = queue_.front().item;
        queue_.pop();
        note_head();
        return m;
    }
    void recycle(Tick now, Tick again) {
        Message *m = queue_.front().item;
        queue_.pop();
        (void)now;
        put_back(m, again);
    }
    void stall(Addr line) {
        const Stalled stalled{line, queue_.front().tick, queue_.front().item};
        queue_.pop();
        note_head();
        *stalling_ |= bit_;
        stalled_.push_back(stalled); // last, so that nothing is kept across the call that may make room
    }
    /// Puts the messages stalled for `line` back, before younger ones. True if there were any. The consumer calls this
    /// while it runs.
    bool wake(Addr line);
    bool wake_all();

    bool isEmpty() const { return queue_.empty(); }
    bool isStallMapEmpty() const { return stalled_.empty(); }
    /// Number of lines with stalled messages.
    int getStallMapSize() const;
    bool hasStalledMsg(Addr line) const {
        for (const auto &s : stalled_)
            if (s.line == line)
                return true;
        return false;
    }
    bool areNSlotsAvailable(unsigned n, Tick) const { return capacity == 0 || held() + n <= capacity; }
    /// Number of messages, without stalled ones (areNSlotsAvailable counts these, too).
    int getSize(Tick) const { return static_cast<int>(ingress ? in_network_entry : queue_.size()); }
    unsigned held() const {
        return ingress ? in_network_entry : queue_.size() + static_cast<unsigned>(stalled_.size());
    }
    /// Where the consumer wants head_tick() kept, beside those of its other buffers.
    void keep_head_at(Tick *place) {
        head_ = place;
        note_head();
    }
    /// Where the consumer keeps, by bit, which of its buffers have stalled messages; this one has bit number `place`.
    void note_stalls_in(std::uint64_t *buffers, unsigned place) {
        stalling_ = buffers;
        bit_ = std::uint64_t{1} << place;
    }
    /// "To" buffers with a capacity: messages that the router has not taken yet.
    unsigned in_network_entry = 0;

    /// Calls f(Message&, tick, stalled) for each message held, for error reports and functional accesses.
    template <class F> void for_each(F &&f) {
        for (unsigned i = 0; i < queue_.size(); ++i)
            f(*queue_.at(i).item, queue_.at(i).tick, false);
        for (auto &s : stalled_)
            f(*s.message, s.tick, true);
    }

  private:
    struct Stalled {
        Addr line;
        Tick tick;
        Message *message;
    };
    void enqueue_to_several(Message *m, Tick arrival);
    void put(Message *m, Tick arrival);
    void put_back(Message *m, Tick arrival);
    void note_head() { *head_ = queue_.front_tick(); }

    TimedQueue<Message *> queue_;
    Tick unread_head_ = kNever; ///< where head_tick() is kept of a buffer whose consumer does not ask for it
    Tick *head_ = &unread_head_;
    std::vector<Stalled> stalled_;
    std::uint64_t unread_stalls_ = 0, *stalling_ = &unread_stalls_, bit_ = 1;
    std::vector<Tick> latest_; ///< by destination: when the last message to it enters the network; empty: no order
};

} // namespace moscope::ruby
