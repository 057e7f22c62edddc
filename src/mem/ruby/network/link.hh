// SPDX-License-Identifier: BSD-3-Clause
// The sending side of one direction of a HyperTransport link: its wire (serialization at width x clock x 2),
// the buffers at the far side as credits per channel and a free list for all, and the packets that wait for it, by channel and input
// port. HyperTransport I/O Link Specification 3.10: section 4.2 (virtual channels), 4.8 (flow control).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
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
    T &front() { return ring_[head_]; }
    const T &at(unsigned i) const { return ring_[(head_ + i) & mask_]; }
    void push(const T &item) {
        if (__builtin_expect(count_ == ring_.size(), 0))
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
        mask_ = static_cast<unsigned>(ring_.size()) - 1;
    }
    std::vector<T> ring_;
    unsigned head_ = 0, count_ = 0, mask_ = 0;
};

/// Buffers at the far side of a link that the sender may use, each represented by the tick from which it may, oldest first.
class CreditPool {
  public:
    void init(unsigned n) {
        free_.assign(std::bit_ceil(std::max(n, 1u)), 0);
        mask_ = static_cast<unsigned>(free_.size()) - 1;
        end_ = n;
    }
    bool empty() const { return first_ == end_; }
    /// The oldest; there is one.
    Tick front() const { return free_[first_ & mask_]; }
    /// kNever: there is none.
    Tick next() const { return empty() ? kNever : front(); }
    void take() { ++first_; }
    /// from: not before that of any other buffer.
    void give(Tick from) { free_[end_++ & mask_] = from; }
    void give_in_order(Tick from) {
        unsigned i = end_++;
        for (; i != first_ && free_[(i - 1) & mask_] > from; --i)
            free_[i & mask_] = free_[(i - 1) & mask_];
        free_[i & mask_] = from;
    }

  private:
    std::vector<Tick> free_; ///< a ring with room for all buffers
    unsigned first_ = 0, end_ = 0, mask_ = 0;
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

        bool none(const CreditPool &free) const { return own.empty() && free.empty(); }
        Tick next(const CreditPool &free) const { return std::min(own.next(), free.next()); }
        void take(CreditPool &free) {
            if (!own.empty() && (free.empty() || own.front() <= free.front())) {
                own.take();
            } else {
                free.take();
                ++borrowed;
            }
        }
        /// Where a buffer goes back to: to the free list first.
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
        std::uint32_t waiting = 0;      ///< input ports with a packet
        unsigned next_input = 0;        ///< where the search for the next packet begins
        Tick serialization[2] = {0, 0}; ///< without, with data
        Tick on_link[2] = {0, 0};       ///< with the flight
        std::uint64_t sent[2] = {0, 0}; ///< packets
        Tick wait = 0;                  ///< sum over packets
        Tick credit_stall = 0;
        Tick blocked_since = kNever;      ///< later than now while the link is busy
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
            sent[0] = sent[1] = 0;
            wait = credit_stall = 0;
            if (blocked_since != kNever)
                blocked_since = std::max(blocked_since, now);
        }
    };

    /// The buffers of a packet behind the link that are free again, on their way to the sender: a ring with room for the
    /// buffers of all channels, in the order of the ticks from which they may be used.
    class Returning {
      public:
        struct Return {
            Tick usable;
            std::uintptr_t of; ///< the channel, plus one if a data buffer is free, too
        };
        void init(unsigned n) {
            ring_.resize(std::bit_ceil(std::max(n, 1u)));
            mask_ = static_cast<unsigned>(ring_.size()) - 1;
        }
        Tick next() const { return next_; }
        /// Takes out those that may be used from this tick on, or before, and calls f(channel, with data, tick) for each; there is one.
        template <class F> [[gnu::always_inline]] void take_until(Tick usable, F &&f) {
            unsigned i = first_;
            Tick t = ring_[i & mask_].usable;
            do {
                const std::uintptr_t of = ring_[i & mask_].of;
                f(*reinterpret_cast<Channel *>(of & ~std::uintptr_t{1}), (of & 1) != 0, t);
                t = ++i == end_ ? kNever : ring_[i & mask_].usable;
            } while (t <= usable);
            first_ = i;
            next_ = t;
        }
        void push(Tick usable, Channel &channel, bool data) {
            const Return r{usable, reinterpret_cast<std::uintptr_t>(&channel) | std::uintptr_t{data}};
            unsigned i = end_++;
            for (; __builtin_expect(i != first_ && ring_[(i - 1) & mask_].usable > r.usable, 0); --i)
                ring_[i & mask_] = ring_[(i - 1) & mask_];
            ring_[i & mask_] = r;
            next_ = std::min(next_, r.usable);
        }

      private:
        Tick next_ = kNever; ///< looked at far more often than changed
        std::vector<Return> ring_;
        unsigned first_ = 0, end_ = 0, mask_ = 0;
    };

    /// The sender learns which buffers may be used from this tick on, or before. Only then it decides whose they are.
    [[gnu::always_inline]] void take_back(Tick usable) {
        if (returning.next() > usable)
            return;
        if (__builtin_expect(credit_flight < crossbar, 0)) {
            take_back_in_order(usable);
            return;
        }
        returning.take_until(usable, [this](Channel &c, bool data, Tick from) {
            c.commands.giver(free_commands).give(from);
            if (data)
                c.data.giver(free_data).give(from);
        });
    }
    /// Where what comes back later may be usable before.
    [[gnu::noinline]] void take_back_in_order(Tick usable) {
        returning.take_until(usable, [this](Channel &c, bool data, Tick from) {
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

    /// The link is busy until `until` from now on: channels that have no buffer lose no time meanwhile.
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

    Tick free_at = 0;          ///< next grant
    Tick wake_at = kNever;     ///< when to look at the waiting packets again
    std::uint32_t waiting = 0; ///< channels with a packet
    unsigned next_channel = 0;
    std::vector<Channel> channel;
    CreditPool free_commands, free_data; ///< for whichever channel needs them
    Returning returning;
    bool crosses = false; ///< the two routers belong to different queues
    bool traced = false;  ///< the network has a trace
    NetDest reach;        ///< controllers to which it leads
};

} // namespace moscope::ruby
