// SPDX-License-Identifier: BSD-3-Clause
// States that wait to be explored, in compressed blocks. A state is its number, its length, and then pairs of runs:
// zeros, of which only the length is kept, and other bytes.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

namespace moscope::verify {

class Block {
  public:
    void push(const void *state, std::size_t bytes, std::uint32_t number) {
        const auto *p = static_cast<const std::uint8_t *>(state);
        const auto length = static_cast<std::uint16_t>(bytes);
        append(&number, sizeof number);
        append(&length, sizeof length);
        for (std::size_t i = 0; i < bytes;) {
            std::size_t zeros = i, end;
            while (zeros < bytes && zeros - i < 255 && p[zeros] == 0)
                ++zeros;
            for (end = zeros; end < bytes && end - zeros < 255; ++end)
                if (p[end] == 0 && end + 2 < bytes && p[end + 1] == 0 && p[end + 2] == 0)
                    break;
            const std::uint8_t head[] = {static_cast<std::uint8_t>(zeros - i), static_cast<std::uint8_t>(end - zeros)};
            append(head, 2);
            append(p + zeros, end - zeros);
            i = end;
        }
        ++count_;
    }
    /// Reads the state at position `at`, and moves `at` to the next one. False: there are no more.
    bool pop(std::size_t &at, void *state, std::size_t bytes, std::uint32_t &number) const {
        if (at == bytes_.size())
            return false;
        std::uint16_t length;
        std::memcpy(&number, &bytes_[at], sizeof number);
        std::memcpy(&length, &bytes_[at + sizeof number], sizeof length);
        at += sizeof number + sizeof length;
        auto *p = static_cast<std::uint8_t *>(state);
        std::memset(p, 0, bytes);
        for (std::size_t i = 0; i < length;) {
            const std::size_t zeros = bytes_[at], others = bytes_[at + 1];
            std::memcpy(p + i + zeros, &bytes_[at + 2], others);
            at += 2 + others;
            i += zeros + others;
        }
        return true;
    }
    std::size_t count() const { return count_; }
    std::size_t bytes() const { return bytes_.capacity(); }
    bool full() const { return bytes_.size() >= kBytes; }
    void clear() { *this = Block{}; }

  private:
    static constexpr std::size_t kBytes = 1u << 17;
    void append(const void *data, std::size_t n) {
        const auto *p = static_cast<const std::uint8_t *>(data);
        bytes_.insert(bytes_.end(), p, p + n);
    }
    std::vector<std::uint8_t> bytes_;
    std::size_t count_ = 0;
};

/// A layer of the exploration: all states at one distance from the first.
struct Layer {
    std::vector<Block> blocks;
    std::size_t size() const {
        std::size_t n = 0;
        for (const Block &b : blocks)
            n += b.count();
        return n;
    }
};

} // namespace moscope::verify
