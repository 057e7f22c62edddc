// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/attribution.hh"

namespace moscope {

void Attribution::log_to(const std::string &path) {
    log_ = std::make_unique<TransactionLog>(path);
    for (AttributionPart &p : parts_)
        p.log_to(log_.get());
}

void Attribution::watch(std::unique_ptr<PageWatch> pages) {
    watch_ = std::move(pages);
    for (AttributionPart &p : parts_)
        p.watch(watch_.get());
}

// Not in the header, so that stored() saves no registers for it.
void Attribution::stored_bytes(unsigned core, Addr dram, std::uint64_t bytes, Addr pc) {
    at(dram).stored(core, dram, bytes, pc);
}

void Attribution::reset() {
    if (log_)
        log_->restart();
    if (stacks_)
        stacks_->reset();
    if (loads_)
        loads_->reset();
    for (AttributionPart &p : parts_)
        p.reset();
}

AttributionPart::Sums Attribution::sums() const {
    AttributionPart::Sums all;
    for (const AttributionPart &p : parts_) {
        const AttributionPart::Sums &s = p.sums();
        all.exposed += s.exposed;
        all.spinning += s.spinning;
        all.transactions += s.transactions;
        for (std::size_t i = 0; i < all.segments.size(); ++i)
            all.segments[i] += s.segments[i];
        for (std::size_t i = 0; i < all.by_log2_ns.size(); ++i)
            all.by_log2_ns[i] += s.by_log2_ns[i];
    }
    return all;
}

std::string Attribution::episodes() const {
    std::string all;
    for (const AttributionPart &p : parts_)
        p.episodes().for_each(
            [&all](const TransactionRecord &r) { all.append(reinterpret_cast<const char *>(&r), sizeof r); });
    return all;
}

std::vector<const TransactionCounts *> Attribution::counts() const {
    std::vector<const TransactionCounts *> all;
    for (AttributionPart &p : parts_)
        all.push_back(&p.counts());
    return all;
}

} // namespace moscope
