// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/attribution_part.hh"

#include <algorithm>
#include <bit>
#include <utility>

namespace moscope {

namespace {

constexpr std::uint64_t bit(unsigned core) { return std::uint64_t{1} << core; }

/// The bit of a writer that is a core; 0 for a device and for no writer.
constexpr std::uint64_t bit_of(unsigned writer) { return writer < 64 ? bit(writer) : 0; }

bool is_store(AccessKind k) { return k == AccessKind::store || k == AccessKind::nt_store; }

} // namespace

AttributionPart::AttributionPart(const std::vector<unsigned> &chip_of_core, Pages &pages)
    : chip_of_core_(chip_of_core), pages_(pages) {
    MOSCOPE_CHECK(chip_of_core_.size() <= 64);
}

AttributionPart::Page &AttributionPart::begin_page(Addr dram) {
    own_pages_.push_back(std::make_unique<Page>());
    return *(pages_.of(dram) = own_pages_.back().get());
}

void AttributionPart::mark_written(Line &l, std::uint64_t cores) {
    if (!l.tenure || !cores)
        return;
    if (!l.written)
        l.written = std::make_unique<std::uint64_t[]>(chip_of_core_.size());
    for (; cores; cores &= cores - 1)
        l.written[static_cast<unsigned>(std::countr_zero(cores))] |= l.tenure;
}

void AttributionPart::taken_over(Line &l, std::uint8_t by) {
    // From here on, the bytes of the previous writer's tenure are new to every other core that has had the line.
    mark_written(l, l.had & ~bit_of(l.writer));
    l.tenure = 0;
    l.writer = by;
    l.store_waits = false;
}

void AttributionPart::end_tenure(Line &l, unsigned c) {
    mark_written(l, l.had & ~bit_of(l.writer) & ~bit(c));
    l.tenure = 0;
}

void AttributionPart::begin_page_use(Page &page, const PageSnapshot &snapshot) {
    if (page.now.use && !page.now.snapshot.identified)
        page_uses_[page.now.use - 1].next = static_cast<std::uint32_t>(page_uses_.size() + 1);
    page_uses_.add({snapshot});
    page.now = {snapshot, static_cast<std::uint32_t>(page_uses_.size())};
}

void AttributionPart::begin_line_use(const Page &page, Line &l, Addr dram) {
    if (l.line_use) {
        LineUse &before = line_uses_[l.line_use - 1];
        // The kernel clears a page before it sets the page's use. The address by which it clears says nothing of that
        // use.
        const bool cleared = l.cleared && before.page_use && page_uses_[before.page_use - 1].next == page.now.use;
        if (!before.page_use || cleared) {
            before.page_use = l.page_use = page.now.use;
            l.address_known = l.address_known && !cleared;
            l.cleared = false;
            return;
        }
        before.waiters = l.waiters;
        before.accessed_by = l.accessed_by;
        before.cleared = l.cleared;
    }
    line_uses_.add({.line = line_of(dram), .page_use = page.now.use});
    l.line_use = static_cast<std::uint32_t>(line_uses_.size());
    l.page_use = page.now.use;
    l.waiters = 0;
    l.address_known = false;
    l.accessed_by = 0;
    l.cleared = pages_of_guest_ && !page.now.snapshot.identified;
}

AttributionPart::LineUseInfo AttributionPart::info_of(std::uint32_t use, Addr line) {
    return info_of(use, line_at(line), page_uses_.size());
}

AttributionPart::LineUseInfo AttributionPart::info_of(std::uint32_t use, const Line &l, std::size_t page_uses) const {
    const LineUse &c = line_uses_[use - 1];
    const bool present = l.line_use == use;
    const std::uint8_t accessed_by = present ? l.accessed_by : c.accessed_by;
    LineUseInfo a{c.va,
                  c.address_space,
                  c.user,
                  (accessed_by & Line::kWalk) != 0,
                  (accessed_by & Line::kFetch) != 0,
                  present ? l.waiters : c.waiters,
                  c.page_use != 0,
                  {}};
    if (c.page_use) {
        const PageUse &u = page_uses_[c.page_use - 1];
        const bool cleared = present ? l.cleared : c.cleared;
        a.page = cleared && u.next && u.next <= page_uses ? page_uses_[u.next - 1].snapshot : u.snapshot;
        a.page_known = a.page.identified || (!cleared && (a.page.flags || a.page.type));
    }
    return a;
}

void AttributionPart::keep() {
    counts_.keep();
    ++keeps_;
    kept_page_uses_ = page_uses_.size();
    before_.clear();
    before_by_use_ = false;
}

void AttributionPart::put_aside_first(Line &l) {
    l.changed_after = keeps_;
    before_by_use_ = false;
    if (l.line_use)
        before_.push_back({l.line_use, info_of(l.line_use, l, kept_page_uses_)});
}

AttributionPart::LineUseInfo AttributionPart::kept_info_of(std::uint32_t use, Addr line) {
    if (!std::exchange(before_by_use_, true))
        std::ranges::sort(before_, {}, &Before::use);
    const auto changed = std::ranges::lower_bound(before_, use, {}, &Before::use);
    return changed != before_.end() && changed->use == use ? changed->info
                                                           : info_of(use, line_at(line), kept_page_uses_);
}

void AttributionPart::spun(const x86::Spin &s) {
    const Addr a = s.look.dram;
    const Page &page = page_of(a);
    Line &l = line_at(a);
    put_aside(l);
    count(page, l, a);
    TransactionKey key{.waiter = s.look.pc,
                       .address_space = TransactionKey::space_of(s.look.pc, s.look.address_space),
                       .line = static_cast<std::uint32_t>(a >> kLineBits),
                       .use = l.line_use,
                       .miss = kSpinning,
                       .offset = static_cast<std::uint8_t>(line_offset(a))};
    const Recent &recent = recent_[s.core];
    for (unsigned i = 0; i < recent.entry.size(); ++i) // the latest first
        if (const auto &e = recent.entry[(recent.next - 1 - i) % recent.entry.size()]; e.line == line_of(a)) {
            key.writer = e.writer;
            break;
        }
    counts_.add(key, s.time, s.iterations);
    sums_.spinning += s.time;
    l.waiters |= bit(s.core);
    l.cleared = false;
    if (!l.address_known)
        note_access(l, s.look.va, s.look.address_space, s.look.user);
}

[[gnu::always_inline]] inline MissClass AttributionPart::classify(Line &l, const x86::Transaction &t) {
    // The class of the older access says why the line was not there; that access may be reported later.
    if (t.access->secondary)
        return MissClass::secondary;
    const unsigned c = t.core;
    std::uint64_t news = l.written ? l.written[c] : 0;
    if (l.writer != c)
        news |= l.tenure;
    MissClass k;
    if (!(l.had & bit(c)))
        k = MissClass::cold;
    else if (news & bytes_of(t.access->addr.value, t.access->size))
        k = MissClass::true_sharing;
    else if (news)
        k = MissClass::false_sharing;
    else if (t.access->held)
        k = MissClass::upgrade;
    else
        k = MissClass::capacity;
    has_it(l, c);
    return k;
}

[[gnu::always_inline]] inline MissClass AttributionPart::count_end(Line &l, const x86::Transaction &t, Addr other_pc) {
    const Access &x = *t.access;
    const Addr dram = x.addr.value;
    const MissClass miss = classify(l, t);
    if (is_store(x.kind)) {
        l.store = miss;
        l.before_pc = other_pc;
    }
    // From here on, no other core has the line, although the store may wait in its buffer behind older ones.
    if (x.kind == AccessKind::store) {
        written(l, static_cast<std::uint8_t>(t.core), bytes_of(dram, x.size), t.pc);
        l.store_waits = true;
    }
    static_assert(Line::kWalk == 1 && Line::kFetch == 2);
    l.accessed_by = static_cast<std::uint8_t>(l.accessed_by | t.walk | (x.kind == AccessKind::fetch) << 1);
    ++sums_.transactions;
    if (x.kind == AccessKind::load || x.kind == AccessKind::rmw) {
        Recent &recent = recent_[t.core];
        recent.entry[recent.next++ % recent.entry.size()] = {line_of(dram), other_pc};
    }
    Tick *const __restrict sums = sums_.segments.data();
    for (unsigned s = 0; s < kSegments; ++s)
        sums[s] += x.path.in[s];
    const std::uint64_t ns = static_cast<std::uint64_t>(x.done - x.issued) / kTicksPerNs;
    MOSCOPE_CHECK(ns >> 42 == 0); // below 1.3 hours: the access has ended, and not before it began
    ++sums_.by_log2_ns[static_cast<unsigned>(63 - std::countl_zero(2 * ns + 1))]; // bit_width(ns), also of 0
    return miss;
}

[[gnu::always_inline]] inline void AttributionPart::count_transaction(const x86::Transaction &t,
                                                                      const PageSnapshot &snapshot) {
    const Access &x = *t.access;
    const Addr dram = x.addr.value;
    TransactionCounts::Entry &entry = counts_.next();
    Page &page = page_of(dram);
    Line &l = page.line[dram >> kLineBits & 63];
    put_aside(l);
    if (pages_of_guest_ && __builtin_expect(!page.now.use || !snapshot.same_use(page.now.snapshot), 0))
        begin_page_use(page, snapshot);
    count(page, l, dram);
    if (!l.address_known)
        note_access(l, t.va, t.address_space, t.user);
    l.waiters |= bit(t.core);
    if (l.cleared && !t.wait) // a buffer wait has the address of the store that found no room
        l.cleared = is_store(x.kind) && !t.user && l.waiters == bit(t.core) && pages_of_guest_->is_direct(t.va, dram);
    sums_.exposed += t.exposed;
    const std::uint8_t writer = l.writer;
    // What waits with a store that is yet to be performed waits because of the write before it.
    Addr other_pc = writer != t.core ? l.writer_pc : l.store_waits && x.secondary ? l.before_pc : 0;
    MissClass miss = l.store;
    bool of_episode = false;
    if (__builtin_expect(t.wait, 0)) {
        // The transaction that it waited for was reported at this moment, so its core is already the last writer.
        other_pc = l.before_pc;
    } else {
        miss = count_end(l, t, other_pc);
        of_episode = episodes_.wants(line_of(dram));
    }
    TransactionKey &key = entry.key;
    key.writer = other_pc;
    key.waiter = t.pc;
    key.address_space = TransactionKey::space_of(t.pc, t.address_space);
    key.line = static_cast<std::uint32_t>(dram >> kLineBits);
    key.use = l.line_use;
    key.miss = miss;
    key.offset = static_cast<std::uint8_t>(line_offset(dram));
    key.supplier = TransactionKey::kNoSupplier;
    key.from = key.to = 0;
    if (x.supplier_chip != Access::kUnknown16) {
        key.supplier = x.supplier;
        key.from = static_cast<std::uint8_t>(x.supplier_chip);
        key.to = static_cast<std::uint8_t>(chip_of_core_[t.core]);
    }
    entry.time = t.exposed;
    entry.count = !t.wait;
    counts_.add(entry);
    if (__builtin_expect(log_ != nullptr || of_episode, 0))
        record(t, l.line_use, writer, other_pc, miss, of_episode);
}

void AttributionPart::transaction(const x86::Transaction &t, const PageSnapshot &snapshot) {
    count_transaction(t, snapshot);
}

void AttributionPart::transaction(const x86::Transaction &t) {
    count_transaction(t, pages_of_guest_ ? pages_of_guest_->snapshot(t.access->addr.value) : PageSnapshot{});
}

void AttributionPart::record(const x86::Transaction &t, std::uint32_t use, std::uint8_t writer, Addr writer_pc,
                             MissClass k, bool of_episode) {
    const bool prefetched = log_ && !t.wait && prefetched_.erase(line_of(t.access->addr.value) | t.core) != 0;
    const TransactionRecord r =
        record_of(t, use, t.wait ? kNoWriter : writer, writer_pc, t.wait ? MissClass::count : k, prefetched);
    if (log_)
        log_->write(r);
    if (of_episode)
        episodes_.add(r);
}

TransactionRecord AttributionPart::record_of(const x86::Transaction &t, std::uint32_t use, std::uint8_t writer,
                                             Addr writer_pc, MissClass k, bool prefetched) {
    const Access &x = *t.access;
    TransactionRecord r;
    r.issued = x.issued;
    r.done = t.wait ? x.issued : x.done;
    r.exposed = t.exposed;
    r.line = line_of(x.addr.value);
    r.use = use;
    r.va = t.va;
    r.pc = t.pc;
    r.address_space = t.address_space;
    r.writer_pc = writer_pc == kDevicePc ? 0 : writer_pc; // the record has the writer, too
    if (!t.wait)
        r.segments = x.path.in;
    r.hops = x.hops;
    r.core = static_cast<std::uint8_t>(t.core);
    r.writer = writer;
    r.kind = static_cast<std::uint8_t>(x.kind);
    r.miss = static_cast<std::uint8_t>(k);
    r.supplier = x.supplier;
    if (!t.wait) {
        r.supplier_number = x.supplier_number;
        r.supplier_chip = x.supplier_chip;
        r.supplier_state = x.supplier_state;
        r.probes = x.probes;
    }
    r.flags = static_cast<std::uint8_t>(
        (t.walk ? TransactionRecord::kWalk : 0) | (t.user ? TransactionRecord::kUser : 0) |
        (t.wait ? TransactionRecord::kBufferWait : 0) | (prefetched ? TransactionRecord::kPrefetched : 0));
    return r;
}

void AttributionPart::reset() {
    line_uses_.for_each_piece([this](std::span<const LineUse> piece) {
        for (const LineUse &c : piece) {
            Page &page = page_of(c.line);
            page.now.use = 0;
            Line &l = page.line[c.line >> kLineBits & 63];
            l.waiters = 0;
            l.line_use = l.changed_after = 0;
            l.page_use = kNoUse;
            l.store = MissClass::cold;
            l.accessed_by = 0;
            l.address_known = l.cleared = false;
        }
    });
    line_uses_.clear();
    page_uses_.clear();
    counts_.reset();
    keeps_ = 0;
    kept_page_uses_ = 0;
    before_.clear();
    episodes_.reset();
    sums_ = {};
}

} // namespace moscope
