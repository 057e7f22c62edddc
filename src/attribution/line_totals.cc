// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/line_totals.hh"

#include <algorithm>

namespace moscope {

void WaitSums::add(const TransactionCounts::Entry &e) {
    if (e.key.miss == kSpinning) {
        spin += e.time;
    } else {
        stall += e.time;
        count += e.count;
    }
}

LineIndex::LineIndex(std::vector<const TransactionCounts *> counts) : counts_(std::move(counts)) {
    for_each([this](const TransactionCounts::Entry &e) {
        order_.push_back({e.key.line, e.key.use, static_cast<std::uint32_t>(order_.size())});
    });
    std::sort(order_.begin(), order_.end());
    for (std::size_t i = 0; i < order_.size(); ++i) {
        const Addr line = Addr{order_[i].line} * kLineBytes;
        if (sums_.empty() || sums_.back().line != line || sums_.back().use != order_[i].use)
            sums_.push_back({line, order_[i].use, 0, i, i});
        sums_.back().last = i + 1;
        sums_.back().waited += entry(order_[i].entry).time;
    }
}

const TransactionCounts::Entry &LineIndex::entry(std::uint32_t n) const {
    std::size_t i = n, part = 0;
    for (; i >= counts_[part]->size(); ++part)
        i -= counts_[part]->size();
    return (*counts_[part])[i];
}

LineTotals LineIndex::totals(const Sum &sum) const {
    LineTotals t;
    for (std::size_t i = sum.first; i < sum.last; ++i) {
        const TransactionCounts::Entry &e = entry(order_[i].entry);
        const TransactionKey &k = e.key;
        t.add(e);
        t.pairs[{k.writer, k.waiter, k.address_space, k.offset}].add(e);
        if (k.miss == kSpinning) {
            t.turns += e.count;
            continue;
        }
        t.by_class[static_cast<unsigned>(k.miss)] += e.count;
        t.stall_by_class[static_cast<unsigned>(k.miss)] += e.time;
        if (k.supplier != TransactionKey::kNoSupplier)
            t.transfers[{k.supplier, k.from, k.to}].add(e);
        if (k.writer)
            t.writers[k.writer] += e.count;
    }
    return t;
}

std::map<CodeAddress, WaitSums> LineIndex::by_code() const {
    std::map<CodeAddress, WaitSums> found;
    for_each([&](const TransactionCounts::Entry &e) { found[{e.key.waiter, e.key.address_space}].add(e); });
    return found;
}

} // namespace moscope
