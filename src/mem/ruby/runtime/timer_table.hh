// SPDX-License-Identifier: BSD-3-Clause
// SLICC's TimerTable: addresses that become ready at given ticks; an in_port can be built on it.
#pragma once

#include <algorithm>
#include <vector>

#include "base/error.hh"
#include "base/types.hh"

namespace moscope::ruby {

class TimerTable {
  public:
    bool isReady(Tick now) const { return next_tick() <= now; }
    Addr nextAddress() const { return timers_.front().addr; }
    void set(Addr a, Tick at) {
        if (isSet(a))
            throw ProtocolError("timer set twice for one address");
        auto pos =
            std::upper_bound(timers_.begin(), timers_.end(), at, [](Tick t, const Timer &x) { return t < x.at; });
        timers_.insert(pos, {at, a});
    }
    void unset(Addr a) {
        auto pos = std::find_if(timers_.begin(), timers_.end(), [a](const Timer &x) { return x.addr == a; });
        if (pos == timers_.end())
            throw ProtocolError("timer unset that was not set");
        timers_.erase(pos);
    }
    bool isSet(Addr a) const {
        return std::any_of(timers_.begin(), timers_.end(), [a](const Timer &x) { return x.addr == a; });
    }
    Tick next_tick() const { return timers_.empty() ? kNever : timers_.front().at; }
    bool isEmpty() const { return timers_.empty(); }

  private:
    struct Timer {
        Tick at;
        Addr addr;
    };
    std::vector<Timer> timers_; ///< by tick
};

} // namespace moscope::ruby
