// SPDX-License-Identifier: BSD-3-Clause
// Tags and order of a cache array's wide sets, apart from the entries, in a few host lines a set: 16 bits of each
// way's tag, compared eight at a time, the taken ways in their order, the next one to be replaced first, and how many
// they are. A byte of the order is the number of a way; those behind the last taken way have no meaning, except that
// the last of them may hold the number of taken ways.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>

#include "base/types.hh"

namespace moscope::ruby {

class SetHeads {
  public:
    static constexpr unsigned kMostWays = 128;
    static constexpr std::size_t kHostLine = 64;

    void init(unsigned sets, unsigned ways) {
        ways_ = ways;
        vectors_ = (ways + kLanes - 1) / kLanes;
        blocks_ = (ways + kBlock - 1) / kBlock;
        order_at_ = std::size_t{vectors_} * kBlock;
        last_vector_ = order_at_ - kBlock;
        // The number of taken ways is in the order's last byte, if no way is there.
        taken_at_ = order_at_ + std::size_t{blocks_} * kBlock - (ways % kBlock != 0);
        const std::size_t bytes = taken_at_ + 1;
        stride_ = bytes <= kHostLine / 2 ? kHostLine / 2 : (bytes + kHostLine - 1) / kHostLine * kHostLine;
        // A shift reads one byte beyond the order: one host line more than the sets need.
        const std::size_t whole = stride_ * sets + kHostLine;
        heads_.reset(static_cast<std::byte *>(::operator new (whole, std::align_val_t{kHostLine})));
        std::memset(heads_.get(), 0, whole);
    }
    bool none() const { return !heads_; }

    /// Where a set's tags and order are.
    using Head = std::byte *;
    Head head(unsigned set) const { return heads_.get() + set * stride_; }

    bool full(Head h) const { return taken(h) == ways_; }
    /// The way in front; the set is not empty.
    unsigned first(Head h) const { return order(h)[0]; }
    /// Calls f(way) from the first to the last.
    template <class F> void for_each(Head h, F &&f) const {
        for (unsigned i = 0; i < taken(h); ++i)
            f(unsigned{order(h)[i]});
    }

    /// Ways whose bits of the tag equal a hint.
    struct Ways {
        unsigned found; ///< a bit for each of sixteen ways, set if it matches; 0: no way of the set matches
        unsigned first; ///< number of the way of bit 0
        unsigned lowest() const { return first + static_cast<unsigned>(__builtin_ctz(found)); }
    };
    /// The first group of sixteen ways with a match, from way number `from` on, which is a multiple of sixteen.
    [[gnu::always_inline]] Ways equal(Head h, std::uint16_t hint, unsigned from = 0) const {
        const auto *v = reinterpret_cast<const __m128i *>(h + from * sizeof hint);
        const auto *const end = reinterpret_cast<const __m128i *>(h + last_vector_);
        const __m128i wanted = _mm_set1_epi16(static_cast<short>(hint));
        const auto ways = [h](__m128i low, __m128i high, const __m128i *at) {
            return Ways{static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(low, high))),
                        static_cast<unsigned>(reinterpret_cast<const std::byte *>(at) - h) / 2};
        };
        for (; v < end; v += 2) {
            const __m128i low = _mm_cmpeq_epi16(_mm_load_si128(v), wanted);
            if (const Ways w = ways(low, _mm_cmpeq_epi16(_mm_load_si128(v + 1), wanted), v); w.found)
                return w;
        }
        if (v == end)
            return ways(_mm_cmpeq_epi16(_mm_load_si128(v), wanted), _mm_setzero_si128(), v);
        return {0, 0};
    }
    /// Takes the way that has just left a full set.
    void take_back(Head h, unsigned way, std::uint16_t hint) {
        set_hint(h, way, hint);
        append(h, ways_ - 1, way);
    }
    /// Takes the lowest free way for a tag, as the last of the order; the set is not full.
    [[gnu::always_inline]] unsigned take(Head h, std::uint16_t hint) {
        const unsigned way = equal(h, 0).lowest();
        set_hint(h, way, hint);
        append(h, taken(h), way);
        return way;
    }
    [[gnu::always_inline]] void free(Head h, unsigned way) {
        set_hint(h, way, 0);
        set_taken(h, close_gap(h, way));
    }
    /// Moves a taken way to the end of the order.
    void move_to_end(Head h, unsigned way) { append(h, close_gap(h, way), way); }

  private:
    static constexpr unsigned kLanes = 8, kBlock = 16; ///< tags, and ways of the order, in a vector

    std::uint8_t *order(Head h) const { return reinterpret_cast<std::uint8_t *>(h + order_at_); }
    static unsigned lowest(unsigned mask) { return static_cast<unsigned>(__builtin_ctz(mask)); }
    static void set_hint(Head h, unsigned way, std::uint16_t hint) {
        std::memcpy(h + way * sizeof hint, &hint, sizeof hint);
    }
    unsigned taken(Head h) const { return std::to_integer<unsigned>(h[taken_at_]); }
    void set_taken(Head h, unsigned n) const { h[taken_at_] = static_cast<std::byte>(n); }
    /// The order gets a way behind its first n, and ends there.
    void append(Head h, unsigned n, unsigned way) const {
        order(h)[n] = static_cast<std::uint8_t>(way);
        set_taken(h, n + 1);
    }
    /// Where a way is in the order. Bytes behind the last taken way may be equal, but are not the first such ones.
    static unsigned position(const std::uint8_t *order, unsigned way) {
        const auto *o = reinterpret_cast<const __m128i *>(order);
        const __m128i wanted = _mm_set1_epi8(static_cast<char>(way));
        unsigned k = 0, m;
        while (!(m = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(o + k), wanted)))))
            ++k;
        return k * kBlock + lowest(m);
    }
    /// Takes a way out of the order, so that those behind it move up; returns how many remain. The number that the head
    /// has is undefined from then on, because it may lie in a block that moves.
    [[gnu::always_inline]] unsigned close_gap(Head h, unsigned way) const {
        std::uint8_t *const o = order(h);
        const unsigned last = taken(h) - 1;
        if (o[last] == way)
            return last;
        unsigned k = 0;
        if (o[0] != way) { // the next to be replaced is in front
            const unsigned at = position(o, way);
            k = at / kBlock * kBlock;
            // Of its block, what lies before it stays.
            const __m128i lanes = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            const __m128i stays = _mm_cmplt_epi8(lanes, _mm_set1_epi8(static_cast<char>(at % kBlock)));
            auto *const block = reinterpret_cast<__m128i *>(o + k);
            const __m128i moved = _mm_loadu_si128(reinterpret_cast<const __m128i *>(o + k + 1));
            _mm_store_si128(block, _mm_blendv_epi8(moved, _mm_load_si128(block), stays));
            k += kBlock;
        }
        for (; k <= last; k += kBlock)
            _mm_store_si128(reinterpret_cast<__m128i *>(o + k),
                            _mm_loadu_si128(reinterpret_cast<const __m128i *>(o + k + 1)));
        return last;
    }

    struct Free {
        void operator()(std::byte *p) const { ::operator delete (p, std::align_val_t{kHostLine}); }
    };
    std::unique_ptr<std::byte[], Free> heads_; ///< `stride_` bytes a set: tags, then the order
    std::size_t stride_ = 0, order_at_ = 0;
    std::size_t taken_at_ = 0, last_vector_ = 0; ///< of the number of taken ways, of the last tags
    unsigned ways_ = 0, vectors_ = 0, blocks_ = 0;
};

} // namespace moscope::ruby
