// SPDX-License-Identifier: BSD-3-Clause
// The sending side of one direction of a HyperTransport link: its wire (serialization at width x clock x 2), the
// buffers at the far side, as credits per channel and a free list for all, and the packets that wait for the link, by
// channel and input port. HyperTransport I/O Link Specification 3.10: section 4.2 (virtual channels), 4.8 (flow
// control).
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "mem/ruby/network/params.hh"
#include "mem/ruby/network/stats.hh"
#include "mem/ruby/runtime/message.hh"
#include "mem/ruby/runtime/timed_queue.hh"

namespace moscope::ruby {

class Router;

/// First in first out: a ring that grows by doubling.
template <class T> class Fifo {
  public:
    bool empty() const { return count_ == 0; }
    unsigned size() const { return count_; }
    const T &front() const { return ring_[head_]; }
    const T &at(unsigned i) const { return ring_[(head_ + i) & mask_]; }
    void push(const T &item) {
        if (__builtin_expect(count_ == room_, 0))
            grow();
        ring_[(head_ + count_++) & mask_] = item;
    }
    void pop() {
        head_ = (head_ + 1) & mask_;
        --count_;
    }

  private:
    [[gnu::noinline]] void grow() {
        std::vector<T> bigger(ring_.empty() ? 4 : 2 * ring_.size());
        for (unsigned i = 0; i < count_; ++i)
            bigger[i] = at(i);
        ring_.swap(bigger);
        head_ = 0;
        room_ = static_cast<unsigned>(ring_.size());
        mask_ = room_ - 1;
    }
    std::vector<T> ring_;
    unsigned head_ = 0, count_ = 0, mask_ = 0, room_ = 0;
};

/// The element after `at` in the ring [begin, limit).
template <class T> T *next_in_ring(T *at, T *begin, T *limit) { return ++at == limit ? begin : at; }

/// Free buffers at the far side of a link, each stored as the tick from which the sender may use it, earliest first.
class CreditPool {
  public:
    void init(unsigned n) {
        ring_ = std::make_unique<Tick[]>(n + 1);
        first_ = ring_.get();
        end_ = first_ + n;
        limit_ = end_ + 1;
        *end_ = kNever;
    }
    /// The tick of the oldest; kNever: there is none.
    Tick next() const { return *first_; }
    void take() { first_ = next_in_ring(first_, ring_.get(), limit_); }
    /// `from` is not earlier than the tick of any other buffer in the pool.
    void give(Tick from) {
        *end_ = from;
        end_ = next_in_ring(end_, ring_.get(), limit_);
        *end_ = kNever;
    }
    /// The same for any `from`.
    void give_in_order(Tick from) {
        Tick *at = end_;
        for (; at != first_; at = before(at)) {
            const Tick earlier = *before(at);
            if (earlier <= from)
                break;
            *at = earlier;
        }
        *at = from;
        end_ = next_in_ring(end_, ring_.get(), limit_);
        *end_ = kNever;
    }

  private:
    Tick *before(Tick *at) const { return (at == ring_.get() ? limit_ : at) - 1; }

    Tick *first_ = nullptr, *end_ = nullptr, *limit_ = nullptr;
    std::unique_ptr<Tick[]> ring_; ///< with room for all buffers and, behind the youngest, kNever
};

/// A packet that waits at a router; its place in the input buffer (slot) is shared by the parts of a multicast.
struct Waiting {
    Message *message = nullptr;
    std::uint32_t slot = 0; ///< 0: the input buffer is this packet's alone
};

struct Link {
    /// Buffers of one kind for one channel: its own, and those it has taken from the link's free list.
    struct Buffers {
        CreditPool own;
        unsigned borrowed = 0;

        bool none(const CreditPool &free) const { return own.next() == kNever && free.next() == kNever; }
        Tick next(const CreditPool &free) const { return std::min(own.next(), free.next()); }
        /// Takes the buffer that may be used first; there is one.
        void take(CreditPool &free) {
            if (own.next() <= free.next()) {
                own.take();
            } else {
                free.take();
                ++borrowed;
            }
        }
        /// The pool to which a buffer returns: the free list as long as any is borrowed from it.
        CreditPool &giver(CreditPool &free) {
            if (borrowed == 0)
                return own;
            --borrowed;
            return free;
        }
    };

    struct Channel {
        Buffers commands, data;
        unsigned number = 0;
        unsigned next = 0;              ///< the channel whose turn it is after this one
        std::uint32_t waiting = 0;      ///< input ports with a packet
        unsigned next_input = 0;        ///< where the search for the next packet begins
        Tick serialization[2] = {0, 0}; ///< without, with data
        Tick on_link[2] = {0, 0};       ///< serialization and flight
        std::uint64_t sent[2] = {0, 0}; ///< packets
        std::uint64_t entered = 0;      ///< messages for one destination from the near router's chip, sent or waiting
        Tick wait = 0;                  ///< sum over packets
        Tick credit_stall = 0;
        Tick blocked_since = kNever;      ///< kNever: not blocked; later than now while the link is busy
        std::vector<Fifo<Waiting>> queue; ///< by input port
        unsigned bytes[2] = {0, 0};

        LinkChannelStats counted() const {
            LinkChannelStats s;
            s.packets = sent[0] + sent[1];
            s.data_packets = sent[1];
            s.bytes = sent[0] * bytes[0] + sent[1] * bytes[1];
            s.busy_fs = static_cast<Tick>(sent[0]) * serialization[0] + static_cast<Tick>(sent[1]) * serialization[1];
            s.wait_fs = wait;
            s.credit_stall_fs = credit_stall;
            return s;
        }
        void reset_counts(Tick now) {
            sent[0] = sent[1] = entered = 0;
            wait = credit_stall = 0;
            if (blocked_since != kNever)
                blocked_since = std::max(blocked_since, now);
        }
    };

