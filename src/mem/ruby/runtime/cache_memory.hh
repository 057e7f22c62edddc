// SPDX-License-Identifier: BSD-3-Clause
// A set-associative array of protocol entries: SLICC's CacheMemory. The entries lie side by side in their ways,
// so that a lookup touches few host lines, and what it will touch can be fetched ahead; any number of sets is
// allowed (powers of two are quicker). Replacement policies are in replacement/. If a policy replaces the oldest line,
// the order is kept in time stamps where inline hits write them or sets are narrow, else as a list of ways. Among lines
// of the same tick, stamps replace the lowest way first, a list the line of the earliest call.
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.hh"
#include "base/rng.hh"
#include "base/types.hh"
#include "base/zeroed_array.hh"
#include "mem/ruby/runtime/cache_entry.hh"
#include "mem/ruby/runtime/cache_set.hh"
#include "mem/ruby/runtime/replacement/replacement_policy.hh"
#include "sim/event_queue.hh"

namespace moscope {
class Port;
}

namespace moscope::ruby {

struct CacheGeometry {
    std::string name;
    unsigned sets = 1;
    unsigned ways = 1;
    std::string replacement = "lru";       ///< name of a registered policy
    unsigned start_index_bit = kLineBits;  ///< lowest address bit of the set index
    int tag_latency = 1, data_latency = 1; ///< cycles, for protocols that ask
};

class CacheMemory {
  public:
    CacheMemory(CacheGeometry g, const EventQueue &queue, std::uint64_t seed);

    // SLICC interface.
    bool isTagPresent(Addr a) const { return find(a) != nullptr; }
    AbstractCacheEntry *lookup(Addr a) const { return find(a); }
    /// Whether the set of `a` has a free way, or already the line.
    [[gnu::always_inline]] bool cacheAvail(Addr a) const {
        const Cursor &c = at(a);
        return !c.full || c.entry;
    }
    /// Line to replace so that `a` fits.
    [[gnu::always_inline]] Addr cacheProbe(Addr a) const {
        const Cursor &c = at(a);
        MOSCOPE_CHECK(c.full && !c.entry);
        cursor_.victim = entry(victim(c.set, c.head));
        return cursor_.victim_line = cursor_.victim->m_Address;
    }
    /// A new entry in a free way; it stays there until it is deallocated.
    template <class T> T *allocate(Addr a, NewEntry<T>, bool touch = true) {
        static_assert(std::is_base_of_v<AbstractCacheEntry, T> && std::is_trivially_copyable_v<T>);
        if (__builtin_expect(stride_ != sizeof(T), 0))
            hold(sizeof(T), alignof(T));
        const Addr line = line_of(a);
        const unsigned i = take(line, touch);
        T *e = new (entry(i)) T();
        e->m_Address = line;
        e->slot = i;
        cursor_.entry = e;
        return e;
    }
    /// The same for an entry that was made before: it moves into its way, and `e` then points there.
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
        if (AbstractCacheEntry *e = find(a))
            touch(e);
    }
    void setMRU(Addr a, int) { setMRU(a); }
    void setMRU(AbstractCacheEntry *e) { touch(e); }
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
    /// Whether an entry lies in this array.
    bool holds(const AbstractCacheEntry *e) const {
        const auto at = static_cast<std::size_t>(reinterpret_cast<const std::byte *>(e) - ways_.get());
        return at < bytes_;
    }
    /// Where an inline hit of a slot writes its time stamp; null if the policy wants a call. Once a stamp has been asked
    /// for, stamps keep the order of the whole array.
    Tick *stamp(unsigned slot) {
        if (hit_ != Hit::stamp)
            return hit_ == Hit::call ? nullptr : &scratch_; // the policy ignores hits
        if (__builtin_expect(stamps_.empty(), 0))
            begin_stamps();
        return &stamps_[slot];
    }
    void touch(AbstractCacheEntry *e) {
        if (!holds(e) || e->m_Address == kNoTag)
            return; // an entry of another array, or one that is no longer in use
        if (hit_ == Hit::stamp) {
            if (!stamps_.empty()) {
                stamps_[e->slot] = queue_.now();
            } else {
                const unsigned set = set_of(e->m_Address);
                heads_.move_to_end(heads_.head(set), e->slot - set * g_.ways);
            }
        } else if (hit_ == Hit::call) {
            policy_.touch(state_, e->slot / g_.ways, e->slot % g_.ways);
        }
    }
    /// Calls f(AbstractCacheEntry *) for each line held.
    template <class F> void for_each(F &&f) const {
        for (unsigned i = 0; i < g_.sets * g_.ways; ++i)
            if (entry(i)->m_Address != kNoTag)
                f(entry(i));
    }
    /// The port whose inline slots forget every line that leaves; null: none.
    Port *port = nullptr;

    std::uint64_t demand_hits = 0, demand_misses = 0;

  private:
    using Hit = ReplacementPolicy::Hit;
    static constexpr Addr kNoTag = ~Addr{0};
    static constexpr Addr kFree = 1; ///< a bit of kNoTag that no line's address has
    static constexpr std::size_t kHostLine = SetHeads::kHostLine;
    static constexpr unsigned kNarrow = 4; ///< ways whose entries are looked at one by one
    static constexpr unsigned kNoSlot = ~0u;

