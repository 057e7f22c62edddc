// SPDX-License-Identifier: BSD-3-Clause
// Messages to controllers of a chip that wait at a port of its crossbar. The port serves them in the order of
// their entry. When simulated time has reached a tick, all messages that enter before that tick are known. The port
// therefore need not arbitrate at each entry. It grants the waiting messages when the receiving controller wakes (at
// the earliest tick at which a message can arrive), when the router passes a message to the same port, and when
// statistics are read. Ticks and order are the same as with a grant at each entry.
#pragma once

#include <algorithm>

#include "mem/ruby/runtime/message.hh"
#include "mem/ruby/runtime/timed_queue.hh"

namespace moscope::ruby {

struct Crossing {
    /// By tick of entry, then those from links before those of the chip, by order of entry.
    TimedQueue<Message *> waiting;
    Tick free_at = 0; ///< next grant
    Tick latency = 0;
    static constexpr unsigned kVnets = 16;
    Tick occupancy[kVnets][2] = {}; ///< by virtual network; [0] without data, [1] with data
    void (*grant_entry)(Crossing &, Tick before) = nullptr;

    /// Grants the messages that entered before a tick that simulated time has reached.
    void grant(Tick before) {
        if (waiting.front_tick() < before)
            grant_entry(*this, before);
    }

    /// Queues a message that enters at tick `entry`, now or later. Returns the earliest tick at which it can arrive.
    /// This tick is exact unless other messages enter before this one.
    Tick enter(Message *m, Tick entry) {
        return enter_before(m, entry, [m](const Message *o) {
            return o->hops == 0 && static_cast<std::int32_t>(o->entry - m->entry) > 0;
        });
    }
    /// The same for one from a link: before those of the same tick that have crossed none and those of which
    /// `behind` says that they come later.
    template <class Behind> Tick enter_before(Message *m, Tick entry, Behind &&behind) {
        Tick start = std::max(entry, free_at);
        if (waiting.insert_if(entry, m, behind)) {
            start = std::max(start, all_granted_);
            all_granted_ = start + occupancy[m->vnet][m->carries_data];
        }
        return start + latency;
    }

    /// The same for the first waiting message to this controller; kNever if there is none.
    Tick earliest(NodeIndex to) const {
        Tick free = free_at;
        for (unsigned i = 0; i < waiting.size(); ++i) {
            const auto &[entry, m] = waiting.at(i);
            const Tick start = std::max(entry, free);
            if (m->to == to)
                return start + latency;
            free = start + occupancy[m->vnet][m->carries_data];
        }
        return kNever;
    }

  private:
    Tick all_granted_ = 0; ///< earliest tick at which the port has served all waiting messages
};

} // namespace moscope::ruby