    /// The buffers of a packet behind the link, which are free again.
    struct Return {
        Tick tick;         ///< from which they may be used
        std::uintptr_t of; ///< the channel, plus one if a data buffer is free, too
    };
    /// Freed buffers of which the sender does not know yet, in the order of the ticks from which they may be used.
    class Returning : public TickStretch<Return> {
        static constexpr std::uintptr_t kData = 1;

      public:
        /// Takes out the entries that may be used at tick `usable` or earlier, of which there is at least one, and
        /// calls f(channel, whether with data, tick) for each.
        template <class F> [[gnu::always_inline]] void take_until(Tick usable, F &&f) {
            Return *i = first_;
            Tick t = i->tick;
            do {
                const std::uintptr_t of = i->of;
                f(*reinterpret_cast<Channel *>(of & ~kData), of & kData, t);
                t = (++i)->tick;
            } while (t <= usable);
            first_ = i;
        }
        /// Appends an entry. False, and nothing is done: an earlier entry may be used only later, or there is no room.
        [[gnu::always_inline]] bool push(Tick usable, Channel &channel, bool data) {
            if (__builtin_expect(usable < last_ || full(), 0))
                return false;
            last_ = usable;
            *append() = {usable, tagged(channel, data)};
            return true;
        }
        void push_between(Tick usable, Channel &channel, bool data) {
            last_ = std::max(last_, usable);
            if (full())
                make_room();
            *place(usable) = {usable, tagged(channel, data)};
        }

      private:
        static std::uintptr_t tagged(Channel &channel, bool data) {
            static_assert(kData == 1);
            return reinterpret_cast<std::uintptr_t>(&channel) | std::uintptr_t{data};
        }

        Tick last_ = 0; ///< the latest tick so far
    };

    /// Gives the sender the buffers that it may use at tick `usable` or earlier, and decides to which pools they go.
    [[gnu::always_inline]] void take_back(Tick usable) {
        if (returning.front_tick() > usable)
            return;
        if (__builtin_expect(unordered, 0)) {
            take_back_in_order(usable);
            return;
        }
        returning.take_until(usable, [this](Channel &c, std::uintptr_t data, Tick from) {
            c.commands.giver(free_commands).give(from);
            if (data)
                c.data.giver(free_data).give(from);
        });
    }
    /// The same if a buffer that is freed later may be usable earlier.
    [[gnu::noinline]] void take_back_in_order(Tick usable) {
        returning.take_until(usable, [this](Channel &c, std::uintptr_t data, Tick from) {
            c.commands.giver(free_commands).give_in_order(from);
            if (data)
                c.data.giver(free_data).give_in_order(from);
        });
    }
    /// Whether there are buffers for a packet of a channel, as far as they have come back.
    bool has_credit(const Channel &c, bool with_data) const {
        return !c.commands.none(free_commands) && (!with_data || !c.data.none(free_data));
    }
    /// From the grant of a packet to its arrival at the far router.
    Tick way(const Channel &c, bool with_data) const { return crossbar + c.on_link[with_data]; }

    /// Tick from which a packet of a channel may be on the wire, if it has credit.
    Tick credit(const Channel &c, bool with_data) const {
        const Tick command = c.commands.next(free_commands);
        return with_data ? std::max(command, c.data.next(free_data)) : command;
    }

    /// The link is busy from now until `until`; meanwhile, the lack of a buffer costs a channel no time.
    [[gnu::noinline]] void interrupt_stalls(Tick now, Tick until) {
        for (Channel &c : channel)
            if (c.blocked_since != kNever) {
                c.credit_stall += std::max<Tick>(0, now - c.blocked_since);
                c.blocked_since = until;
            }
    }

    Router *from = nullptr, *to = nullptr;
    std::array<Channel *, kMaxVnets> of_vnet{}; ///< null: no such virtual network
    unsigned index = 0;                         ///< among the router's outputs
    unsigned input = 0;                         ///< input port at the far router
    Tick crossbar = 0;                          ///< of the near router
    Tick flight = 0;
    Tick credit_flight = 0;
    bool unordered = false; ///< credit_flight < crossbar: a buffer that is freed later may be usable earlier

    Tick free_at = 0;          ///< next grant
    Tick wake_at = kNever;     ///< when to look at the waiting packets again
    std::uint32_t waiting = 0; ///< channels with a packet in a queue, by bit; or kSole
    /// Instead of channels: `sole` is the only packet that waits, and is in no queue. This is the usual case of
    /// waiting.
    static constexpr std::uint32_t kSole = std::uint32_t{1} << 31;
    struct Sole {
        Message *message = nullptr;
        Channel *channel = nullptr;
        unsigned input = 0;
    };
    Sole sole;
    unsigned blocked = 0; ///< number of channels whose packets wait for a buffer: blocked_since is not kNever
    unsigned next_channel = 0;
    std::vector<Channel> channel;
    CreditPool free_commands, free_data; ///< for whichever channel needs them
    Returning returning;
    bool crosses = false;  ///< the two routers belong to different queues
    bool observed = false; ///< `crosses`, or the network has a trace
    NetDest reach;         ///< controllers to which it leads
};

} // namespace moscope::ruby
