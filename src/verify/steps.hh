// SPDX-License-Identifier: BSD-3-Clause
// The steps between states that need no new request. They are kept for the check at the end: from every state, all
// cores must be able to get what they asked for. A block is read from its end. It has, for each state: the numbers of
// the states that steps lead to; a word with twice their number, plus 1 if no core waits in the state; and the state's
// number.
#pragma once

#include <cstdint>
#include <mutex>
#include <vector>

namespace moscope::verify {

class Steps {
  public:
    using List = std::vector<std::uint32_t>;
    static constexpr std::size_t kBlock = 1u << 18;

    /// Takes over a block.
    void add(List &&block) {
        const std::lock_guard guard(lock_);
        if (!dropped_)
            blocks_.push_back(std::move(block));
    }
    /// Frees all steps, and ignores later ones.
    void drop() {
        const std::lock_guard guard(lock_);
        dropped_ = true;
        std::vector<List>().swap(blocks_);
    }
    bool dropped() const {
        const std::lock_guard guard(lock_);
        return dropped_;
    }
    std::size_t bytes() const {
        const std::lock_guard guard(lock_);
        return blocks_.size() * kBlock * sizeof(std::uint32_t);
    }

    /// The states from which no state without a waiting core can be reached. `end` is above all numbers. Passes over
    /// the blocks, last first, until nothing changes.
    std::vector<std::uint32_t> hopeless(std::size_t end) const {
        std::vector<bool> good(end);
        std::vector<std::uint32_t> bad;
        for (bool changed = true; changed;) {
            changed = false;
            bad.clear();
            for (std::size_t b = blocks_.size(); b-- > 0;)
                for (std::size_t i = blocks_[b].size(); i > 0;) {
                    const std::uint32_t number = blocks_[b][i - 1], word = blocks_[b][i - 2];
                    const std::size_t first = i - 2 - (word >> 1);
                    if (!good[number]) {
                        bool reaches = word & 1;
                        for (std::size_t e = first; e < i - 2 && !reaches; ++e)
                            reaches = good[blocks_[b][e]];
                        if (reaches)
                            good[number] = changed = true;
                        else
                            bad.push_back(number);
                    }
                    i = first;
                }
        }
        return bad;
    }

  private:
    mutable std::mutex lock_;
    std::vector<List> blocks_;
    bool dropped_ = false;
};

} // namespace moscope::verify
