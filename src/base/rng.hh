// SPDX-License-Identifier: BSD-3-Clause
// Deterministic random numbers: xoshiro256** by Blackman and Vigna, seeded through splitmix64. The standard
// library's engines are portable but its distributions are not, so ranges are drawn here.
#pragma once

#include <cstdint>

namespace moscope {

/// The finalizer of splitmix64: all bits of the result depend on all bits of z.
constexpr std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}
inline constexpr std::uint64_t kGoldenRatio = 0x9e3779b97f4a7c15ull; ///< splitmix64's step

/// A random word as a number in [0, n); n > 0. Multiply-shift: the bias of at most n / 2^64 is far below what a run can see.
constexpr std::uint64_t scaled_below(std::uint64_t word, std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(word) * n) >> 64);
}

class Rng {
  public:
    explicit Rng(std::uint64_t seed = 1) {
        for (auto &word : s_) {
            seed += kGoldenRatio;
            word = mixed(seed);
        }
    }

    std::uint64_t next() {
        const std::uint64_t result = rotl(s_[1] * 5, 7) * 9;
        const std::uint64_t t = s_[1] << 17;
        s_[2] ^= s_[0];
        s_[3] ^= s_[1];
        s_[1] ^= s_[2];
        s_[0] ^= s_[3];
        s_[2] ^= t;
        s_[3] = rotl(s_[3], 45);
        return result;
    }

    /// Uniform in [0, n); n > 0.
    std::uint64_t below(std::uint64_t n) { return scaled_below(next(), n); }

  private:
    static std::uint64_t rotl(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
    std::uint64_t s_[4];
};

} // namespace moscope
