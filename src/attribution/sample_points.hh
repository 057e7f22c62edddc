// SPDX-License-Identifier: BSD-3-Clause
// Which waits of a core become samples: those at one random point in each period (stratified sampling; Cochran,
// Sampling Techniques, 3rd edition, 1977). Points at fixed distances would always fall on the same waits of a program
// that repeats itself.
#pragma once

#include "base/rng.hh"
#include "base/types.hh"

namespace moscope {

/// The waiting of a core, laid end to end, is divided into periods, each with a point in it.
class SamplePoints {
  public:
    SamplePoints(std::uint64_t seed, Tick period) : period_(period), random_(seed) { draw(0); }

    /// Adds a wait of `time` fs. Returns whether a point lies in the wait; if so, the caller must call take() next.
    bool waited(Tick time) { return (left_ -= time) < 0; }
    /// What the wait stands for (fs): a period for each point in it. On average, that is the length of the wait.
    Tick take() {
        Tick standing = 0;
        if (const Tick whole = (-left_ - after_) / period_ - 1; whole > 0) { // periods that lie within a long wait
            standing = whole * period_;
            left_ += standing;
        }
        while (left_ < 0) {
            standing += length_;
            draw(left_ + after_);
        }
        return standing;
    }
    /// Doubles the length of all periods after the one that contains the next point.
    void widen() { period_ *= 2; }

  private:
    /// Draws the point of the period that begins `begin` fs after the waiting so far.
    void draw(Tick begin) {
        const auto at = static_cast<Tick>(random_.below(static_cast<std::uint64_t>(period_)));
        left_ = begin + at;
        after_ = period_ - at;
        length_ = period_;
    }

    Tick left_ = 0, after_ = 0; ///< waiting until the next point, and from it to the end of its period
    Tick length_ = 0;           ///< of the period of that point
    Tick period_;               ///< of those that follow
    Rng random_;
};

} // namespace moscope
