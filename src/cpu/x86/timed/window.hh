// SPDX-License-Identifier: BSD-3-Clause
// The reorder buffer of the overlapping model, in cycles: when an operation is dispatched, when its sources are ready,
// when it is done and when it retires. In each cycle, `width` operations are dispatched and `width` retire, both in
// program order. An operation is dispatched when the one that lies `entries` before it has retired (AMD 40546, reorder
// buffer).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "cpu/x86/timed/op_timing.hh"
#include "schema/pipeline.hh"

namespace moscope::x86 {

/// When each register is ready.
class ReadyCycles {
  public:
    std::int64_t latest(RegMask of, std::int64_t not_before) const {
        for (; of; of &= of - 1)
            not_before = std::max(not_before, cycle_[static_cast<unsigned>(std::countr_zero(of))]);
        return not_before;
    }
    std::int64_t latest(const std::uint8_t (&of)[3], std::int64_t not_before) const {
        return std::max(std::max(not_before, cycle_[of[0]]), std::max(cycle_[of[1]], cycle_[of[2]]));
    }
    std::int64_t latest(const std::uint8_t (&of)[2], std::int64_t not_before) const {
        return std::max(not_before, std::max(cycle_[of[0]], cycle_[of[1]]));
    }
    void set(const std::uint8_t (&of)[2], std::int64_t cycle) {
        cycle_[of[0]] = cycle;
        cycle_[of[1]] = cycle;
    }
    void set(RegMask of, std::int64_t cycle) {
        for (; of; of &= of - 1)
            cycle_[static_cast<unsigned>(std::countr_zero(of))] = cycle;
    }

  private:
    std::array<std::int64_t, OpPipes::kUnused + 1> cycle_{}; ///< by register number, with kAlwaysReady and kUnused
};

/// The front end: the cycle of the operation to be dispatched next.
struct DispatchPoint {
    std::int64_t cycle = 0;
    unsigned taken = 0; ///< slots of that cycle, and of later ones, that are taken so far

    void next(unsigned width) {
        while (taken >= width) {
            ++cycle;
            taken -= width;
        }
    }
    void not_before(std::int64_t c) {
        if (c > cycle) {
            cycle = c;
            taken = 0;
        }
    }
};

class Window {
  public:
    Window(unsigned entries, unsigned width) : entries_(entries), width_(width) {}

    /// Puts the next operation into the window, in the cycle of `point`. Returns the cycle in which it would have been
    /// dispatched if the window had had room. An operation of several macro-operations takes as many slots, of dispatch
    /// and of retirement, but one entry.
    std::int64_t dispatch(unsigned slots) {
        point.next(width_);
        const std::int64_t turn = point.cycle;
        point.not_before(retires_[at_]);
        point.taken += slots;
        return turn;
    }
    /// The operation dispatched last is done at `cycle`.
    void done(std::int64_t cycle, unsigned slots) {
        cycle = std::max(cycle, retired_);
        if (cycle != retired_)
            retired_then_ = 0;
        for (retired_then_ += slots; retired_then_ > width_; retired_then_ -= width_)
            ++cycle;
        retired_ = cycle;
        retires_[at_] = cycle;
        at_ = at_ + 1 == entries_ ? 0 : at_ + 1;
    }
    /// When all operations so far have retired.
    std::int64_t empty_at() const { return retired_; }
    /// The cycle from which there is room for the operation `ahead` places after the one that was dispatched last;
    /// ahead < entries.
    std::int64_t room(unsigned ahead) const {
        const unsigned i = at_ + ahead;
        return retires_[i < entries_ ? i : i - entries_];
    }
    unsigned entries() const { return entries_; }
    unsigned width() const { return width_; }

    DispatchPoint point;
    ReadyCycles ready;

  private:
    static constexpr unsigned kMost = CoreParams::Most::window;
    unsigned entries_, width_, at_ = 0; ///< at_: of the operation dispatched last, or to be dispatched next
    std::array<std::int64_t, kMost> retires_{};
    std::int64_t retired_ = 0;
    unsigned retired_then_ = 0; ///< slots of retirement taken in cycle retired_
};

} // namespace moscope::x86
