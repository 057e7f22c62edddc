// SPDX-License-Identifier: BSD-3-Clause
// Which lines a traffic generator visits, and in which order: ranges of physical memory taken in turn, line by
// line, from their beginning or in a random order that visits every line once per round.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/error.hh"
#include "base/rng.hh"
#include "base/types.hh"

namespace moscope {

class LineSequence {
  public:
    struct Range {
        Addr base = 0;           ///< of a line
        std::uint64_t bytes = 0; ///< whole lines
    };
    enum class Order { ascending, random };

    LineSequence() = default;
    /// The ranges are equally long. `step` bytes lie between two lines of a range (64: all its lines).
    LineSequence(std::vector<Range> ranges, Order order, std::uint64_t seed, std::uint64_t step = kLineBytes)
        : ranges_(std::move(ranges)), step_(step) {
        MOSCOPE_CHECK(!ranges_.empty() && step_ >= kLineBytes && step_ % kLineBytes == 0);
        per_range_ = ranges_.front().bytes / step_;
        MOSCOPE_CHECK(per_range_ > 0);
        if (order == Order::random)
            shuffle(seed);
    }

    /// Lines in one round.
    std::uint64_t lines() const { return per_range_ * ranges_.size(); }

    /// Address of the next line; goes round for ever.
    Addr next() {
        const Addr a = order_.empty() ? at(position_) : order_[position_];
        if (++position_ == lines())
            position_ = 0;
        return a;
    }

  private:
    Addr at(std::uint64_t i) const { return ranges_[i % ranges_.size()].base + i / ranges_.size() * step_; }

    void shuffle(std::uint64_t seed) {
        Rng rng(seed);
        order_.resize(lines());
        for (std::uint64_t i = 0; i < lines(); ++i)
            order_[i] = at(i);
        for (std::uint64_t i = lines() - 1; i > 0; --i)
            std::swap(order_[i], order_[rng.below(i + 1)]);
    }

    std::vector<Range> ranges_;
    std::vector<Addr> order_; ///< empty: ascending
    std::uint64_t step_ = kLineBytes;
    std::uint64_t per_range_ = 0;
    std::uint64_t position_ = 0;
};

} // namespace moscope
