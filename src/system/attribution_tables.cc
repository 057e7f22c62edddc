// SPDX-License-Identifier: BSD-3-Clause
#include "system/attribution_tables.hh"

#include <algorithm>
#include <bit>

#include "system/attribution.hh"

namespace moscope {

namespace {

template <class Row> void append(std::string &to, const Row &row) {
    to.append(reinterpret_cast<const char *>(&row), sizeof row);
}

} // namespace

AttributionTables Attribution::tables() const {
    static_assert(kMissClasses == 5 && std::endian::native == std::endian::little);
    auto &self = const_cast<Attribution &>(*this); // line_at() makes pages; those of counted lines are there
    self.line_counts_.count();
    std::vector<Addr> lines = counted_;
    std::sort(lines.begin(), lines.end());
    AttributionTables out;
    out.lines.reserve(lines.size() * sizeof(LineRow));
    std::vector<PairRow> pairs;
    for (std::uint32_t n = 0; n < lines.size(); ++n) {
        const Counts &c = *self.line_at(lines[n]).counts;
        const PageSeen &page = self.page_of(lines[n]);
        LineRow row{lines[n], c.va, c.address_space, c.stall, c.spin, c.transfers, {}, {}, 0, 0, 0, 0,
                    page.flags, page.part_of, page.index, page.type, page.before};
        for (unsigned k = 0; k < kMissClasses; ++k) {
            row.class_stall[k] = c.stall_by_class[k];
            row.class_count[k] = static_cast<std::uint32_t>(c.by_class[k]);
        }
        std::array<Tick, kLineBytes> by_offset{};
        pairs.clear();
        for (const auto &[p, w] : c.pairs) {
            pairs.push_back({p.writer, p.waiter, w.stall, w.spin, n, static_cast<std::uint32_t>(w.count)});
            by_offset[w.offset] += w.stall + w.spin;
        }
        row.offset = static_cast<std::uint8_t>(std::max_element(by_offset.begin(), by_offset.end()) - by_offset.begin());
        row.flags = static_cast<std::uint8_t>((c.walk ? 1 : 0) | (c.fetch ? 2 : 0) | (c.user ? 4 : 0) | (page.told ? 8 : 0));
        row.cores = static_cast<std::uint8_t>(std::popcount(c.cores));
        append(out.lines, row);
        // The order of a hash table is not that of another host's.
        std::sort(pairs.begin(), pairs.end(), [](const PairRow &a, const PairRow &b) {
            return std::pair(a.writer, a.waiter) < std::pair(b.writer, b.waiter);
        });
        for (const PairRow &p : pairs)
            append(out.pairs, p);
    }
    return out;
}

} // namespace moscope
