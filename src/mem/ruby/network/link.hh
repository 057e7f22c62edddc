// SPDX-License-Identifier: BSD-3-Clause
// The sending side of one direction of a HyperTransport link: its wire (serialization at width x clock x 2),
// the buffers at the far side as credits per channel and a free list for all, and the packets that wait for it, by channel and input
// port. HyperTransport I/O Link Specification 3.10: section 4.2 (virtual channels), 4.8 (flow control).
#pragma once

#include <algorithm>
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
    const T &at(unsigned i) const { return ring_[(head_ + i) & (ring_.size() - 1)]; }
    void push(const T &item) {
        if (count_ == ring_.size()) {
            std::vector<T> bigger(ring_.empty() ? 4 : 2 * ring_.size());
            for (unsigned i = 0; i < count_; ++i)
                bigger[i] = at(i);
            ring_.swap(bigger);
            head_ = 0;
        }
        ring_[(head_ + count_++) & (ring_.size() - 1)] = item;
    }
    void pop() {
        head_ = (head_ + 1) & (static_cast<unsigned>(ring_.size()) - 1);
        --count_;
    }

  private:
    std::vector<T> ring_;
    unsigned head_ = 0, count_ = 0;
};

/// Buffers at the far side of a link, each represented by the tick from which the sender may use it again.
/// A buffer that holds a packet whose departure is not known yet is in no list.
class CreditPool {
  public:
    void init(unsigned n) {
        free_.assign(std::bit_ceil(std::max(n, 1u)), 0);
        mask_ = static_cast<unsigned>(free_.size()) - 1;
        count_ = n;
    }
    /// Tick from which a buffer is free; kNever if that is not known yet.
    Tick next() const { return count_ ? free_[first_ & mask_] : kNever; }
    void take() {
        ++first_;
        --count_;
    }
    void give(Tick from) {
        unsigned i = first_ + count_++;
        for (; i != first_ && free_[(i - 1) & mask_] > from; --i) // only where credits are faster than the crossbar
            free_[i & mask_] = free_[(i - 1) & mask_];
        free_[i & mask_] = from;
    }

  private:
    std::vector<Tick> free_; ///< a ring with room for all buffers, in order
    unsigned first_ = 0, count_ = 0, mask_ = 0;
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

        Tick next(const CreditPool &free) const { return std::min(own.next(), free.next()); }
        void take(CreditPool &free) {
            if (own.next() <= free.next()) {
                own.take();
            } else {
                free.take();
                ++borrowed;
            }
        }
        /// A channel gives back to the free list first.
        void give(CreditPool &free, Tick from) {
            if (borrowed) {
                --borrowed;
                free.give(from);
            } else {
                own.give(from);
            }
        }
    };

    struct Channel {
        Buffers commands, data;
        Tick serialization[2] = {0, 0}; ///< without, with data
        unsigned bytes[2] = {0, 0};
        std::vector<Fifo<Waiting>> queue; ///< by input port
        std::uint32_t waiting = 0;        ///< input ports with a packet
        unsigned next_input = 0;          ///< where the search for the next packet begins
        Tick blocked_since = kNever;
        LinkChannelStats stats; ///< but for what counted() adds

        /// The statistics, with what follows from the number of packets.
        LinkChannelStats counted() const {
            LinkChannelStats s = stats;
            const std::uint64_t n[2] = {s.packets - s.data_packets, s.data_packets};
            for (unsigned with_data = 0; with_data < 2; ++with_data) {
                s.bytes += n[with_data] * bytes[with_data];
                s.busy_fs += static_cast<Tick>(n[with_data]) * serialization[with_data];
            }
            return s;
        }
    };

    /// The buffers of a packet behind the link that are free again, on their way to the sender.
    struct Return {
        std::uint8_t channel;
        bool data; ///< a data buffer, too
    };
    /// The sender learns which buffers may be used from this tick on, or before. Only then it decides whose they are.
    void take_back(Tick usable) {
        while (returning.front_tick() <= usable) {
            const auto [tick, r] = returning.front();
            returning.pop();
            Channel &c = channel[r.channel];
            c.commands.give(free_commands, tick);
            if (r.data)
                c.data.give(free_data, tick);
        }
    }
    /// From the grant of a packet to its arrival at the far router.
    Tick way(const Channel &c, bool with_data) const { return crossbar + c.serialization[with_data] + flight; }

    /// Tick from which a packet of a channel may be on the wire, as far as buffers are concerned that have come back.
    Tick credit(const Channel &c, bool with_data) const {
        const Tick command = c.commands.next(free_commands);
        return with_data ? std::max(command, c.data.next(free_data)) : command;
    }

    Router *from = nullptr, *to = nullptr;
    unsigned index = 0; ///< among the router's outputs
    unsigned input = 0; ///< input port at the far router
    Tick crossbar = 0;  ///< of the near router
    Tick flight = 0;
    Tick credit_flight = 0;

    Tick free_at = 0;          ///< next grant
    Tick wake_at = kNever;     ///< when to look at the waiting packets again
    std::uint32_t waiting = 0; ///< channels with a packet
    unsigned next_channel = 0;
    std::vector<Channel> channel;
    CreditPool free_commands, free_data; ///< for whichever channel needs them
    TimedQueue<Return> returning;        ///< by the tick from which they may be used
    bool crosses = false;                ///< the two routers belong to different queues
    NetDest reach;                       ///< controllers to which it leads
};

} // namespace moscope::ruby
