// SPDX-License-Identifier: BSD-3-Clause
// The sums over all lines as moscope.attribution/1 (docs/run-directory.md).
#include <nlohmann/json.hpp>

#include "attribution/attribution.hh"

namespace moscope {

nlohmann::json Attribution::totals() const {
    if (log_)
        log_->flush();
    const AttributionPart::Sums all = sums();
    nlohmann::json out;
    out["schema"] = "moscope.attribution/1";
    out["exposed"] = all.exposed;
    out["spin"] = all.spinning;
    out["transactions"] = all.transactions;
    for (unsigned s = 0; s < kSegments; ++s)
        out["segments"][kSegmentNames[s]] = all.segments[s];
    out["latency_log2_ns"] = all.by_log2_ns;
    std::array<std::uint64_t, kMissClasses> count{};
    std::array<Tick, kMissClasses> stall{};
    for (const TransactionCounts *c : counts())
        for (std::size_t i = 0; i < c->size(); ++i)
            if (const TransactionCounts::Entry &e = (*c)[i]; e.key.miss != kSpinning) {
                count[static_cast<unsigned>(e.key.miss)] += e.count;
                stall[static_cast<unsigned>(e.key.miss)] += e.time;
            }
    for (unsigned k = 0; k < kMissClasses; ++k)
        out["classes"][kMissClassNames[k]] = {{"count", count[k]}, {"stall", stall[k]}};
    return out;
}

} // namespace moscope
