// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/attribution_tables.hh"

#include <algorithm>
#include <bit>

#include "attribution/attribution.hh"
#include "attribution/line_totals.hh"

namespace moscope {

namespace {

template <class Row> void append(std::string &to, const Row &row) {
    to.append(reinterpret_cast<const char *>(&row), sizeof row);
}

} // namespace

AttributionTables Attribution::tables() const {
    static_assert(kMissClasses == 5 && std::endian::native == std::endian::little);
    const LineIndex index(counts());
    AttributionTables out;
    out.lines.reserve(index.lines().size() * sizeof(LineRow));
    std::uint32_t n = 0;
    for (const LineIndex::Sum &sum : index.lines()) {
        const LineTotals t = index.totals(sum);
        const AttributionPart::LineUseInfo about = parts_[part_of(sum.line)].info_of(sum.use, sum.line);
        const PageSnapshot &page = about.page;
        LineRow row{
            sum.line,   about.va,     about.address_space, t.stall,   t.spin,      t.count, {}, {},           0, 0, 0,
            page.flags, page.part_of, page.index,          page.type, page.before, sum.use, 0,  about.waiters};
        for (unsigned k = 0; k < kMissClasses; ++k) {
            row.class_stall[k] = t.stall_by_class[k];
            row.class_count[k] = static_cast<std::uint32_t>(t.by_class[k]);
        }
        std::array<Tick, kLineBytes> by_offset{};
        for (const auto &[f, w] : t.pairs)
            by_offset[f.offset] += w.waiting();
        row.offset =
            static_cast<std::uint8_t>(std::max_element(by_offset.begin(), by_offset.end()) - by_offset.begin());
        row.flags = static_cast<std::uint8_t>((about.walk ? 1 : 0) | (about.fetch ? 2 : 0) | (about.user ? 4 : 0) |
                                              (about.page_known ? 8 : 0));
        append(out.lines, row);
        // Those of one line and two instructions are one row, whatever bytes they were after.
        PairRow pair{};
        for (auto f = t.pairs.begin(); f != t.pairs.end(); ++f) {
            const auto &[who, w] = *f;
            pair = {who.writer,
                    who.waiter,
                    who.address_space,
                    pair.stall + w.stall,
                    pair.spin + w.spin,
                    n,
                    static_cast<std::uint32_t>(pair.count + w.count)};
            const auto next = std::next(f);
            if (next == t.pairs.end() ||
                std::tuple(next->first.writer, next->first.waiter, next->first.address_space) !=
                    std::tuple(who.writer, who.waiter, who.address_space)) {
                append(out.pairs, pair);
                pair = {};
            }
        }
        for (const auto &[transfer, w] : t.transfers)
            append(out.transfers, TransferRow{w.stall, w.count, n, transfer.supplier, transfer.from, transfer.to, 0});
        ++n;
    }
    return out;
}

} // namespace moscope
