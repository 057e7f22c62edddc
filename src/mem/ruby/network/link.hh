// SPDX-License-Identifier: BSD-3-Clause
// The sending side of one direction of a HyperTransport link: its wire (serialization at width x clock x 2),
// the buffers at the far side as credits per channel and a free list for all, and the packets that wait for it, by channel and input
// port. HyperTransport I/O Link Specification 3.10: section 4.2 (virtual channels), 4.8 (flow control).
#pragma once

#include <algorithm>
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
        for (unsigned i = 0; i < n; ++i)
            free_.insert(0, {});
    }
    /// Tick from which a buffer is free; kNever if that is not known yet.
    Tick next() const { return free_.front_tick(); }
    void take() { free_.pop(); }
    void give(Tick from) { free_.insert(from, {}); }
    unsigned size() const { return free_.size(); }

  private:
    struct Nothing {};
    TimedQueue<Nothing> free_;
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

    /// A buffer behind the link that is free again, on its way to the sender.
    struct Return {
        std::uint8_t channel;
        bool data;
    };
    /// The sender learns which buffers may be used from this tick on, or before. Only then it decides whose they are.
    void take_back(Tick usable) {
        while (returning.front_tick() <= usable) {
            const auto [tick, r] = returning.front();
            returning.pop();
            Channel &c = channel[r.channel];
            r.data ? c.data.give(free_data, tick) : c.commands.give(free_commands, tick);
        }
    }

    /// Tick from which a packet of a channel may be on the wire, as far as buffers are concerned that have come back.
    Tick credit(const Channel &c, bool with_data) const {
        const Tick command = c.commands.next(free_commands);
        return with_data ? std::max(command, c.data.next(free_data)) : command;
    }

    Router *from = nullptr, *to = nullptr;
    unsigned index = 0; ///< among the router's outputs
    unsigned input = 0; ///< input port at the far router
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
