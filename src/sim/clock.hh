// SPDX-License-Identifier: BSD-3-Clause
// Clock domains. Edge n of a clock lies at floor(n * num / den) femtoseconds; edges are computed, never
// accumulated, so 2.4, 2.2 and 2.6 GHz do not drift. A ClockCursor remembers one edge exactly (with its
// remainder), so that nearby edges cost one small 64-bit division instead of a 128-bit one.
#pragma once

#include <algorithm>

#include "base/types.hh"

namespace moscope {

struct Clock {
    std::int64_t num = 1'000'000; ///< period numerator, fs
    std::int64_t den = 1;         ///< period denominator

    /// Tick of edge n.
    Tick edge(std::int64_t n) const { return static_cast<Tick>(static_cast<__int128>(n) * num / den); }

    /// Number of the first edge at or after t (t >= 0).
    std::int64_t edge_at_or_after(Tick t) const {
        // edge(n) >= t  <=>  floor(n*num/den) >= t  <=>  n*num >= t*den
        const __int128 need = static_cast<__int128>(t) * den;
        return static_cast<std::int64_t>((need + num - 1) / num);
    }
};

/// Division by a number that stays the same, as a multiplication.
class Divisor {
  public:
    Divisor() = default;
    explicit Divisor(std::int64_t d) : d_(static_cast<std::uint64_t>(d)), inverse_(~std::uint64_t{0} / d_) {}
    /// Where operator() is exact: 0 <= x < limit().
    std::int64_t limit() const { return static_cast<std::int64_t>(inverse_ >> 1); }
    /// floor(x / d). Robison, "N-bit unsigned division via N-bit multiply-add", 2005: with floor((2^64 - 1) / d) for the
    /// inverse, the product of x + 1 is exact for x + 1 <= 2^64 / d.
    std::int64_t operator()(std::int64_t x) const {
        const auto n = static_cast<std::uint64_t>(x) + 1;
        return static_cast<std::int64_t>((static_cast<unsigned __int128>(n) * inverse_) >> 64);
    }

    struct Parts {
        std::int64_t quotient, rest;
    };
    /// The same, and x - d * floor(x / d), for all x >= 0.
    Parts parts(std::int64_t x) const {
        const auto n = static_cast<std::uint64_t>(x);
        // Too small by at most one: inverse_ misses 2^64 / d by at most one, and n is below 2^63.
        const auto q = static_cast<std::uint64_t>((static_cast<unsigned __int128>(n) * inverse_) >> 64);
        const std::uint64_t r = n - q * d_, less = r - d_;
        return r >= d_ ? Parts{static_cast<std::int64_t>(q + 1), static_cast<std::int64_t>(less)}
                       : Parts{static_cast<std::int64_t>(q), static_cast<std::int64_t>(r)};
    }

  private:
    std::uint64_t d_ = 1, inverse_ = ~std::uint64_t{0};
};

class ClockCursor {
  public:
    ClockCursor() : ClockCursor(Clock{}) {}
    explicit ClockCursor(Clock c)
        : c_(c), by_num_(c.num), by_den_(c.den), near_(std::min(kMostNear, by_den_.limit() / c.num - 1)) {}

    const Clock &clock() const { return c_; }
    std::int64_t cycle() const { return n_; }
    Tick tick() const { return tick_; }

    /// Tick of the edge k cycles after the current one.
    Tick after(std::int64_t k) const {
        if (__builtin_expect(k < near_, 1))
            return tick_ + by_den_(rem_ + k * c_.num);
        return c_.edge(n_ + k);
    }

    /// First edge at or after t; t not before the current edge.
    Tick align(Tick t) const {
        const Tick d = t - tick_;
        if (__builtin_expect(static_cast<std::uint64_t>(d) - 1 >= kNearTicks - 1, 0))
            return d <= 0 ? tick_ : c_.edge(c_.edge_at_or_after(t));
        return t + by_den_(cycles_to(d).beyond);
    }

    /// An edge, to which move_to() goes without a division.
    struct Edge {
        Tick tick = kNever;
        std::int64_t n = 0, rem = 0;
    };
    /// align(t), as an edge.
    Edge edge_at_or_after(Tick t) const {
        const Tick d = t - tick_;
        if (__builtin_expect(static_cast<std::uint64_t>(d) - 1 >= kNearTicks - 1, 0)) {
            if (d <= 0)
                return {tick_, n_, rem_};
            return edge_number(c_.edge_at_or_after(t));
        }
        const auto [k, beyond] = cycles_to(d);
        const std::int64_t later = by_den_(beyond);
        return {t + later, n_ + k, beyond - later * c_.den};
    }
    void move_to(const Edge &e) {
        tick_ = e.tick;
        n_ = e.n;
        rem_ = e.rem;
    }

