// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/transaction_counts.hh"

#include <algorithm>

namespace moscope {

void TransactionCounts::settle(const Entry &what) {
    for (std::size_t at = what.hash & mask_;; at = (at + 1) & mask_) {
        Cell &cell = cells_[at];
        if (__builtin_expect(!cell.number, 0)) {
            settle_first(what, cell);
            return;
        }
        if (cell.hash != what.hash)
            continue;
        Entry &e = entries_[cell.number - 1];
        if (__builtin_expect(e.key == what.key, 1)) {
            if (__builtin_expect(e.changed_after != keeps_, 0))
                put_aside(cell.number - 1, e);
            e.time += what.time;
            e.count += what.count;
            return;
        }
    }
}

void TransactionCounts::settle_first(const Entry &what, Cell &cell) {
    entries_.add(what).changed_after = keeps_;
    cell = {static_cast<std::uint32_t>(entries_.size()), what.hash};
    if (2 * entries_.size() > cells_.size())
        grow();
}

void TransactionCounts::put_aside(std::uint32_t index, Entry &e) {
    before_.push_back({index, e.time, e.count});
    e.changed_after = keeps_;
}

void TransactionCounts::settle() {
    for (std::size_t i = next_ < kUnderWay ? 0 : next_ - kUnderWay; i < next_; ++i)
        settle(under_way_[i % kUnderWay]);
    next_ = 0;
}

void TransactionCounts::grow() {
    std::vector<Cell> old(2 * cells_.size());
    old.swap(cells_);
    mask_ = cells_.size() - 1;
    for (const Cell &c : old)
        if (c.number) {
            std::size_t at = c.hash & mask_;
            while (cells_[at].number)
                at = (at + 1) & mask_;
            cells_[at] = c;
        }
}

void TransactionCounts::keep() {
    settle();
    ++keeps_;
    kept_size_ = entries_.size();
    before_.clear();
}

std::vector<TransactionCounts::Entry> TransactionCounts::kept() const {
    std::vector<Entry> then;
    then.reserve(kept_size_);
    for (std::size_t i = 0; i < kept_size_; ++i)
        then.push_back(entries_[i]);
    for (const Before &b : before_) {
        then[b.index].time = b.time;
        then[b.index].count = b.count;
    }
    return then;
}

void TransactionCounts::reset() {
    next_ = kept_size_ = keeps_ = 0;
    entries_.clear();
    before_.clear();
    std::fill(cells_.begin(), cells_.end(), Cell{});
}

} // namespace moscope
