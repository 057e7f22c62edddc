// SPDX-License-Identifier: BSD-3-Clause
// What is counted by key, where most counters have a few keys and some have thousands: pairs side by side in the order
// of their coming, looked through one by one while they are few, and found by open addressing beyond that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace moscope {

template <class Key, class Value, class Hash = std::hash<Key>, class Allocator = std::allocator<std::byte>> class SmallMap {
  public:
    struct Item {
        Key key;
        Value value;
    };

    SmallMap() = default;
    explicit SmallMap(const Allocator &a) : items_(a), cells_(a) {}

    /// The value of a key, made if it is new; stays where it is until the next new key.
    Value &operator[](const Key &k) {
        if (cells_.empty()) {
            for (Item &i : items_)
                if (i.key == k)
                    return i.value;
            if (items_.size() < kFew)
                return append(k);
            index(4 * kFew);
        }
        std::size_t c = cell(k);
        if (cells_[c])
            return items_[cells_[c] - 1].value;
        if (2 * (items_.size() + 1) > cells_.size()) {
            index(2 * cells_.size());
            c = cell(k);
        }
        cells_[c] = static_cast<std::uint32_t>(items_.size() + 1);
        return append(k);
    }
    std::size_t size() const { return items_.size(); }
    auto begin() const { return items_.begin(); }
    auto end() const { return items_.end(); }
    /// Has the host fetch what looking for the key reads first.
    void prefetch(const Key &k) const {
        if (cells_.empty())
            __builtin_prefetch(items_.data(), 1);
        else
            __builtin_prefetch(&cells_[home(k)]);
    }
    void clear() {
        items_.clear();
        cells_.clear();
    }

  private:
    static constexpr std::size_t kFew = 8;

    Value &append(const Key &k) {
        items_.push_back({k, Value{}});
        return items_.back().value;
    }
    // Keys are addresses, whose low bits say little.
    std::size_t home(const Key &k) const { return (Hash{}(k) * 0x9e3779b97f4a7c15ull >> 32) & (cells_.size() - 1); }
    /// Where the key is, or the free cell where it would be.
    std::size_t cell(const Key &k) const {
        const std::size_t mask = cells_.size() - 1;
        std::size_t c = home(k);
        while (cells_[c] && !(items_[cells_[c] - 1].key == k))
            c = (c + 1) & mask;
        return c;
    }
    void index(std::size_t cells) {
        cells_.assign(cells, 0);
        for (std::size_t i = 0; i < items_.size(); ++i)
            cells_[cell(items_[i].key)] = static_cast<std::uint32_t>(i + 1);
    }

    template <class T> using Vector = std::vector<T, typename std::allocator_traits<Allocator>::template rebind_alloc<T>>;
    Vector<Item> items_;
    Vector<std::uint32_t> cells_; ///< numbers of items, from one; 0: free; a power of two, or none while there are few
};

} // namespace moscope
