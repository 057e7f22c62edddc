// SPDX-License-Identifier: BSD-3-Clause
// Where a decoded block is, by its key (physical address and mode): open addressing with linear probing. Blocks of one
// page have neighbouring slots, because code that runs together is looked up together. Keys are never 0 or all ones.
#pragma once

#include <cstdint>
#include <vector>

namespace moscope::x86 {

struct Block;

class BlockTable {
  public:
    BlockTable() : slots_(kFirst) {}

    Block *find(std::uint64_t key) const {
        const Slot *const slots = slots_.data();
        for (std::size_t i = home(key);; i = (i + 1) & last_) {
            if (slots[i].key == key)
                return slots[i].block;
            if (slots[i].key == kFree)
                return nullptr;
        }
    }
    /// The key is not there yet.
    void insert(std::uint64_t key, Block *block) {
        if ((used_ + 1) * 2 > slots_.size())
            rebuild();
        put(key, block);
        ++used_;
        ++size_;
    }
    void erase(std::uint64_t key) {
        for (std::size_t i = home(key); slots_[i].key != kFree; i = (i + 1) & last_)
            if (slots_[i].key == key) {
                slots_[i] = {kGone, nullptr};
                --size_;
                return;
            }
    }
    void clear() {
        slots_.assign(kFirst, {});
        last_ = kFirst - 1;
        used_ = size_ = 0;
    }
    std::size_t size() const { return size_; }
    template <class F> void for_each(F &&f) const {
        for (const Slot &s : slots_)
            if (s.block)
                f(s.block);
    }

  private:
    static constexpr std::size_t kFirst = 1 << 14;
    static constexpr std::uint64_t kFree = 0, kGone = ~std::uint64_t{0};
    struct Slot {
        std::uint64_t key = kFree;
        Block *block = nullptr;
    };
    std::size_t home(std::uint64_t key) const { return ((key >> 14) * 0x9e3779b97f4a7c15 >> 20 ^ key >> 4) & last_; }
    void put(std::uint64_t key, Block *block) {
        std::size_t i = home(key);
        while (slots_[i].key != kFree)
            i = (i + 1) & last_;
        slots_[i] = {key, block};
    }
    void rebuild() {
        std::vector<Slot> old(size_ * 4 > slots_.size() ? slots_.size() * 2 : slots_.size());
        old.swap(slots_);
        last_ = slots_.size() - 1;
        for (const Slot &s : old)
            if (s.block)
                put(s.key, s.block);
        used_ = size_;
    }

    std::vector<Slot> slots_;
    std::size_t last_ = kFirst - 1;   ///< index of the last slot; there are 2^n
    std::size_t used_ = 0, size_ = 0; ///< slots that are not free; blocks
};

} // namespace moscope::x86
