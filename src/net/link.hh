// SPDX-License-Identifier: BSD-3-Clause
// A full-duplex Ethernet link: frames of each direction leave one after another at the link's rate and arrive a latency
// later. For tests, single frames of either direction can be lost, duplicated or delayed (so that later ones overtake
// them) at random, from the run's seed.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "base/rng.hh"
#include "base/types.hh"
#include "net/frame.hh"

namespace moscope::net {

class Link {
  public:
    enum Direction : unsigned { kToGuest, kToClients };
    struct Parameters {
        std::uint64_t bits_per_second = 10'000'000'000;
        Tick latency = 1000 * kTicksPerNs;
        // Out of a million frames of each direction.
        std::uint32_t lost = 0, duplicated = 0, delayed = 0;
        Tick longest_delay = 200'000 * kTicksPerNs; ///< of those delayed
    };
    struct Counts {
        std::uint64_t frames = 0, bytes = 0, lost = 0, duplicated = 0, delayed = 0;
    };

    Link(const Parameters &p, std::uint64_t seed) : p_(p), rng_(seed) {}

    void send(Direction, Frame, Tick now);
    /// When the next frame arrives; kNever: none is under way.
    Tick next() const { return heap_.empty() ? kNever : heap_.front().due; }
    /// Takes the next frame that has arrived by `now`; false: none has.
    bool receive(Tick now, Direction &, Frame &);
    /// When the last frame of this direction will have left.
    Tick busy_until(Direction d) const { return free_[d]; }
    /// When the last bit of a frame that is sent at `now` leaves.
    Tick leaves(Direction d, std::size_t bytes, Tick now) const { return std::max(free_[d], now) + wire_time(bytes); }
    /// Ticks that a frame of so many bytes, and its overhead, takes on the wire; 0 if the link's rate is 0.
    Tick wire_time(std::size_t bytes) const;

    const Counts &counts(Direction d) const { return counts_[d]; }
    void archive(Archive &);

  private:
    struct Flying {
        Tick due = 0;
        std::uint64_t order = 0; ///< of frames due at the same tick
        std::uint8_t direction = 0;
        Frame frame;
        void archive(Archive &a) { a(due, order, direction, frame); }
        bool later_than(const Flying &o) const { return due != o.due ? due > o.due : order > o.order; }
    };
    bool chance(std::uint32_t in_a_million) { return in_a_million != 0 && rng_.below(1'000'000) < in_a_million; }
    void fly(Flying);

    Parameters p_;
    Rng rng_;
    std::vector<Flying> heap_;
    std::uint64_t order_ = 0;
    Tick free_[2] = {0, 0};
    Counts counts_[2];
};

} // namespace moscope::net
