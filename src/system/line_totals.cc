// SPDX-License-Identifier: BSD-3-Clause
#include "system/line_totals.hh"

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

LinesCounted::LinesCounted(const TransactionCounts &counts) : counts_(counts) {
    order_.reserve(counts.size());
    for (std::size_t i = 0; i < counts.size(); ++i)
        order_.push_back(std::uint64_t{counts[i].kind.line} << 32 | i);
    std::sort(order_.begin(), order_.end());
    for (std::size_t i = 0; i < order_.size(); ++i) {
        const Addr line = (order_[i] >> 32) * kLineBytes;
        if (sums_.empty() || sums_.back().line != line)
            sums_.push_back({line, 0, i, i});
        sums_.back().last = i + 1;
        sums_.back().waited += counts_[static_cast<std::uint32_t>(order_[i])].time;
    }
}

LineTotals LinesCounted::totals(const Sum &sum) const {
    LineTotals t;
    for (std::size_t i = sum.first; i < sum.last; ++i) {
        const TransactionCounts::Entry &e = counts_[static_cast<std::uint32_t>(order_[i])];
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
    for (std::size_t i = 0; i < counts_.size(); ++i)
        found[{counts_[i].kind.waiter, counts_[i].kind.address_space}].add(counts_[i]);
    return found;
}

} // namespace moscope
