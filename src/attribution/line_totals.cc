// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/line_totals.hh"

#include <algorithm>

namespace moscope {

void Waited::add(const TransactionCounts::Entry &e) {
    if (e.kind.miss == kSpinning) {
        spin += e.time;
    } else {
        stall += e.time;
        count += e.count;
    }
}

LinesCounted::LinesCounted(std::vector<const TransactionCounts *> counts) : counts_(std::move(counts)) {
    for_each([this](const TransactionCounts::Entry &e) {
        order_.push_back({e.kind.line, e.kind.use, static_cast<std::uint32_t>(order_.size())});
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

const TransactionCounts::Entry &LinesCounted::entry(std::uint32_t n) const {
    std::size_t i = n, part = 0;
    for (; i >= counts_[part]->size(); ++part)
        i -= counts_[part]->size();
    return (*counts_[part])[i];
}

LineTotals LinesCounted::totals(const Sum &sum) const {
    LineTotals t;
    for (std::size_t i = sum.first; i < sum.last; ++i) {
        const TransactionCounts::Entry &e = entry(order_[i].entry);
        const TransactionKind &k = e.kind;
        t.add(e);
        t.fights[{k.writer, k.waiter, k.address_space, k.offset}].add(e);
        if (k.miss == kSpinning) {
            t.turns += e.count;
            continue;
        }
        t.by_class[static_cast<unsigned>(k.miss)] += e.count;
        t.stall_by_class[static_cast<unsigned>(k.miss)] += e.time;
        if (k.supplier != TransactionKind::kNobody)
            t.moves[{k.supplier, k.from, k.to}].add(e);
        if (k.writer)
            t.writers[k.writer] += e.count;
    }
    return t;
}

std::map<CodePlace, Waited> LinesCounted::by_code() const {
    std::map<CodePlace, Waited> found;
    for_each([&](const TransactionCounts::Entry &e) { found[{e.kind.waiter, e.kind.address_space}].add(e); });
    return found;
}

} // namespace moscope
