// SPDX-License-Identifier: BSD-3-Clause
// A set-associative array of protocol entries: SLICC's CacheMemory. The entries lie side by side in their ways,
// so that a lookup touches few host lines, and what it will touch can be fetched ahead; any number of sets is
// allowed (powers of two are quicker). Replacement policies: least recently used (time stamps), tree pseudo-LRU,
// first in first out, random (seeded).
#pragma once

#include <emmintrin.h>

#include <algorithm>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hh"
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
        return i == kNone ? nullptr : entry(i);
    }
    /// A free way in the set of `a`, or the line present already.
    bool cacheAvail(Addr a) const {
        const Addr line = line_of(a);
        return used_[set_of(line)] < g_.ways || find(line) != kNone;
    }
    /// Line to replace so that `a` fits.
    Addr cacheProbe(Addr a) const;
    /// A new entry in a free way; it stays there until it is deallocated.
    template <class T> T *allocate(Addr a, NewEntry<T>, bool touch = true) {
        static_assert(std::is_base_of_v<AbstractCacheEntry, T> && std::is_trivially_copyable_v<T>);
        if (__builtin_expect(stride_ != sizeof(T), 0))
            hold(sizeof(T), alignof(T));
        const unsigned i = take_way(a, touch);
        T *e = new (entry(i)) T();
        e->m_Address = line_of(a);
        e->slot = i;
        return e;
    }
    /// The same for one that has been made before: it moves into its way, and `e` with it.
    template <class T> T *allocate(Addr a, T *&e, bool touch = true) {
        T *there = allocate(a, NewEntry<T>{}, touch);
        const AbstractCacheEntry place = *there;
        *there = *e;
        there->m_Address = place.m_Address;
        there->slot = place.slot;
        EntryPool<T>::give_back(e);
        return e = there;
    }
    template <class T> T *allocate(Addr a, T *&&e, bool touch = true) { return allocate(a, e, touch); }
    template <class... E> void allocateVoid(Addr a, E &&...e) { allocate(a, std::forward<E>(e)...); }
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
    Addr getAddressAtIdx(int i) const {
        const Addr a = entry(static_cast<unsigned>(i))->m_Address;
        return a == kNoTag ? 0 : a;
    }
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
    // Into the host's caches, without waiting. First what tells where the line of `a` is, and, if one is to be
    // replaced for it, which; some time later that line and that victim.
    void prefetch_set(Addr a, bool placed) const {
        const unsigned set = set_of(line_of(a));
        const std::size_t base = std::size_t{set} * g_.ways;
        if (hints_.empty()) {
            __builtin_prefetch(entry(base));
            __builtin_prefetch(&stamps_[base]);
            return;
        }
        const auto *v = &hints_[std::size_t{set} * vectors_];
        for (unsigned k = 0; k < vectors_; k += kHostLine / sizeof *v)
            __builtin_prefetch(v + k);
        if (placed && used_[set] == g_.ways)
            for (unsigned w = 0; w < g_.ways + kHostLine / sizeof(Tick) - 1; w += kHostLine / sizeof(Tick))
                __builtin_prefetch(&stamps_[base + std::min(w, g_.ways - 1)]);
    }
    void prefetch_line(Addr a, bool placed) const {
        if (hints_.empty())
            return;
        const Addr line = line_of(a);
        const unsigned set = set_of(line);
        const unsigned slot = placed && used_[set] == g_.ways ? victim(set) : likely_slot(line, set, set * g_.ways);
        __builtin_prefetch(entry(slot));
        __builtin_prefetch(&stamps_[slot]);
    }
    /// Whether an entry lies in this array.
    bool holds(const AbstractCacheEntry *e) const {
        const auto at = static_cast<std::size_t>(reinterpret_cast<const std::byte *>(e) - ways_.get());
        return at < std::size_t{g_.sets} * g_.ways * stride_;
    }
    /// Replacement stamp of a slot if touching it is all that a hit does to the order; null for tree PLRU.
    Tick *stamp(unsigned slot) { return g_.replacement == Replacement::tree_plru ? nullptr : &stamp_of(slot); }
    void touch(unsigned slot);
    /// Calls f(AbstractCacheEntry *) for each line held.
    template <class F> void for_each(F &&f) const {
        for (unsigned i = 0; i < g_.sets * g_.ways; ++i)
            if (entry(i)->m_Address != kNoTag)
                f(entry(i));
    }
    /// Told of every line that leaves, so that inline slots can forget it.
    void (*on_remove)(void *context, Addr line) = nullptr;
    void *on_remove_context = nullptr;

    std::uint64_t demand_hits = 0, demand_misses = 0;

  private:
    static constexpr unsigned kNone = ~0u;
    static constexpr Addr kNoTag = ~Addr{0};
    static constexpr std::size_t kHostLine = 64;

    unsigned set_of(Addr line) const {
        const Addr n = line >> g_.start_index_bit;
        return static_cast<unsigned>(pow2_ ? n & mask_ : n % g_.sets);
    }
    unsigned find(Addr line) const {
        if (line == memo_line_)
            return memo_slot_;
        const unsigned set = set_of(line);
        const unsigned base = set * g_.ways;
        unsigned found = kNone;
        if (hints_.empty()) {
            for (unsigned w = 0; w < g_.ways; ++w)
                if (entry(base + w)->m_Address == line) {
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
    AbstractCacheEntry *entry(std::size_t slot) const {
        return reinterpret_cast<AbstractCacheEntry *>(ways_.get() + slot * stride_);
    }
    /// Makes the ways as large as the protocol's entries.
    void hold(std::size_t bytes, std::size_t alignment);
    unsigned take_way(Addr a, bool touch);

    // Wide sets: 16 bits of each tag side by side, compared eight at a time; a match is checked against the entry.
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
                if (entry(base + w)->m_Address == line)
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
        while (entry(slot)->m_Address != kNoTag)
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
    struct Free {
        void operator()(std::byte *p) const { ::operator delete(p, std::align_val_t{kHostLine}); }
    };
    std::unique_ptr<std::byte[], Free> ways_; ///< the entries, `stride_` bytes each; free ones have no address
    std::size_t stride_ = 0;
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
