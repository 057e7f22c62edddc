// SPDX-License-Identifier: BSD-3-Clause
// Attribution as moscope.attribution/1 (docs/run-directory.md).
#include <algorithm>
#include <bit>

#include <nlohmann/json.hpp>

#include "attribution/attribution.hh"
#include "attribution/line_totals.hh"
#include "mem/ruby/runtime/prelude_enums.hh"

namespace moscope {

namespace {

using nlohmann::json;

constexpr std::size_t kMostPairs = 200; // of instructions, address spaces and bytes

/// Key and sums, those that waited longest first.
template <class Map> auto longest_first(const Map &found) {
    std::vector<std::pair<typename Map::key_type, WaitSums>> rows(found.begin(), found.end());
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto &a, const auto &b) { return a.second.waiting() > b.second.waiting(); });
    return rows;
}

/// Those that came most often first.
template <class Map, class Count> auto most_first(const Map &found, const Count &count) {
    std::vector<typename Map::value_type const *> rows;
    for (const auto &row : found)
        rows.push_back(&row);
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const auto *a, const auto *b) { return count(a->second) > count(b->second); });
    return rows;
}

json classes(const std::array<std::uint64_t, kMissClasses> &count, const std::array<Tick, kMissClasses> &stall) {
    json out = json::object();
    for (unsigned k = 0; k < kMissClasses; ++k)
        out[kMissClassNames[k]] = {{"count", count[k]}, {"stall", stall[k]}};
    return out;
}

json pairs(const LineTotals &t) {
    json out = json::array();
    auto rows = longest_first(t.pairs);
    rows.resize(std::min(rows.size(), kMostPairs));
    for (const auto &[f, w] : rows)
        out.push_back({{"writer", f.writer},
                       {"waiter", f.waiter},
                       {"address_space", f.address_space},
                       {"stall", w.stall},
                       {"spin", w.spin},
                       {"count", w.count},
                       {"offset", f.offset}});
    return out;
}

json writers(const LineTotals &t) {
    json out = json::array();
    for (const auto *row : most_first(t.writers, [](std::uint64_t n) { return n; }))
        out.push_back({{"pc", row->first}, {"count", row->second}});
    return out;
}

json transfers(const LineTotals &t) {
    json out = json::array();
    for (const auto *row : most_first(t.transfers, [](const WaitSums &w) { return w.count; }))
        out.push_back({{"supplier", ruby::MachineType_to_string(static_cast<ruby::MachineType>(row->first.supplier))},
                       {"from", row->first.from},
                       {"to", row->first.to},
                       {"count", row->second.count},
                       {"stall", row->second.stall}});
    return out;
}

} // namespace

std::string Attribution::json(std::size_t most) const {
    using nlohmann::json;
    if (log_)
        log_->flush();
    const LineIndex index(counts());
    const AttributionPart::Sums all = sums();
    json out;
    out["schema"] = "moscope.attribution/1";
    out["exposed"] = all.exposed;
    out["spin"] = all.spinning;
    out["transactions"] = all.transactions;
    for (unsigned s = 0; s < kSegments; ++s)
        out["segments"][kSegmentNames[s]] = all.segments[s];
    out["latency_log2_ns"] = all.by_log2_ns;
    out["lines_total"] = index.lines().size();
    std::array<std::uint64_t, kMissClasses> count{};
    std::array<Tick, kMissClasses> stall{};
    index.for_each([&](const TransactionCounts::Entry &e) {
        if (e.key.miss != kSpinning) {
            count[static_cast<unsigned>(e.key.miss)] += e.count;
            stall[static_cast<unsigned>(e.key.miss)] += e.time;
        }
    });
    out["classes"] = classes(count, stall);
    std::vector<LineIndex::Sum> order(index.lines().begin(), index.lines().end());
    const std::size_t n = std::min(most, order.size());
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(n), order.end(), [](const auto &a, const auto &b) {
            return a.waited != b.waited ? a.waited > b.waited : std::pair(a.line, a.use) < std::pair(b.line, b.use);
        });
    json lines = json::array();
    for (std::size_t i = 0; i < n; ++i) {
        const AttributionPart::LineUseInfo about = parts_[part_of(order[i].line)].info_of(order[i].use, order[i].line);
        const LineTotals t = index.totals(order[i]);
        json line = {{"line", order[i].line},
                     {"va", about.va},
                     {"address_space", about.address_space},
                     {"user", about.user},
                     {"walk", about.walk},
                     {"fetch", about.fetch},
                     {"stall", t.stall},
                     {"spin", t.spin},
                     {"turns", t.turns},
                     {"transfers", t.count},
                     {"cores", std::popcount(about.waiters)},
                     {"classes", classes(t.by_class, t.stall_by_class)},
                     {"pairs", pairs(t)},
                     {"writers", writers(t)},
                     {"moves", transfers(t)}};
        if (const PageSnapshot &p = about.page; about.page_known)
            line["page"] = {
                {"flags", p.flags}, {"part_of", p.part_of}, {"index", p.index}, {"type", p.type}, {"before", p.before}};
        lines.push_back(std::move(line));
    }
    out["lines"] = std::move(lines);
    json code = json::array();
    for (const auto &[at, w] : longest_first(index.by_code()))
        code.push_back({{"pc", at.pc},
                        {"address_space", at.address_space},
                        {"stall", w.stall},
                        {"spin", w.spin},
                        {"count", w.count}});
    out["instructions"] = std::move(code);
    return out.dump();
}

} // namespace moscope
