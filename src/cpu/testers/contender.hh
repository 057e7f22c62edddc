// SPDX-License-Identifier: BSD-3-Clause
// A core that writes to one line again and again: the next store begins when the last one is done. Many such cores
// show whether a protocol lets every core make progress, and how fairly. Ticks are femtoseconds.
#pragma once

#include <cstdint>

#include "cpu/testers/increment.hh"
#include "mem/port.hh"
#include "sim/event_queue.hh"

namespace moscope::testers {

class Contender : public Component {
  public:
    /// kind: store or rmw (a locked increment of eight bytes).
    Contender(EventQueue &queue, unsigned number, Port &port, PhysAddr at, AccessKind kind, Tick until)
        : Component(queue, "contender " + std::to_string(number),
                    [](Component &c, Tick now) { static_cast<Contender &>(c).go(now); }),
          port_(port),
          until_(until) {
        access_.addr = at;
        access_.size = 8;
        access_.kind = kind;
        access_.data = kind == AccessKind::store ? &value_ : nullptr;
        access_.rmw = [](void *, void *bytes) { increment(bytes); };
        access_.owner = this;
        access_.on_done = [](Access &a) { static_cast<Contender *>(a.owner)->done(a); };
    }

    std::uint64_t writes() const { return writes_; }
    /// Longest time that one write took.
    Tick longest() const { return longest_; }
    bool finished() const { return finished_; }

  private:
    void go(Tick now) {
        ++value_;
        port_.issue(access_, now);
    }
    void done(Access &a) {
        ++writes_;
        longest_ = std::max(longest_, a.done - a.issued);
        if (a.done < until_)
            schedule_no_later_than(port_.hit_done(a.done));
        else
            finished_ = true;
    }

    Port &port_;
    Tick until_;
    Access access_;
    std::uint64_t value_ = 0, writes_ = 0;
    Tick longest_ = 0;
    bool finished_ = false;
};

} // namespace moscope::testers
