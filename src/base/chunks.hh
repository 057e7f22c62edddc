// SPDX-License-Identifier: BSD-3-Clause
// A list that grows in pieces of 2^n elements, so that an element never moves and finding it takes few
// instructions. The host gives memory to a piece as it fills.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace moscope {

template <class T, std::size_t kChunk> class Chunks {
    static_assert((kChunk & (kChunk - 1)) == 0 && std::is_trivially_copyable_v<T>);

  public:
    std::size_t size() const { return size_; }
    T &operator[](std::size_t i) { return chunks_[i / kChunk].get()[i % kChunk]; }
    const T &operator[](std::size_t i) const { return chunks_[i / kChunk].get()[i % kChunk]; }
    T &add(const T &value) {
        if (size_ == chunks_.size() * kChunk)
            chunks_.emplace_back(std::allocator<T>().allocate(kChunk));
        return *std::construct_at(&(*this)[size_++], value);
    }
    /// The memory stays.
    void clear() { size_ = 0; }
    /// Calls f(std::span<const T>) for one piece after the other.
    template <class F> void for_each_piece(F &&f) const {
        for (std::size_t first = 0; first < size_; first += kChunk)
            f(std::span<const T>(chunks_[first / kChunk].get(), std::min(kChunk, size_ - first)));
    }

  private:
    struct Free {
        void operator()(T *chunk) const { std::allocator<T>().deallocate(chunk, kChunk); }
    };
    std::vector<std::unique_ptr<T, Free>> chunks_;
    std::size_t size_ = 0;
};

} // namespace moscope
