// SPDX-License-Identifier: BSD-3-Clause
// Messages between controllers of one chip, on their way through its crossbar to one of its ports. The port serves
// them in the order of their entry, and which messages enter before a tick is known once simulated time has reached it. So
// the port need not act at each entry. It grants the entered messages when the controller behind it wakes (at the
// earliest tick at which the message can be there), when a message from a link comes to the same port, and when
// statistics are read. Ticks and order are those of granting at once.
#pragma once

#include <algorithm>

#include "mem/ruby/runtime/message.hh"
#include "mem/ruby/runtime/timed_queue.hh"

namespace moscope::ruby {

struct Crossing {
    TimedQueue<Message *> waiting; ///< by tick of entry, then by order of entry
    Tick free_at = 0;              ///< next grant
    Tick latency = 0;
    static constexpr unsigned kVnets = 16;
    Tick occupancy[kVnets][2] = {}; ///< by virtual network; without, with data
    void (*grant_entry)(Crossing &, Tick before) = nullptr;

    /// Grants the messages that have entered before a tick, which has come.
    void grant(Tick before) {
        if (waiting.front_tick() < before)
            grant_entry(*this, before);
    }

    /// Takes a message that enters at tick `entry`, now or later. Returns a tick at which it can be there at the
    /// earliest, exact unless more come before it.
    Tick enter(Message *m, Tick entry) {
        waiting.insert_if(entry, m,
                          [m](const Message *o) { return static_cast<std::int32_t>(o->entry - m->entry) > 0; });
        Tick start = std::max(entry, free_at);
        if (waiting.back().item == m) {
            start = std::max(start, all_granted_);
            all_granted_ = start + occupancy[m->vnet][m->carries_data];
        }
        return start + latency;
    }

    /// The same for the first of those that wait for this controller; kNever: none does.
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
    Tick all_granted_ = 0; ///< not before this tick is the port free again after all that wait
};

} // namespace moscope::ruby
