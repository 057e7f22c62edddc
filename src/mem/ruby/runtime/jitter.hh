// SPDX-License-Identifier: BSD-3-Clause
// Delays of messages for random tests, at random or as a source chooses them. Both keep the order where a virtual network
// is ordered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/rng.hh"
#include "base/types.hh"
#include "mem/ruby/runtime/message.hh"
#include "mem/ruby/runtime/trace_hook.hh"

namespace moscope::ruby {

class Jitter {
  public:
    /// Random delays are in [0, max]; 0: none. Nodes are controllers.
    void init(Tick max, std::uint64_t seed, unsigned nodes) {
        max_ = max;
        seed_ = mixed(seed);
        nodes_ = nodes;
    }
    void set_source(DelaySource *source) { source_ = source; }
    bool on() const { return max_ > 0; }
    /// Notes in m a lower bound of its delay, when it enters its last crossbar at tick `entry`. It is the delay itself
    /// unless a source chooses delays, which it does at the delivery.
    void draw(Message &m, NodeIndex to, Tick entry) const { m.delay = source_ ? 0 : drawn(m, to, entry); }
    /// After draw(): the arrival to use instead of `earliest`, never before it.
    Tick delay(const Message &m, NodeIndex to, Tick earliest) {
        const Tick t = earliest + (source_ ? source_->delay(m, to) : m.delay);
        return ordered(m.vnet) ? in_order(m, to, t) : t;
    }
    void set_ordered(unsigned vnet) {
        ordered_ |= 1u << vnet;
        if (on() && last_.size() <= vnet)
            last_.resize(vnet + 1, std::vector<Tick>(std::size_t{nodes_} * nodes_));
    }
    bool ordered(unsigned vnet) const { return ordered_ >> vnet & 1; }

  private:
    Tick in_order(const Message &m, NodeIndex to, Tick t) {
        Tick &last = last_[m.vnet][std::size_t{m.source} * nodes_ + to];
        return last = std::max(t, last); // equal ticks keep the order of delivery
    }
    /// Uniform in [0, max_]. A function of the message and of its entry, so that the order in which delays are drawn does not
    /// matter: ports may grant late.
    Tick drawn(const Message &m, NodeIndex to, Tick entry) const {
        const std::uint64_t ends =
            std::uint64_t{m.source} << 32 | std::uint64_t{to} << 16 | m.vnet | std::uint64_t{m.type} << 48;
        const std::uint64_t when = mixed(seed_ + static_cast<std::uint64_t>(entry));
        return static_cast<Tick>(
            scaled_below(mixed(mixed(when ^ m.line) ^ ends), static_cast<std::uint64_t>(max_) + 1));
    }

    Tick max_ = 0;
    DelaySource *source_ = nullptr;
    std::uint64_t seed_ = 0;
    unsigned nodes_ = 0;
    std::uint32_t ordered_ = 0;           ///< virtual networks, by bit
    std::vector<std::vector<Tick>> last_; ///< arrivals on them: [vnet][source * nodes_ + destination]
};

} // namespace moscope::ruby