    /// Tick of the edge k cycles after the first edge at or after t.
    Tick after_edge(Tick t, std::int64_t k) const {
        if (__builtin_expect(t >= tick_, 1))
            return after(cycles_until(t) + k);
        return c_.edge(c_.edge_at_or_after(t) + k);
    }

    /// The same, as an edge.
    Edge edge_after(Tick t, std::int64_t k) const {
        if (__builtin_expect(t >= tick_, 1)) {
            const std::int64_t cycles = cycles_until(t) + k;
            if (__builtin_expect(cycles < near_, 1)) {
                const std::int64_t total = rem_ + cycles * c_.num, step = by_den_(total);
                return {tick_ + step, n_ + cycles, total - step * c_.den};
            }
        }
        return edge_number(c_.edge_at_or_after(t) + k);
    }

    /// Moves to the first edge at or after t, and returns its tick.
    Tick advance_to(Tick t) {
        const Tick d = t - tick_;
        if (__builtin_expect(static_cast<std::uint64_t>(d) < kNearTicks, 1)) {
            if (d == 0)
                return tick_;
            const auto [k, beyond] = cycles_to(d);
            // Nearly always t is an edge.
            const std::int64_t later = __builtin_expect(beyond < c_.den, 1) ? 0 : by_den_(beyond);
            n_ += k;
            tick_ = t + later;
            rem_ = beyond - later * c_.den;
        } else {
            set(c_.edge_at_or_after(t));
        }
        return tick_;
    }

    /// A fixed number of cycles, prepared so that advancing by it needs no division.
    struct Step {
        std::int64_t cycles;
        Tick whole;
        std::int64_t rest;
    };
    Step step(std::int64_t cycles) const { return {cycles, cycles * c_.num / c_.den, cycles * c_.num % c_.den}; }
    Tick advance(const Step &s) {
        n_ += s.cycles;
        tick_ += s.whole;
        rem_ += s.rest;
        if (rem_ >= c_.den) {
            rem_ -= c_.den;
            ++tick_;
        }
        return tick_;
    }
    /// Any number of cycles.
    Tick advance(std::int64_t cycles) {
        if (__builtin_expect(cycles >= near_, 0))
            return set(n_ + cycles);
        const std::int64_t total = rem_ + cycles * c_.num;
        const std::int64_t step = by_den_(total);
        n_ += cycles;
        tick_ += step;
        rem_ = total - step * c_.den;
        return tick_;
    }
    /// Tick that advance(s) would give.
    Tick after(const Step &s) const { return tick_ + s.whole + (rem_ + s.rest >= c_.den); }

  private:
    static constexpr std::int64_t kMostNear = 1 << 20;
    static constexpr std::uint64_t kNearTicks = std::uint64_t{1} << 40;

    struct Cycles {
        std::int64_t k;      ///< least k >= 0 with after(k) >= tick_ + d
        std::int64_t beyond; ///< rem_ + k * num - d * den, so that after(k) is tick_ + d + floor(beyond / den)
    };
    /// 0 < d < kNearTicks.
    Cycles cycles_to(Tick d) const {
        // tick_ + floor((rem_ + k*num)/den) >= tick_ + d  <=>  k*num >= d*den - rem_
        const auto [k, rest] = by_num_.parts(d * c_.den - rem_ + c_.num - 1);
        return {k, c_.num - 1 - rest};
    }

    /// Least k >= 0 with after(k) >= t.
    std::int64_t cycles_until(Tick t) const {
        const Tick d = t - tick_;
        if (d <= 0)
            return 0;
        if (static_cast<std::uint64_t>(d) >= kNearTicks)
            return c_.edge_at_or_after(t) - n_;
        return cycles_to(d).k;
    }

    Edge edge_number(std::int64_t n) const {
        ClockCursor there = *this;
        there.set(n);
        return {there.tick_, there.n_, there.rem_};
    }
    /// Moves to edge n.
    [[gnu::noinline]] Tick set(std::int64_t n) {
        n_ = n;
        const __int128 total = static_cast<__int128>(n) * c_.num;
        rem_ = static_cast<std::int64_t>(total % c_.den);
        return tick_ = static_cast<Tick>(total / c_.den);
    }

    Clock c_;
    Divisor by_num_, by_den_;
    std::int64_t near_; ///< by_den_ is exact for steps of fewer cycles
    std::int64_t n_ = 0;
    Tick tick_ = 0;
    std::int64_t rem_ = 0; ///< n_ * num - tick_ * den, in [0, den)
};

} // namespace moscope
