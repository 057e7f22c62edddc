// SPDX-License-Identifier: BSD-3-Clause
#include "attribution/transaction_counts.hh"

#include <algorithm>

namespace moscope {

std::uint32_t TransactionCounts::hash_of(const TransactionKey &k) {
    const auto mixed = [](std::uint64_t x) {
        x *= 0x9e3779b97f4a7c15;
        return x ^ x >> 32;
    };
    std::uint64_t h = mixed(k.waiter ^ std::uint64_t{k.line} << 32 ^ k.address_space);
    h = mixed(h ^ k.writer ^ std::uint64_t{k.use} << 16);
    return static_cast<std::uint32_t>(
        mixed(h ^ (static_cast<std::uint64_t>(k.miss) | std::uint64_t{k.offset} << 8 | std::uint64_t{k.supplier} << 16 |
                   std::uint64_t{k.from} << 24 | std::uint64_t{k.to} << 32)));
}

void TransactionCounts::settle(const Entry &what, std::uint32_t hash) {
    const std::size_t mask = cells_.size() - 1;
    std::size_t at = hash & mask;
    for (; cells_[at].number; at = (at + 1) & mask) {
        if (cells_[at].hash != hash)
            continue;
        const std::uint32_t index = cells_[at].number - 1;
        Entry &e = chunks_[index / kChunk][index % kChunk];
        if (e.key == what.key) {
            if (__builtin_expect(e.changed_after != keeps_, 0)) {
                before_.push_back({index, e.time, e.count});
                e.changed_after = keeps_;
            }
            e.time += what.time;
            e.count += what.count;
            return;
        }
    }
    if (size_ == chunks_.size() * kChunk)
        chunks_.push_back(std::make_unique_for_overwrite<Entry[]>(kChunk));
    Entry &added = chunks_[size_ / kChunk][size_ % kChunk];
    added = what;
    added.changed_after = keeps_;
    cells_[at] = {static_cast<std::uint32_t>(++size_), hash};
    if (2 * size_ > cells_.size())
        grow();
}

void TransactionCounts::settle() {
    for (std::size_t i = next_ < kUnderWay ? 0 : next_ - kUnderWay; i < next_; ++i)
        settle(under_way_[i % kUnderWay], hashes_[i % kUnderWay]);
    next_ = 0;
}

void TransactionCounts::grow() {
    std::vector<Cell> old(2 * cells_.size());
    old.swap(cells_);
    const std::size_t mask = cells_.size() - 1;
    for (const Cell &c : old)
        if (c.number) {
            std::size_t at = c.hash & mask;
            while (cells_[at].number)
                at = (at + 1) & mask;
            cells_[at] = c;
        }
}

void TransactionCounts::keep() {
    settle();
    ++keeps_;
    kept_size_ = size_;
    before_.clear();
}

std::vector<TransactionCounts::Entry> TransactionCounts::kept() const {
    std::vector<Entry> then;
    then.reserve(kept_size_);
    for (std::size_t i = 0; i < kept_size_; ++i)
        then.push_back((*this)[i]);
    for (const Before &b : before_) {
        then[b.index].time = b.time;
        then[b.index].count = b.count;
    }
    return then;
}

void TransactionCounts::reset() {
    next_ = size_ = kept_size_ = keeps_ = 0;
    before_.clear();
    std::fill(cells_.begin(), cells_.end(), Cell{});
}

} // namespace moscope