    unsigned set_of(Addr line) const {
        const Addr n = line >> g_.start_index_bit;
        return static_cast<unsigned>(pow2_ ? n & mask_ : n % g_.sets);
    }
    /// What was found for a line, since a message asks about the same line several times. It stays valid until a line
    /// of the set comes or leaves, which allocate() and deallocate() record. The next victim is not kept, because
    /// inline hits write stamps without notice.
    struct Cursor {
        Addr line = kNoTag - 1;
        AbstractCacheEntry *entry = nullptr;  ///< of the line; null: it is not present
        Addr victim_line = kNoTag - 1;        ///< the line of the set that cacheProbe() gave last
        AbstractCacheEntry *victim = nullptr; ///< its entry; null: it has left
        SetHeads::Head head = nullptr;        ///< of the set, if it has one
        unsigned set = 0;
        unsigned free_slot = kNoSlot; ///< the only free slot of the set, if that is certain
        bool full = false;            ///< the set has no free way
    };
    /// Nearly all addresses are those of lines. An address that equals the cursor's is one, so only a search masks it.
    const Cursor &at(Addr a) const {
        if (__builtin_expect(a != cursor_.line, 0))
            seek(line_of(a));
        return cursor_;
    }
    void seek(Addr line) const { heads_.none() ? seek_narrow(line) : seek_wide(line); }
    template <unsigned kWays> void seek_in(AbstractCacheEntry *e, Addr line) const;
    void seek_narrow(Addr line) const;
    void seek_wide(Addr line) const;
    [[gnu::noinline]] void seek_among(Addr line, unsigned found, unsigned first) const;
    void move_cursor(Addr line, SetHeads::Head head, unsigned set) const;
    AbstractCacheEntry *find(Addr a) const {
        if (a == cursor_.line)
            return cursor_.entry;
        if (a == cursor_.victim_line)
            return cursor_.victim;
        seek(line_of(a));
        return cursor_.entry;
    }
    /// The slot to be given up next in a full set.
    unsigned victim(unsigned set, SetHeads::Head h) const {
        if (choice_ == Choice::first)
            return set * g_.ways + heads_.first(h);
        if (choice_ == Choice::older_of_two) {
            const Tick *const s = stamp_base_ + 2 * std::size_t{set};
            return 2 * set + (s[1] < s[0]);
        }
        return victim_otherwise(set);
    }
    unsigned victim_otherwise(unsigned set) const;
    void begin_stamps();
    AbstractCacheEntry *entry(std::size_t slot) const {
        return reinterpret_cast<AbstractCacheEntry *>(ways_.get() + slot * stride_);
    }
    /// The first entry of a set.
    AbstractCacheEntry *first_of(unsigned set) const {
        return reinterpret_cast<AbstractCacheEntry *>(ways_.get() + set * set_bytes_);
    }
    /// The entry `ways` ways further in the set.
    AbstractCacheEntry *after(const AbstractCacheEntry *e, std::size_t ways = 1) const {
        return reinterpret_cast<AbstractCacheEntry *>(reinterpret_cast<std::uintptr_t>(e) + ways * stride_);
    }
    /// Makes the ways as large as the protocol's entries.
    void hold(std::size_t bytes, std::size_t alignment);
    /// The slot of a free way for a line; one that has just left a full set is taken again.
    unsigned take(Addr line, bool touch);
    [[gnu::cold, gnu::noinline]] unsigned take_sought(Addr line, bool touch);
    [[gnu::noinline]] void deallocate_sought(Addr line);
    // A free way of the cursor's set, which is not full, for its line.
    unsigned take_narrow();
    unsigned take_one_by_one();
    unsigned take_wide();
    [[noreturn, gnu::cold, gnu::noinline]] void fail(const char *what) const;
    [[gnu::cold, gnu::noinline]] unsigned place(unsigned slot, bool touch_it);

    /// Bits that differ between most lines of a set.
    std::uint16_t hint_of(Addr line) const {
        const Addr n = line >> hint_shift_;
        return static_cast<std::uint16_t>((n ^ (n >> 16)) | 1); // never 0, the hint of a free way
    }

    mutable Cursor cursor_;
    CacheGeometry g_;
    const ReplacementPolicy &policy_;
    const Hit hit_;           ///< the policy's
    const bool sees_placing_; ///< a new line calls one of the policy's functions
    const EventQueue &queue_;
    bool pow2_;
    unsigned hint_shift_;
    Addr mask_;
    struct Free {
        void operator()(std::byte *p) const { ::operator delete (p, std::align_val_t{kHostLine}); }
    };
    std::unique_ptr<std::byte[], Free> ways_; ///< the entries, `stride_` bytes each; free ones have no address
    std::size_t stride_ = 0, set_bytes_ = 0, bytes_ = 0; ///< of one entry, of a set, of all
    SetHeads heads_;                                     ///< none for sets that are narrow, or too wide for it
    bool listed_ = false; ///< the heads' order is that of replacement, unless there are stamps
    /// The victim of a full set: the first of the list, the one of two ways with the older stamp, or what else decides.
    enum class Choice : std::uint8_t { first, older_of_two, otherwise } choice_ = Choice::otherwise;
    ZeroedArray<Tick> stamps_;   ///< by slot, if they keep the order
    Tick *stamp_base_ = nullptr; ///< the first of them
    ReplacementState state_;
    Tick scratch_ = 0;
};

} // namespace moscope::ruby
