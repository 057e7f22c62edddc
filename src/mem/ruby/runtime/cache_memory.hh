// SPDX-License-Identifier: BSD-3-Clause
// A set-associative array of protocol entries: SLICC's CacheMemory. Tags lie side by side per set, so that a
// lookup touches few host lines; any number of sets is allowed (powers of two are quicker). Replacement
// policies: least recently used (time stamps), tree pseudo-LRU, first in first out, random (seeded).
#pragma once

#include <emmintrin.h>

#include <memory>
#include <string>
#include <vector>

#include "base/rng.hh"
#include "base/types.hh"
#include "mem/ruby/runtime/cache_entry.hh"
#include "sim/event_queue.hh"

namespace moscope::ruby {

enum class Replacement : std::uint8_t { lru, tree_plru, fifo, random };

struct CacheGeometry {
    std::string name;
    unsigned sets = 1;
    unsigned ways = 1;
    Replacement replacement = Replacement::lru;
    unsigned start_index_bit = kLineBits; ///< lowest address bit of the set index
    int tag_latency = 1, data_latency = 1; ///< cycles, for protocols that ask
};

class CacheMemory {
  public:
    CacheMemory(CacheGeometry g, const EventQueue &queue, std::uint64_t seed);

    // SLICC interface.
    bool isTagPresent(Addr a) const { return find(line_of(a)) != kNone; }
    AbstractCacheEntry *lookup(Addr a) const {
        const unsigned i = find(line_of(a));
        return i == kNone ? nullptr : entries_[i];
    }
    /// A free way in the set of `a`, or the line present already.
    bool cacheAvail(Addr a) const {
        const Addr line = line_of(a);
        return used_[set_of(line)] < g_.ways || find(line) != kNone;
    }
    /// Line to replace so that `a` fits.
    Addr cacheProbe(Addr a) const;
    AbstractCacheEntry *allocate(Addr a, AbstractCacheEntry *e, bool touch = true);
    void allocateVoid(Addr a, AbstractCacheEntry *e) { allocate(a, e, true); }
    void deallocate(Addr a);
    void setMRU(Addr a) {
        const unsigned i = find(line_of(a));
        if (i != kNone)
            touch(i);
    }
    void setMRU(Addr a, int) { setMRU(a); }
    void setMRU(AbstractCacheEntry *e) { touch(e->slot); }
    AbstractCacheEntry *getNullEntry() const { return nullptr; }
    int getTagLatency() const { return g_.tag_latency; }
    int getDataLatency() const { return g_.data_latency; }
    int getCacheSize() const { return static_cast<int>(g_.sets * g_.ways * kLineBytes); }
    int getNumBlocks() const { return static_cast<int>(g_.sets * g_.ways); }
    Addr getAddressAtIdx(int i) const { return entries_[i] ? tags_[i] : 0; }
    // Bank and array contention is not modelled (docs/warts.md); requests are counted by transitions.
    void recordRequestType(CacheRequestType, Addr) {}
    bool checkResourceAvailable(CacheResourceType, Addr) const { return true; }
    void profileDemandHit() { ++demand_hits; }
    void profileDemandMiss() { ++demand_misses; }
    void profilePrefetchHit() {}
    void profilePrefetchMiss() {}
    void htmCommitTransaction() {}
    void htmAbortTransaction() {}

    const CacheGeometry &geometry() const { return g_; }
    // Into the host's caches, without waiting. What a lookup of `a` will need:
    void prefetch(Addr a) const {
        const Addr line = line_of(a);
        const unsigned set = set_of(line);
        const unsigned base = set * g_.ways;
        const unsigned slot = hints_.empty() ? base : likely_slot(line, set, base);
        __builtin_prefetch(&tags_[slot]);
        __builtin_prefetch(&stamps_[slot]);
        __builtin_prefetch(entries_[slot]);
    }
    /// What replacing a line for `a` will need, when it is not there.
    void prefetch_victim(Addr a) const {
        const unsigned set = set_of(line_of(a));
        if (used_[set] == g_.ways)
            __builtin_prefetch(entries_[victim(set)]);
    }
    /// Replacement stamp of a slot if touching it is all that a hit does to the order; null for tree PLRU.
    Tick *stamp(unsigned slot) { return g_.replacement == Replacement::tree_plru ? nullptr : &stamp_of(slot); }
    void touch(unsigned slot);
    template <class F> void for_each(F &&f) const {
        for (auto *e : entries_)
            if (e)
                f(e);
    }
    /// Told of every line that leaves, so that inline slots can forget it.
    void (*on_remove)(void *context, Addr line) = nullptr;
    void *on_remove_context = nullptr;

    std::uint64_t demand_hits = 0, demand_misses = 0;

  private:
    static constexpr unsigned kNone = ~0u;
    static constexpr Addr kNoTag = ~Addr{0};

