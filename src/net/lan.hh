// SPDX-License-Identifier: BSD-3-Clause
// All that is beyond the guest's network card: the link and the hosts at its other end. It has no wake-up of its own: the
// card calls `run` when `next` is due.
#pragma once

#include <functional>

#include "net/hosts.hh"
#include "net/link.hh"

namespace moscope::net {

class Lan {
  public:
    /// `deliver` takes a frame that arrives at the card.
    Lan(const Link::Parameters &p, std::uint64_t seed, std::function<void(Frame, Tick now)> deliver,
        std::function<void(std::uint64_t)> on_operations)
        : link_(p, seed ^ 0x6c616e),
          hosts_(
              seed, [this](Frame f, Tick now) { link_.send(Link::kToGuest, std::move(f), now); },
              std::move(on_operations)),
          deliver_(std::move(deliver)) {}

    /// A frame that the card sends.
    void transmit(Frame f, Tick now) { link_.send(Link::kToClients, std::move(f), now); }
    Tick next() const { return std::min(link_.next(), hosts_.next()); }
    /// Does all that is due.
    void run(Tick now) {
        Link::Direction d;
        Frame f;
        while (link_.receive(now, d, f)) {
            if (d == Link::kToClients)
                hosts_.receive(f, now);
            else
                deliver_(std::move(f), now);
        }
        if (hosts_.next() <= now)
            hosts_.run(now);
    }
    const Link &link() const { return link_; }
    const Hosts &hosts() const { return hosts_; }
    void archive(Archive &a) { a(link_, hosts_); }

  private:
    Link link_;
    Hosts hosts_;
    std::function<void(Frame, Tick)> deliver_;
};

} // namespace moscope::net
