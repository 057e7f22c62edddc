// SPDX-License-Identifier: BSD-3-Clause
// A "To" buffer without a virtual network that leads straight into a buffer of another controller, as between the L0 and
// the L1 of a core. A message arrives at the tick for which the sender enqueues it.
#pragma once

#include <string>
#include <utility>

#include "mem/ruby/runtime/message_buffer.hh"
#include "sim/event_queue.hh"

namespace moscope::ruby {

class DirectWire : public Component {
  public:
    DirectWire(EventQueue &queue, std::string name, MessageBuffer &from, MessageBuffer &to)
        : Component(queue, std::move(name), wake_entry), from_(from), to_(to) {
        ingress_.router = this;
        from.ingress = &ingress_;
    }

  private:
    static void wake_entry(Component &c, Tick now) { static_cast<DirectWire &>(c).deliver(now); }
    void deliver(Tick now) {
        auto &waiting = ingress_.queue;
        while (!waiting.empty() && waiting.front().tick <= now) {
            Message *const m = waiting.front().item;
            waiting.pop();
            --from_.in_network_entry;
            to_.deliver(m, now);
        }
        if (!waiting.empty())
            schedule_no_later_than(waiting.front_tick());
    }

    MessageBuffer &from_, &to_;
    Ingress ingress_;
};

} // namespace moscope::ruby
