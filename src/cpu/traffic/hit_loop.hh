// SPDX-License-Identifier: BSD-3-Clause
// A core that loads again and again from a buffer that fits its first-level cache: a benchmark of how fast the inline
// hit path of a simulated core is on the host.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "cpu/fiber_core.hh"

namespace moscope {

class HitLoop : public FiberCore {
  public:
    /// `bytes` is a power of two; loads of 8 bytes walk the buffer word by word.
    HitLoop(EventQueue &queue, std::string name, Port &port, Addr base, std::uint64_t bytes, std::uint64_t loads)
        : FiberCore(queue, std::move(name), port), base_(base), mask_(bytes - 1), loads_(loads) {}

    /// Loads that left the inline path: the misses that fill the cache, and whatever was not a hit later.
    std::uint64_t slow() const { return slow_; }
    /// Sum of the values read, so that the loads cannot be optimised away.
    std::uint64_t sum() const { return sum_; }

  protected:
    void body() override {
        std::uint64_t value = 0;
        for (std::uint64_t i = 0; i < loads_; ++i) {
            load(PhysAddr(base_ + (i * sizeof value & mask_)), &value, sizeof value);
            sum_ += value;
        }
    }
    void completed(const Access &) override { ++slow_; }

  private:
    Addr base_;
    std::uint64_t mask_;
    std::uint64_t loads_;
    std::uint64_t slow_ = 0;
    std::uint64_t sum_ = 0;
};

} // namespace moscope
