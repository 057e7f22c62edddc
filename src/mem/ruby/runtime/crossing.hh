// SPDX-License-Identifier: BSD-3-Clause
// Messages to controllers of a chip that wait at a port of its crossbar. The port serves them in the order of
// their entry. When simulated time has reached a tick, all messages that enter before that tick are known. The port
// therefore need not arbitrate at each entry. When the receiving controller wakes (at the earliest tick at which a
// message can arrive), it grants the messages that have arrived. All that have entered are granted when the router
// passes a message to the same port, when statistics are read, and, if messages have random delays, when the routers
// wake (Rounds::hold). Ticks and order are the same as with a grant at each entry.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "mem/ruby/runtime/jitter.hh"
#include "mem/ruby/runtime/message.hh"
#include "mem/ruby/runtime/timed_queue.hh"

namespace moscope::ruby {

class AbstractController;
class MessageBuffer;

struct Crossing {
    /// By tick of entry; at one tick, messages from links first, then those of the chip by order of entry.
    EntryQueue waiting;
    Tick free_at = 0; ///< next grant
    Tick latency = 0;
    static constexpr unsigned kVnets = 16;
    /// Messages that have crossed this many links or more are counted by the router alone.
    static constexpr unsigned kHops = 8;
    static constexpr unsigned kParts = kHops, kColumns = kHops + 1;
    /// Counts of messages of one virtual network, with or without data, that have crossed the same number of links.
    /// Parts of a message to several controllers of the chip, whose entry the router has counted, have a column of
    /// their own.
    struct Kind {
        std::uint64_t messages = 0;
        Tick wait = 0;
        Tick latency = 0; ///< since their entry, or since the last link brought them here
    };
    /// By virtual network, up to the last one in use, then by column: links crossed, or kParts; without data, with data
    /// (kind_number()).
    std::vector<Kind> kinds;
    std::array<Tick, 2 * std::size_t{kVnets}> occupancies{}; ///< by virtual network; without data, with data
    AbstractController *const *controllers = nullptr;        ///< of this chip, by node
    /// Delays messages, if there is one.
    Jitter *jitter = nullptr;
    /// While messages are traced, the network hands on each message.
    void set_traced(bool on) {
        traced_ = on;
        otherwise_ = traced_ || jitter;
    }
    /// Grants a message that the network counts itself.
    void (*grant_counted)(Crossing &, Message *m, Tick entry) = nullptr;
    /// A message from a link leaves the buffer behind that link.
    void (*left_input)(Crossing &, const Message &m, Tick at) = nullptr;

    static constexpr unsigned kind_number(unsigned vnet, unsigned column, bool with_data) {
        return 2 * (vnet * kColumns + column) + with_data;
    }
    /// How long the port is busy with m.
    Tick occupancy(const Message &m) const { return occupancies[2u * m.vnet + m.carries_data]; }

    /// Grants the messages that entered before a tick that simulated time has reached.
    void grant(Tick before) {
        if (waiting.front_tick() < before)
            grant_before(before);
    }
    /// Grants those of them that arrive by now, where a controller wakes. The others wait here, not behind them in a
    /// buffer, so that buffers hardly ever hold several messages.
    void grant_arrived(Tick now);
    void grant_before(Tick before);
    /// Grants the first waiting message.
    void grant_next();

    /// Hands m, which entered at tick `entry`, to its buffer, and counts it in a column. arrival_of(earliest tick)
    /// returns its arrival. m has crossed fewer than kHops links.
    template <class Arrival>
    void pass(Message *m, Tick entry, MessageBuffer &buffer, unsigned column, Arrival &&arrival_of);

    /// Queues a message that enters at tick `entry`, now or later. Returns the earliest tick at which it can arrive.
    /// This tick is exact unless other messages enter before this one.
    Tick enter(Message *m, Tick entry) { return enter_before(m, entry, Later{m}); }
    /// The same if m goes last and there is room; kNever: nothing is done.
    [[gnu::always_inline]] Tick enter_last(Message *m, Tick entry) {
        const Tick start = std::max(entry, free_at);
        return waiting.insert_last(entry, m, Later{m}) ? served(*m, start) : kNever;
    }
    /// The same, but before waiting messages of the same tick for which behind(message) is true. For a message from a
    /// link, these include all messages of the chip.
    template <class Behind> Tick enter_before(Message *m, Tick entry, Behind &&behind) {
        const Tick start = std::max(entry, free_at);
        return waiting.is_last(waiting.insert_if(entry, m, behind)) ? served(*m, start) : start + latency;
    }

    /// The earliest tick at which the first waiting message to controller `to` can arrive; kNever: there is none.
    Tick earliest(NodeIndex to) const {
        if (waiting.empty())
            return kNever;
        if (__builtin_expect(jitter != nullptr, 0))
            return earliest_delayed(to);
        const auto &[entry, m] = waiting.front();
        const Tick start = std::max(entry, free_at);
        return m->to == to ? start + latency : earliest_behind(to, start + occupancy(*m));
    }

  private:
    /// Which of those that wait come later than m at the same tick; m is from this chip.
    struct Later {
        const Message *m;
        bool operator()(const Message *o) const {
            return o->hops == 0 && static_cast<std::int32_t>(o->entry - m->entry) > 0;
        }
    };
    /// When m, the last in the queue, arrives, if the port could serve it from `start` on.
    Tick served(const Message &m, Tick start) {
        start = std::max(start, all_granted_);
        all_granted_ = start + occupancy(m);
        return start + latency;
    }
    void grant_first();
    void grant_otherwise(Message *m, Tick entry, MessageBuffer *buffer);
    Tick earliest_behind(NodeIndex to, Tick free) const;
    Tick earliest_delayed(NodeIndex to) const;

    bool traced_ = false;
    bool otherwise_ = false; ///< messages are traced or delayed, so that none is granted in the plain way
    Tick all_granted_ = 0;   ///< earliest tick at which the port has served all waiting messages
};

} // namespace moscope::ruby
