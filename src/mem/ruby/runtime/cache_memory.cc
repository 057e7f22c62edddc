// SPDX-License-Identifier: BSD-3-Clause
// Allocation and replacement of the set-associative array.
#include "mem/ruby/runtime/cache_memory.hh"

#include <bit>

#include "mem/port.hh"

namespace moscope::ruby {

CacheMemory::CacheMemory(CacheGeometry g, const EventQueue &queue, std::uint64_t seed)
    : g_(std::move(g)),
      policy_(replacement_policy(g_.replacement, g_.name)),
      hit_(policy_.hit),
      sees_placing_(policy_.placed || hit_ == Hit::call),
      queue_(queue),
      pow2_(std::has_single_bit(g_.sets)),
      hint_shift_(kLineBits + (g_.start_index_bit == kLineBits && g_.sets > 1
                                   ? static_cast<unsigned>(std::bit_width(g_.sets)) - 2
                                   : 0)), // the lowest bit of a hint is always set
      mask_(g_.sets - 1) {
    if (g_.sets == 0 || g_.ways == 0)
        throw UserError(g_.name + ": " + std::to_string(g_.sets) + " sets of " + std::to_string(g_.ways) +
                        " ways: expected at least one set and one way");
    if (const std::string problem = policy_.refuse ? policy_.refuse(g_.sets, g_.ways) : ""; !problem.empty())
        throw UserError(g_.name + ": " + problem);
    hold(sizeof(AbstractCacheEntry), alignof(AbstractCacheEntry));
    if (g_.ways > kNarrow && g_.ways <= SetHeads::kMostWays)
        heads_.init(g_.sets, g_.ways);
    listed_ = !policy_.victim && !heads_.none();
    state_.sets = g_.sets;
    state_.ways = g_.ways;
    state_.words.assign(std::size_t{g_.sets} * policy_.words_per_set, 0);
    state_.rng = Rng(seed);
    if (!listed_) {
        stamps_ = ZeroedArray<Tick>(std::size_t{g_.sets} * g_.ways);
        state_.stamps = stamp_base_ = stamps_.data();
    }
    if (!policy_.victim)
        choice_ = listed_ ? Choice::first : g_.ways == 2 ? Choice::older_of_two : Choice::otherwise;
}

/// Moves the cursor to a line; what follows says whether it is present and whether its set is full.
[[gnu::always_inline]] inline void CacheMemory::move_cursor(Addr line, SetHeads::Head head, unsigned set) const {
    cursor_.line = line;
    cursor_.victim_line = kNoTag - 1;
    cursor_.head = head;
    cursor_.set = set;
    cursor_.free_slot = kNoSlot;
}

/// Looks at the entries of a set one by one, from the first on; `kWays` is their number, or 0 if that is another.
template <unsigned kWays>
[[gnu::always_inline]] inline void CacheMemory::seek_in(AbstractCacheEntry *e, Addr line) const {
    AbstractCacheEntry *found = nullptr;
    Addr any = 0;
    for (unsigned w = 0; w < (kWays ? kWays : g_.ways); ++w, e = after(e)) {
        found = e->m_Address == line ? e : found;
        any |= e->m_Address;
    }
    cursor_.entry = found;
    cursor_.full = !(any & kFree);
}

/// Moves the cursor to a line, of a set without a head.
void CacheMemory::seek_narrow(Addr line) const {
    const unsigned set = set_of(line);
    move_cursor(line, nullptr, set);
    AbstractCacheEntry *const e = first_of(set);
    if (__builtin_expect(g_.ways == 2, 1))
        seek_in<2>(e, line);
    else if (g_.ways == 4)
        seek_in<4>(e, line);
    else
        seek_in<0>(e, line);
}

/// The same for a set with a head.
void CacheMemory::seek_wide(Addr line) const {
    const unsigned set = set_of(line);
    const SetHeads::Head head = heads_.head(set);
    move_cursor(line, head, set);
    cursor_.full = heads_.full(head);
    const SetHeads::Ways ways = heads_.equal(head, hint_of(line));
    if (!ways.found) {
        cursor_.entry = nullptr;
        return;
    }
    AbstractCacheEntry *const e = after(first_of(set), ways.lowest());
    if (__builtin_expect(e->m_Address == line, 1))
        cursor_.entry = e;
    else
        seek_among(line, ways.found, ways.first); // a call at the end, so that the others save no registers
}

/// The same if ways have the line's hint and the first of them holds another line.
void CacheMemory::seek_among(Addr line, unsigned found, unsigned first) const {
    SetHeads::Ways ways{found, first};
    do {
        do {
            AbstractCacheEntry *const e = after(first_of(cursor_.set), ways.lowest());
            if (__builtin_expect(e->m_Address == line, 1)) {
                cursor_.entry = e;
                return;
            }
        } while (ways.found &= ways.found - 1);
        ways = heads_.equal(cursor_.head, hint_of(line), ways.first + 16);
    } while (ways.found);
    cursor_.entry = nullptr;
}

unsigned CacheMemory::victim_otherwise(unsigned set) const {
    const unsigned base = set * g_.ways;
    if (policy_.victim)
        return base + policy_.victim(state_, set);
    unsigned best = base;
    Tick oldest = stamps_[base];
    for (unsigned i = base + 1; i < base + g_.ways; ++i) { // conditional moves, because branches would be mispredicted
        const bool older = stamps_[i] < oldest;
        oldest = older ? stamps_[i] : oldest;
        best = older ? i : best;
    }
    return best;
}

/// Makes stamps in the order of the list of ways; all later stamps are greater.
void CacheMemory::begin_stamps() {
    choice_ = Choice::otherwise;
    stamps_ = ZeroedArray<Tick>(std::size_t{g_.sets} * g_.ways);
    state_.stamps = stamp_base_ = stamps_.data();
    for (unsigned set = 0; set < g_.sets; ++set) {
        Tick before_all = -static_cast<Tick>(g_.ways);
        heads_.for_each(heads_.head(set),
                        [&](unsigned way) { stamps_[std::size_t{set} * g_.ways + way] = before_all++; });
    }
}

void CacheMemory::hold(std::size_t bytes, std::size_t alignment) {
    MOSCOPE_CHECK(alignment <= kHostLine);
    const std::size_t n = std::size_t{g_.sets} * g_.ways;
    for (std::size_t i = 0; stride_ && i < n; ++i)
        if (entry(i)->m_Address != kNoTag)
            throw ProtocolError(g_.name + ": entries of two types in one array");
    ways_.reset(static_cast<std::byte *>(::operator new (n *bytes, std::align_val_t{kHostLine})));
    stride_ = bytes;
    set_bytes_ = g_.ways * bytes;
    bytes_ = n * bytes;
    cursor_ = {};
    for (std::size_t i = 0; i < n; ++i)
        (new (entry(i)) AbstractCacheEntry())->m_Address = kNoTag;
}

void CacheMemory::fail(const char *what) const { throw ProtocolError(g_.name + what); }

[[gnu::always_inline]] inline unsigned CacheMemory::take_narrow() {
    if (__builtin_expect(g_.ways > kNarrow, 0))
        return take_one_by_one();
    const unsigned first = cursor_.set * g_.ways;
    const AbstractCacheEntry *e = entry(first);
    unsigned free = 0; // a bit for each way
    for (unsigned w = 0; w < g_.ways; ++w, e = after(e))
        free |= static_cast<unsigned>(e->m_Address & kFree) << w;
    cursor_.full = (free & (free - 1)) == 0;
    return first + static_cast<unsigned>(__builtin_ctz(free));
}

/// The same of a set with more ways than a head can have.
[[gnu::noinline]] unsigned CacheMemory::take_one_by_one() {
    const unsigned first = cursor_.set * g_.ways;
    unsigned free = 0, way = 0;
    for (unsigned w = g_.ways; w-- > 0;)
        if (entry(first + w)->m_Address == kNoTag) {
            way = w;
            ++free;
        }
    cursor_.full = free == 1;
    return first + way;
}

[[gnu::always_inline]] inline unsigned CacheMemory::take_wide() {
    const unsigned way = heads_.take(cursor_.head, hint_of(cursor_.line));
    cursor_.full = heads_.full(cursor_.head);
    return cursor_.set * g_.ways + way;
}

/// Calls the policy's functions for a new line; returns its slot.
unsigned CacheMemory::place(unsigned slot, bool touch_it) {
    const unsigned set = cursor_.set, way = slot - set * g_.ways;
    if (policy_.placed)
        policy_.placed(state_, set, way);
    if (touch_it && hit_ == Hit::call)
        policy_.touch(state_, set, way);
    return slot;
}

/// take() of a line that the cursor is not at.
unsigned CacheMemory::take_sought(Addr line, bool touch) {
    at(line);
    return take(line, touch);
}

// take() and deallocate() make calls only at their end, so that few registers are saved.
unsigned CacheMemory::take(Addr line, bool touch) {
    if (__builtin_expect(line != cursor_.line, 0))
        return take_sought(line, touch);
    if (__builtin_expect(cursor_.full, 0))
        fail(": allocate without a free way in the set");
    unsigned slot = cursor_.free_slot;
    if (__builtin_expect(slot != kNoSlot, 1)) {
        cursor_.free_slot = kNoSlot;
        cursor_.full = true;
        if (cursor_.head)
            heads_.take_back(cursor_.head, slot - cursor_.set * g_.ways, hint_of(line));
    } else {
        slot = cursor_.head ? take_wide() : take_narrow();
    }
    if (stamp_base_)
        stamp_base_[slot] = queue_.now();
    return __builtin_expect(sees_placing_, 0) ? place(slot, touch) : slot;
}

/// deallocate() of a line that the cursor is not at.
void CacheMemory::deallocate_sought(Addr line) {
    at(line);
    deallocate(line);
}

void CacheMemory::deallocate(Addr a) {
    const bool is_victim = a == cursor_.victim_line;
    if (__builtin_expect(!is_victim && a != cursor_.line, 0))
        return deallocate_sought(line_of(a));
    AbstractCacheEntry *const e = is_victim ? cursor_.victim : cursor_.entry;
    if (__builtin_expect(!e, 0))
        fail(": deallocate of a line that is not present");
    e->m_Address = kNoTag;
    cursor_.free_slot = cursor_.full ? e->slot : kNoSlot;
    if (cursor_.head)
        heads_.free(cursor_.head, e->slot - cursor_.set * g_.ways);
    cursor_.full = false;
    // Both lines remain known, now as absent: allocate() moves the cursor to the line that it takes.
    (is_victim ? cursor_.victim : cursor_.entry) = nullptr;
    if (port)
        port->forget(a);
}

} // namespace moscope::ruby
