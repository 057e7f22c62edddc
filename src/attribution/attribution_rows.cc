// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/attribution_rows.hh"

#include <algorithm>
#include <bit>
#include <map>
#include <span>

#include "attribution/attribution.hh"

namespace moscope {

namespace {

using Entry = TransactionCounts::Entry;
using Entries = std::span<const Entry *const>;
using Pieces = std::vector<std::span<const Entry>>;

template <class Row> void append(std::string &to, const Row &row) {
    to.append(reinterpret_cast<const char *>(&row), sizeof row);
}

std::uint64_t line_key(const Entry &e) { return std::uint64_t{e.key.line} << 32 | e.key.use; }
auto pair_key(const Entry &e) { return std::tuple(e.key.writer, e.key.waiter, e.key.address_space, e.key.offset); }

/// All entries, sorted by line and use. Sets `lines` to the number of different pairs (line, use).
std::vector<const Entry *> by_line(const Pieces &counts, std::size_t &lines) {
    struct Place { // a copy of the key: reading the entry's would miss the host's caches at every comparison
        std::uint64_t key;
        const Entry *entry;
    };
    std::size_t size = 0;
    for (const auto &piece : counts)
        size += piece.size();
    std::vector<Place> places;
    places.reserve(size);
    for (const auto &piece : counts)
        for (const Entry &e : piece)
            places.push_back({line_key(e), &e});
    std::sort(places.begin(), places.end(), [](const Place &a, const Place &b) { return a.key < b.key; });
    std::vector<const Entry *> all;
    all.reserve(size);
    std::uint64_t before = 0;
    lines = 0;
    for (const Place &p : places) {
        lines += p.key != before || all.empty();
        before = p.key;
        all.push_back(p.entry);
    }
    return all;
}

/// Calls f(entries) for each run of entries with the same key.
template <class All, class Key, class F> void for_each_group(All all, Key &&key, F &&f) {
    for (std::size_t first = 0, last = 0; first < all.size(); first = last) {
        while (last < all.size() && key(*all[last]) == key(*all[first]))
            ++last;
        f(all.subspan(first, last - first));
    }
}

LineRow line_row(Entries entries, const AttributionPart::LineUseInfo &info) {
    LineRow row{};
    std::array<std::pair<Tick, std::uint64_t>, kLineBytes> by_offset{}; // (time, accesses); accesses decide ties
    for (const Entry *e : entries) {
        by_offset[e->key.offset].first += e->time;
        by_offset[e->key.offset].second += e->count;
        if (e->key.miss == kSpinning) {
            row.spin += e->time;
            row.spin_iterations += e->count;
            continue;
        }
        row.stall += e->time;
        row.transfers += e->count;
        row.class_stall[static_cast<unsigned>(e->key.miss)] += e->time;
        row.class_count[static_cast<unsigned>(e->key.miss)] += static_cast<std::uint32_t>(e->count);
    }
    row.line = Addr{entries[0]->key.line} * kLineBytes;
    row.use = entries[0]->key.use;
    row.va = info.va;
    row.address_space = info.address_space;
    row.offset = static_cast<std::uint8_t>(std::max_element(by_offset.begin(), by_offset.end()) - by_offset.begin());
    row.flags =
        static_cast<std::uint8_t>((info.walk ? LineRow::kWalk : 0) | (info.fetch ? LineRow::kFetch : 0) |
                                  (info.user ? LineRow::kUser : 0) | (info.page_known ? LineRow::kPageKnown : 0));
    row.page_flags = info.page.flags;
    row.page_part_of = info.page.part_of;
    row.page_index = info.page.index;
    row.page_type = info.page.type;
    row.page_before = info.page.before;
    row.waiters = info.waiters;
    return row;
}

PairRow pair_row(Entries entries, std::uint32_t line) {
    const TransactionKey &key = entries[0]->key;
    PairRow row{.writer = key.writer,
                .waiter = key.waiter,
                .address_space = key.address_space,
                .stall = 0,
                .spin = 0,
                .line = line,
                .count = 0,
                .offset = key.offset};
    for (const Entry *e : entries) {
        const bool spinning = e->key.miss == kSpinning;
        (spinning ? row.spin : row.stall) += e->time;
        row.count += spinning ? 0 : static_cast<std::uint32_t>(e->count);
    }
    return row;
}

void append_transfers(std::string &to, Entries entries, std::uint32_t line) {
    std::map<std::tuple<std::uint8_t, std::uint8_t, std::uint8_t>, TransferRow> rows;
    for (const Entry *e : entries) {
        const TransactionKey &k = e->key;
        if (k.miss == kSpinning || k.supplier == TransactionKey::kNoSupplier)
            continue;
        auto [found, added] = rows.try_emplace({k.supplier, k.from, k.to});
        TransferRow &row = found->second;
        if (added)
            row = {.stall = 0, .count = 0, .line = line, .supplier = k.supplier, .from = k.from, .to = k.to};
        row.stall += e->time;
        row.count += e->count;
    }
    for (const auto &[key, row] : rows)
        append(to, row);
}

} // namespace

AttributionRows Attribution::rows() const {
    Pieces pieces;
    for (const TransactionCounts *c : counts())
        c->for_each_piece([&pieces](std::span<const Entry> piece) { pieces.push_back(piece); });
    return rows_of(pieces, [this](std::uint32_t use, Addr line) { return parts_[part_of(line)].info_of(use, line); });
}

void Attribution::keep() {
    for (AttributionPart &p : parts_)
        p.keep();
}

AttributionRows Attribution::kept_rows() const {
    std::array<std::vector<Entry>, kParts> kept;
    Pieces pieces;
    for (unsigned p = 0; p < kParts; ++p)
        pieces.emplace_back(kept[p] = parts_[p].kept_counts());
    return rows_of(pieces,
                   [this](std::uint32_t use, Addr line) { return parts_[part_of(line)].kept_info_of(use, line); });
}

AttributionRows rows_of(const Pieces &counts,
                        const std::function<AttributionPart::LineUseInfo(std::uint32_t, Addr)> &info_of) {
    static_assert(std::endian::native == std::endian::little);
    AttributionRows out;
    std::uint32_t n = 0;
    std::size_t lines;
    std::vector<const Entry *> all = by_line(counts, lines);
    out.lines.reserve(lines * sizeof(LineRow));
    out.pairs.reserve(all.size() * sizeof(PairRow)); // unused capacity takes no host memory
    for_each_group(std::span(all), line_key, [&](std::span<const Entry *> of_line) {
        std::sort(of_line.begin(), of_line.end(),
                  [](const Entry *a, const Entry *b) { return pair_key(*a) < pair_key(*b); });
        const Addr line = Addr{of_line[0]->key.line} * kLineBytes;
        append(out.lines, line_row(of_line, info_of(of_line[0]->key.use, line)));
        for_each_group(Entries(of_line), pair_key, [&](Entries of_pair) { append(out.pairs, pair_row(of_pair, n)); });
        append_transfers(out.transfers, of_line, n);
        ++n;
    });
    return out;
}

} // namespace moscope