    unsigned set_of(Addr line) const {
        const Addr n = line >> g_.start_index_bit;
        return static_cast<unsigned>(pow2_ ? n & mask_ : n % g_.sets);
    }
    unsigned find(Addr line) const {
        if (line == memo_line_)
            return memo_slot_;
        const unsigned set = set_of(line);
        const unsigned base = set * g_.ways;
        const Addr *t = &tags_[base];
        unsigned found = kNone;
        if (hints_.empty()) {
            for (unsigned w = 0; w < g_.ways; ++w)
                if (t[w] == line) {
                    found = base + w;
                    break;
                }
        } else {
            found = find_wide(line, set, base);
        }
        memo_line_ = line;
        memo_slot_ = found;
        return found;
    }
    Tick &stamp_of(unsigned slot) {
        // A stamp that only hits write keeps FIFO and random untouched by them.
        return g_.replacement == Replacement::lru ? stamps_[slot] : scratch_;
    }
    unsigned victim(unsigned set) const;

    // Wide sets: 16 bits of each tag side by side, compared eight at a time; a match is checked against the tag.
    struct alignas(16) Hints {
        std::uint16_t lane[8];
    };
    static constexpr unsigned kLanes = 8;
    std::uint16_t hint_of(Addr line) const {
        const Addr n = line >> kLineBits;
        return static_cast<std::uint16_t>((n ^ (n >> 16) ^ (n >> 29)) | 1); // never 0, the hint of a free way
    }
    unsigned find_wide(Addr line, unsigned set, unsigned base) const {
        const __m128i wanted = _mm_set1_epi16(static_cast<short>(hint_of(line)));
        const Hints *v = &hints_[std::size_t{set} * vectors_];
        for (unsigned k = 0; k < vectors_; ++k) {
            const __m128i lanes = _mm_load_si128(reinterpret_cast<const __m128i *>(v + k));
            // Two bits for each lane that is equal.
            for (int m = _mm_movemask_epi8(_mm_cmpeq_epi16(lanes, wanted)) & 0x5555; m; m &= m - 1) {
                const unsigned w = k * kLanes + static_cast<unsigned>(__builtin_ctz(static_cast<unsigned>(m))) / 2;
                if (tags_[base + w] == line)
                    return base + w;
            }
        }
        return kNone;
    }
    /// The slot in which the line is if it is present; without a branch, as nobody waits for the answer.
    unsigned likely_slot(Addr line, unsigned set, unsigned base) const {
        const __m128i wanted = _mm_set1_epi16(static_cast<short>(hint_of(line)));
        const Hints *v = &hints_[std::size_t{set} * vectors_];
        unsigned slot = base;
        for (unsigned k = 0; k < vectors_; ++k) {
            const __m128i lanes = _mm_load_si128(reinterpret_cast<const __m128i *>(v + k));
            const auto m = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi16(lanes, wanted)));
            const unsigned w = base + k * kLanes + static_cast<unsigned>(__builtin_ctz(m | 0x10000)) / 2;
            slot = m ? w : slot;
        }
        return slot;
    }
    /// A free way of a set that has one.
    unsigned free_slot(unsigned set) const {
        const unsigned base = set * g_.ways;
        for (unsigned k = 0; k < vectors_; ++k) {
            const __m128i lanes =
                _mm_load_si128(reinterpret_cast<const __m128i *>(&hints_[std::size_t{set} * vectors_ + k]));
            const int m = _mm_movemask_epi8(_mm_cmpeq_epi16(lanes, _mm_setzero_si128()));
            if (m)
                return base + k * kLanes + static_cast<unsigned>(__builtin_ctz(static_cast<unsigned>(m))) / 2;
        }
        unsigned slot = base;
        while (tags_[slot] != kNoTag)
            ++slot;
        return slot;
    }
    void set_hint(unsigned slot, unsigned set, std::uint16_t h) {
        if (!hints_.empty())
            hints_[std::size_t{set} * vectors_ + (slot - set * g_.ways) / kLanes].lane[(slot - set * g_.ways) % kLanes] = h;
    }

    CacheGeometry g_;
    const EventQueue &queue_;
    bool pow2_;
    Addr mask_;
    std::vector<Addr> tags_;
    std::vector<AbstractCacheEntry *> entries_;
    std::vector<Hints> hints_; ///< empty for narrow sets
    unsigned vectors_ = 0;     ///< per set
    std::vector<Tick> stamps_;
    std::vector<std::uint16_t> used_; ///< ways taken, by set
    std::vector<std::uint64_t> tree_; ///< tree PLRU: one word of node bits per set
    mutable Rng rng_;
    mutable std::uint64_t random_draw_ = 0;
    Tick scratch_ = 0;
    mutable Addr memo_line_ = kNoTag - 1;
    mutable unsigned memo_slot_ = kNone;
};

} // namespace moscope::ruby
