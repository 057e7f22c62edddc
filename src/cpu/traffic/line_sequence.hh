// SPDX-License-Identifier: BSD-3-Clause
// The lines that a traffic generator visits, and their order. Ranges of physical memory are taken in turn. Within a
// range the order is: ascending; page by page with the pages in a random order, as an operating system allocates
// them; a random order that visits every line once per round; or a random line each time.
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
    enum class Order { ascending, pages, shuffled, random };

    LineSequence() = default;
    /// The ranges are equally long. `step` bytes lie between two lines of a range (64: all its lines).
    LineSequence(std::vector<Range> ranges, Order order, std::uint64_t seed, std::uint64_t step = kLineBytes)
        : ranges_(std::move(ranges)), step_(step), rng_(seed), random_(order == Order::random) {
        MOSCOPE_CHECK(!ranges_.empty() && step_ >= kLineBytes && step_ % kLineBytes == 0);
        per_range_ = ranges_.front().bytes / step_;
        MOSCOPE_CHECK(per_range_ > 0);
        lines_ = per_range_ * ranges_.size();
        if (order == Order::shuffled)
            shuffle();
        if (order == Order::pages)
            scatter();
    }

    /// Lines in one round.
    std::uint64_t lines() const { return lines_; }

    /// Begins at the n-th line. No effect if the order is random.
    void skip(std::uint64_t n) { position_ = n % lines(); }

    /// Address of the next line. After the last line, a new round begins.
    Addr next() {
        if (random_)
            return at(rng_.below(lines()));
        const Addr a = order_.empty() ? at(position_) : order_[position_];
        if (++position_ == lines_)
            position_ = 0;
        return a;
    }

  private:
    static constexpr std::uint64_t kPage = 4096;

    Addr at(std::uint64_t i) const {
        const std::uint64_t range = i % ranges_.size();
        std::uint64_t offset = i / ranges_.size() * step_;
        if (!page_.empty())
            offset = page_[range * pages_ + offset / kPage] * kPage + offset % kPage;
        return ranges_[range].base + offset;
    }

    /// Each range has an order of its own; a last part that is no whole page stays where it is.
    void scatter() {
        pages_ = (ranges_.front().bytes + kPage - 1) / kPage;
        const std::uint64_t whole = ranges_.front().bytes / kPage;
        page_.resize(pages_ * ranges_.size());
        for (std::uint64_t r = 0; r < ranges_.size(); ++r) {
            std::uint32_t *page = &page_[r * pages_];
            for (std::uint64_t i = 0; i < pages_; ++i)
                page[i] = static_cast<std::uint32_t>(i);
            for (std::uint64_t i = whole; i > 1; --i)
                std::swap(page[i - 1], page[rng_.below(i)]);
        }
    }

    void shuffle() {
        order_.resize(lines());
        for (std::uint64_t i = 0; i < lines(); ++i)
            order_[i] = at(i);
        for (std::uint64_t i = lines() - 1; i > 0; --i)
            std::swap(order_[i], order_[rng_.below(i + 1)]);
    }

    std::vector<Range> ranges_;
    std::vector<Addr> order_;         ///< empty unless shuffled
    std::vector<std::uint32_t> page_; ///< by range and page of the range; empty unless scattered
    std::uint64_t pages_ = 0;         ///< of a range
    std::uint64_t step_ = kLineBytes;
    std::uint64_t per_range_ = 0, lines_ = 0; ///< in a range, in all
    std::uint64_t position_ = 0;
    Rng rng_{1};
    bool random_ = false;
};

} // namespace moscope
