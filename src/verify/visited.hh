// SPDX-License-Identifier: BSD-3-Clause
// The set of states seen. For each state it has 16 bytes (96 bits of hash and 32 of the state's number), and the number
// of the state from which the state was first reached. With 10^9 states the chance that two share a hash is below
// 10^-10. Several threads may insert: the set is divided into parts by hash, each with a lock.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <vector>

namespace moscope::verify {

struct Hash {
    std::uint64_t high;
    std::uint32_t low;
};

/// Two multiplications for eight bytes, as in wyhash.
inline Hash hash_of(const void *data, std::size_t bytes) {
    const auto *p = static_cast<const unsigned char *>(data);
    std::uint64_t a = 0x2d358dccaa6c78a5ull ^ bytes, b = 0x8bb84b93962eacc9ull;
    const auto mix = [](std::uint64_t x, std::uint64_t y) {
        const auto m = static_cast<unsigned __int128>(x) * y;
        return static_cast<std::uint64_t>(m) ^ static_cast<std::uint64_t>(m >> 64);
    };
    for (std::size_t i = 0; i < bytes; i += 8) {
        std::uint64_t w = 0;
        std::memcpy(&w, p + i, bytes - i < 8 ? bytes - i : 8);
        a = mix(a ^ w, 0x4b33a62ed433d4a3ull);
        b = mix(b + w, 0x9e3779b97f4a7c15ull ^ a);
    }
    return {mix(a, 0xaaaaaaaaaaaaaaabull ^ b), static_cast<std::uint32_t>(mix(b, a | 1) >> 16)};
}

/// A new state would have a number of more than 32 bits.
struct TooManyStates {};

class Visited {
  public:
    static constexpr std::uint32_t kNone = ~0u;
    static constexpr std::uint32_t kParts = 64;

    /// `most_in_part`: states of one part.
    explicit Visited(std::uint32_t most_in_part = kNone / kParts) : most_in_part_(most_in_part) {}

    /// The number of a state, which is added if it is new (`fresh`). `parent`: the number of the state that led to it.
    /// Throws TooManyStates.
    std::uint32_t insert(const Hash &h, std::uint32_t parent, bool &fresh) {
        const std::uint32_t part = part_of(h);
        return parts_[part].insert(h, parent, fresh, most_in_part_) * kParts + part;
    }
    /// The number of a state that is in the set.
    std::uint32_t number(const Hash &h) {
        const std::uint32_t part = part_of(h);
        return parts_[part].number(h) * kParts + part;
    }
    std::uint32_t parent(std::uint32_t state) const { return parts_[state % kParts].parent(state / kParts); }
    std::size_t size() const {
        std::size_t n = 0;
        for (const Part &p : parts_)
            n += p.size();
        return n;
    }
    /// Above every number.
    std::size_t end() const {
        std::size_t n = 0;
        for (const Part &p : parts_)
            n = p.size() > n ? p.size() : n;
        return n * kParts;
    }
    std::size_t bytes() const {
        std::size_t n = 0;
        for (const Part &p : parts_)
            n += p.bytes();
        return n;
    }

  private:
    static std::uint32_t part_of(const Hash &h) { return static_cast<std::uint32_t>(h.high >> 58); }

    struct Cell {
        std::uint64_t high = 0;
        std::uint32_t low = 0, number = kNone;
    };
    class alignas(64) Part {
      public:
        std::uint32_t insert(const Hash &h, std::uint32_t parent, bool &fresh, std::uint32_t most) {
            const std::lock_guard guard(lock_);
            Cell *c = find(h);
            fresh = c->number == kNone;
            if (!fresh)
                return c->number;
            const auto number = static_cast<std::uint32_t>(parents_.size());
            if (number == most)
                throw TooManyStates{};
            parents_.push_back(parent);
            *c = {h.high, h.low, number};
            if (parents_.size() * 10 > cells_.size() * 7)
                grow();
            return number;
        }
        std::uint32_t number(const Hash &h) {
            const std::lock_guard guard(lock_);
            return find(h)->number;
        }
        std::uint32_t parent(std::uint32_t i) const { return parents_[i]; }
        std::size_t size() const {
            const std::lock_guard guard(lock_);
            return parents_.size();
        }
        std::size_t bytes() const {
            const std::lock_guard guard(lock_);
            return cells_.capacity() * sizeof(Cell) + parents_.capacity() * sizeof(std::uint32_t);
        }

      private:
        Cell *find(const Hash &h) {
            const std::size_t mask = cells_.size() - 1;
            std::size_t i = h.high & mask;
            while (cells_[i].number != kNone && (cells_[i].high != h.high || cells_[i].low != h.low))
                i = (i + 1) & mask;
            return &cells_[i];
        }
        void grow() {
            std::vector<Cell> old(cells_.size() * 2);
            old.swap(cells_);
            for (const Cell &c : old)
                if (c.number != kNone)
                    *find({c.high, c.low}) = c;
        }
        std::vector<Cell> cells_ = std::vector<Cell>(1u << 10);
        std::vector<std::uint32_t> parents_;
        mutable std::mutex lock_;
    };
    std::array<Part, kParts> parts_;
    std::uint32_t most_in_part_;
};

} // namespace moscope::verify
