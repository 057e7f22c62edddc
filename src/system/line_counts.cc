// SPDX-License-Identifier: BSD-3-Clause
#include "system/line_counts.hh"

#include <new>

namespace moscope {

LineCounts::Counts *LineCounts::make() {
    return new (room_.allocate(sizeof(Counts), alignof(Counts))) Counts(&room_);
}

void LineCounts::reset() {
    noted_.clear();
    by_code_.clear();
    room_.release(); // counts hold nothing outside of it
}

void LineCounts::count() {
    for (std::size_t i = 0; i < noted_.size(); ++i) {
        fetch_ahead(i);
        count(noted_[i]);
    }
    noted_.clear();
}

/// Each step reads what the one before has asked for.
void LineCounts::fetch_ahead(std::size_t i) const {
    constexpr std::size_t kStep = 5, kHot = 5 * kLineBytes; // all but spinning and pages
    static_assert(sizeof(Counts) == kHot + kLineBytes);
    if (i + 2 * kStep < noted_.size()) {
        const Noted &n = noted_[i + 2 * kStep];
        for (std::size_t at = 0; at < kHot; at += kLineBytes)
            __builtin_prefetch(reinterpret_cast<const char *>(n.counts) + at, 1);
        by_code_.prefetch({n.pair.waiter, n.address_space});
    }
    if (i + kStep < noted_.size()) {
        const Noted &n = noted_[i + kStep];
        n.counts->pairs.prefetch(n.pair);
        n.counts->moves.prefetch(n.way);
    }
}

void LineCounts::count(const Noted &e) {
    Counts &n = *e.counts;
    n.stall += e.exposed;
    Waiter &w = n.pairs[e.pair];
    w.stall += e.exposed;
    w.offset = e.offset;
    Waiter &p = by_code_[{e.pair.waiter, e.address_space}];
    p.stall += e.exposed;
    n.cores |= std::uint64_t{1} << e.core;
    if (e.way != kNoWay) {
        Moved &m = n.moves[e.way];
        m.stall += e.exposed;
        m.count += !e.wait;
    }
    if (e.wait) {
        n.stall_by_class[static_cast<unsigned>(n.store)] += e.exposed;
        return;
    }
    ++w.count;
    ++p.count;
    ++n.transfers;
    if (!n.va) {
        n.va = e.va;
        n.address_space = e.address_space;
        n.user = e.user;
    }
    n.walk |= e.walk;
    n.fetch |= e.fetch;
    if (e.changes_hands)
        ++n.writers[e.pair.writer];
    if (e.store)
        n.store = e.miss;
    ++n.by_class[static_cast<unsigned>(e.miss)];
    n.stall_by_class[static_cast<unsigned>(e.miss)] += e.exposed;
}

void LineCounts::spun(Counts &n, const Pair &pair, Addr address_space, unsigned offset, Tick time, std::uint64_t turns) {
    count(); // instructions stand in the order of their coming
    Waiter &w = n.pairs[pair];
    w.spin += time;
    w.offset = static_cast<std::uint8_t>(offset);
    by_code_[{pair.waiter, address_space}].spin += time;
    n.spin += time;
    n.turns += turns;
}

} // namespace moscope
