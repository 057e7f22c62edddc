// SPDX-License-Identifier: BSD-3-Clause
// Allocation and replacement of the set-associative array.
#include "mem/ruby/runtime/cache_memory.hh"

#include <bit>

namespace moscope::ruby {

CacheMemory::CacheMemory(CacheGeometry g, const EventQueue &queue, std::uint64_t seed)
    : g_(std::move(g)), queue_(queue), pow2_(std::has_single_bit(g_.sets)), mask_(g_.sets - 1), rng_(seed) {
    if (g_.sets == 0 || g_.ways == 0)
        throw UserError(g_.name + ": a cache needs at least one set and one way");
    if (g_.replacement == Replacement::tree_plru && (!std::has_single_bit(g_.ways) || g_.ways > 64))
        throw UserError(g_.name + ": tree pseudo-LRU needs a power of two of at most 64 ways");
    const std::size_t n = std::size_t{g_.sets} * g_.ways;
    hold(sizeof(AbstractCacheEntry), alignof(AbstractCacheEntry));
    if (g_.ways > kNarrow && g_.ways <= SetHeads::kMostWays)
        heads_.init(g_.sets, g_.ways);
    const bool by_order = g_.replacement == Replacement::lru || g_.replacement == Replacement::fifo;
    listed_ = by_order && !heads_.none();
    if (!listed_)
        stamps_.assign(n, 0);
    if (g_.replacement == Replacement::tree_plru)
        tree_.assign(g_.sets, 0);
}

unsigned CacheMemory::victim_otherwise(unsigned set) const {
    const unsigned base = set * g_.ways;
    switch (g_.replacement) {
    case Replacement::lru:
    case Replacement::fifo: {
        unsigned best = base;
        Tick oldest = stamps_[base];
        for (unsigned i = base + 1; i < base + g_.ways; ++i) { // selects, as the order cannot be predicted
            const bool older = stamps_[i] < oldest;
            oldest = older ? stamps_[i] : oldest;
            best = older ? i : best;
        }
        return best;
    }
    case Replacement::random:
        // The draw is kept until an allocation uses it: cacheProbe has to answer alike when asked twice.
        return base + static_cast<unsigned>(random_draw_ % g_.ways);
    case Replacement::tree_plru: {
        unsigned node = 1;
        while (node < g_.ways)
            node = 2 * node + static_cast<unsigned>((tree_[set] >> node) & 1);
        return base + node - g_.ways;
    }
    }
    return base;
}

/// Stamps that say what the list of ways says; those to come are later.
void CacheMemory::begin_stamps() {
    stamps_.assign(std::size_t{g_.sets} * g_.ways, 0);
    for (unsigned set = 0; set < g_.sets; ++set) {
        Tick before_all = -static_cast<Tick>(g_.ways);
        heads_.for_each(set, [&](unsigned way) { stamps_[std::size_t{set} * g_.ways + way] = before_all++; });
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
    for (std::size_t i = 0; i < n; ++i)
        (new (entry(i)) AbstractCacheEntry())->m_Address = kNoTag;
}

/// The free way that the line of `a` now has.
unsigned CacheMemory::take_way(Addr a, bool touch_it) {
    const Addr line = line_of(a);
    const unsigned set = set_of(line);
    if (full(set))
        throw ProtocolError(g_.name + ": allocate without a free way in the set");
    unsigned i = set * g_.ways;
    if (heads_.none())
        while (entry(i)->m_Address != kNoTag)
            ++i;
    else
        i += heads_.take(set, hint_of(line));
    memo_line_ = line;
    memo_slot_ = i;
    if (!stamps_.empty())
        stamps_[i] = queue_.now();
    if (g_.replacement == Replacement::random)
        random_draw_ = rng_.next();
    if (touch_it && g_.replacement == Replacement::tree_plru)
        touch_tree(i);
    return i;
}

void CacheMemory::deallocate(Addr a) {
    const Addr line = line_of(a);
    const unsigned i = find(line);
    if (i == kNone)
        throw ProtocolError(g_.name + ": deallocate of a line that is not present");
    if (on_remove)
        on_remove(on_remove_context, line);
    entry(i)->m_Address = kNoTag;
    if (const unsigned set = set_of(line); !heads_.none())
        heads_.free(set, i - set * g_.ways);
    memo_slot_ = kNone;
}

void CacheMemory::touch_tree(unsigned slot) {
    const unsigned set = slot / g_.ways;
    // Point every node on the way to the slot at the other side.
    unsigned node = slot % g_.ways + g_.ways;
    while (node > 1) {
        const unsigned parent = node / 2;
        const std::uint64_t bit = std::uint64_t{1} << parent;
        tree_[set] = (node & 1) ? tree_[set] & ~bit : tree_[set] | bit;
        node = parent;
    }
}

} // namespace moscope::ruby
