// SPDX-License-Identifier: BSD-3-Clause
// SLICC's TBEStorage: counts slots for TBEs apart from the tables that hold them. A slot can be reserved before it is
// used (protocols with credits or retries do), and several TBEs can share one.
#pragma once

#include <vector>

#include "base/error.hh"
#include "base/types.hh"

namespace moscope::ruby {

class TBEStorage {
  public:
    explicit TBEStorage(std::int64_t slots = 0) { set_capacity(slots); }
    void set_capacity(std::int64_t slots) {
        users_.assign(static_cast<std::size_t>(slots), 0);
        free_.clear();
        for (std::int64_t i = slots; i-- > 0;)
            free_.push_back(static_cast<int>(i));
        reserved_ = 0;
    }

    int size() const { return capacity() - static_cast<int>(free_.size()); }
    int capacity() const { return static_cast<int>(users_.size()); }
    int reserved() const { return reserved_; }
    int slotsAvailable() const { return static_cast<int>(free_.size()) - reserved_; }
    bool areNSlotsAvailable(int n, Tick = 0) const { return slotsAvailable() >= n; }
    void incrementReserved() { ++reserved_; }
    void decrementReserved() {
        if (reserved_ == 0)
            throw ProtocolError("TBEStorage: no slot is reserved");
        --reserved_;
    }
    int addEntryToNewSlot() {
        if (free_.empty() || slotsAvailable() <= 0)
            throw ProtocolError("TBEStorage: no free slot: a transition takes one without check_allocate");
        const int slot = free_.back();
        free_.pop_back();
        users_[static_cast<std::size_t>(slot)] = 1;
        return slot;
    }
    void addEntryToSlot(int slot) { ++used(slot); }
    void removeEntryFromSlot(int slot) {
        if (--used(slot) == 0)
            free_.push_back(slot);
    }

  private:
    int &used(int slot) {
        if (slot < 0 || slot >= capacity() || users_[static_cast<std::size_t>(slot)] == 0)
            throw ProtocolError("TBEStorage: a slot that is not in use");
        return users_[static_cast<std::size_t>(slot)];
    }

    std::vector<int> users_; ///< by slot: how many TBEs share it
    std::vector<int> free_;
    int reserved_ = 0;
};

} // namespace moscope::ruby
