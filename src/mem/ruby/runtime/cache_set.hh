// SPDX-License-Identifier: BSD-3-Clause
// Tags and order of a cache array's wide sets, apart from the entries, in one or two host lines a set: 16 bits of each
// way's tag, compared eight at a time, and the taken ways in their order, the next one to be replaced first. A byte of the
// order is the number of a way; the bytes behind the last taken way are kNoWay.
#pragma once

#include <immintrin.h>

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
        const std::size_t bytes = std::size_t{vectors_ + blocks_} * kBlock;
        stride_ = bytes <= kHostLine / 2 ? kHostLine / 2 : (bytes + kHostLine - 1) / kHostLine * kHostLine;
        // A shift reads one byte beyond the order: one host line more than the sets need.
        const std::size_t whole = stride_ * sets + kHostLine;
        heads_.reset(static_cast<std::byte *>(::operator new (whole, std::align_val_t{kHostLine})));
        std::memset(heads_.get(), 0, whole);
        for (unsigned set = 0; set < sets; ++set)
            std::memset(order(set), kNoWay, std::size_t{blocks_} * kBlock);
    }
    bool none() const { return !heads_; }

    bool full(unsigned set) const { return order(set)[ways_ - 1] != kNoWay; }
    /// The way in front; the set is not empty.
    unsigned first(unsigned set) const { return order(set)[0]; }
    /// Calls f(way) from the first to the last.
    template <class F> void for_each(unsigned set, F &&f) const {
        const std::uint8_t *o = order(set);
        for (unsigned i = 0; i < ways_ && o[i] != kNoWay; ++i)
            f(unsigned{o[i]});
    }

    /// The first way of which the bits of the tag are those of `hint` and of which is(way) holds; kNoWay: none.
    template <class Is> unsigned find(unsigned set, std::uint16_t hint, Is &&is) const {
        const __m128i wanted = _mm_set1_epi16(static_cast<short>(hint));
        const __m128i *v = tags(set);
        for (unsigned k = 0; k < vectors_; k += 2)
            for (unsigned m = equal(v, k, wanted); m; m &= m - 1)
                if (const unsigned way = k * kLanes + lowest(m); is(way))
                    return way;
        return kNoWay;
    }
    /// The way that find() would look at first, or any; without a branch, as the result is only prefetched.
    unsigned likely(unsigned set, std::uint16_t hint) const {
        const __m128i wanted = _mm_set1_epi16(static_cast<short>(hint));
        const __m128i *v = tags(set);
        unsigned way = 0;
        for (unsigned k = 0; k < vectors_; k += 2) {
            const unsigned m = equal(v, k, wanted);
            way = m ? k * kLanes + lowest(m | 0x10000) : way;
        }
        return way;
    }

    /// Takes the lowest free way for a tag, as the last of the order; the set is not full.
    unsigned take(unsigned set, std::uint16_t hint) {
        const __m128i *v = tags(set);
        unsigned k = 0, m;
        while (!(m = equal(v, k, _mm_setzero_si128())))
            k += 2;
        const unsigned way = k * kLanes + lowest(m);
        set_hint(set, way, hint);
        std::uint8_t *const o = order(set);
        // A line nearly always takes the place of one that has just left a full set.
        const unsigned last = ways_ >= 2 && o[ways_ - 2] != kNoWay ? ways_ - 1 : position(set, kNoWay);
        o[last] = static_cast<std::uint8_t>(way);
        return way;
    }
    void free(unsigned set, unsigned way) {
        set_hint(set, way, 0);
        order(set)[close_gap(set, way)] = kNoWay;
    }
    /// Moves a taken way to the end of the order.
    void move_to_end(unsigned set, unsigned way) {
        const unsigned last = close_gap(set, way);
        order(set)[last] = static_cast<std::uint8_t>(way);
    }

    void prefetch(unsigned set) const {
        const std::byte *h = heads_.get() + set * stride_;
        for (std::size_t b = 0; b < stride_; b += kHostLine)
            __builtin_prefetch(h + b);
    }

    static constexpr std::uint8_t kNoWay = 0xff;

  private:
    static constexpr unsigned kLanes = 8, kBlock = 16; ///< tags, and ways of the order, in a vector

    const __m128i *tags(unsigned set) const { return reinterpret_cast<const __m128i *>(heads_.get() + set * stride_); }
    std::uint8_t *order(unsigned set) const {
        return reinterpret_cast<std::uint8_t *>(heads_.get() + set * stride_ + std::size_t{vectors_} * kBlock);
    }
    /// A bit for each lane of vectors k and k + 1 that is equal; behind the last vector, none.
    unsigned equal(const __m128i *v, unsigned k, __m128i wanted) const {
        const __m128i low = _mm_cmpeq_epi16(_mm_load_si128(v + k), wanted);
        const __m128i high =
            k + 1 < vectors_ ? _mm_cmpeq_epi16(_mm_load_si128(v + k + 1), wanted) : _mm_setzero_si128();
        return static_cast<unsigned>(_mm_movemask_epi8(_mm_packs_epi16(low, high)));
    }
    static unsigned lowest(unsigned mask) { return static_cast<unsigned>(__builtin_ctz(mask)); }
    void set_hint(unsigned set, unsigned way, std::uint16_t hint) {
        std::memcpy(heads_.get() + set * stride_ + way * sizeof hint, &hint, sizeof hint);
    }
    /// Where a way is in the order, or where kNoWay begins; it is there.
    unsigned position(unsigned set, std::uint8_t way) const {
        const auto *o = reinterpret_cast<const __m128i *>(order(set));
        const __m128i wanted = _mm_set1_epi8(static_cast<char>(way));
        unsigned k = 0, m;
        while (!(m = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_load_si128(o + k), wanted)))))
            ++k;
        return k * kBlock + static_cast<unsigned>(__builtin_ctz(m));
    }
    /// Takes a way out of the order, so that those behind it move up; returns the place behind them.
    unsigned close_gap(unsigned set, unsigned way) {
        std::uint8_t *o = order(set);
        const unsigned last = full(set) ? ways_ - 1 : position(set, kNoWay) - 1;
        if (o[last] == way)
            return last;
        const unsigned at = position(set, static_cast<std::uint8_t>(way));
        unsigned k = at / kBlock;
        // Of the first block, what lies before the gap stays.
        const __m128i lanes = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m128i stays = _mm_cmplt_epi8(lanes, _mm_set1_epi8(static_cast<char>(at % kBlock)));
        auto *block = reinterpret_cast<__m128i *>(o + k * kBlock);
        const __m128i moved = _mm_loadu_si128(reinterpret_cast<const __m128i *>(o + k * kBlock + 1));
        _mm_store_si128(block, _mm_blendv_epi8(moved, _mm_load_si128(block), stays));
        while (++k <= last / kBlock) {
            const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i *>(o + k * kBlock + 1));
            _mm_store_si128(reinterpret_cast<__m128i *>(o + k * kBlock), v);
        }
        o[blocks_ * kBlock - 1] = kNoWay; // what came from beyond the order
        return last;
    }

    struct Free {
        void operator()(std::byte *p) const { ::operator delete (p, std::align_val_t{kHostLine}); }
    };
    std::unique_ptr<std::byte[], Free> heads_; ///< `stride_` bytes a set: tags, then the order
    std::size_t stride_ = 0;
    unsigned ways_ = 0, vectors_ = 0, blocks_ = 0;
};

} // namespace moscope::ruby
