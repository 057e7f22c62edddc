// SPDX-License-Identifier: BSD-3-Clause
// Tables of the miscellaneous node of gem5's CHI, which orders the TLB invalidations (DVM operations) of Arm cores.
// moscope's cores send none. The protocol compiles, but a call that only such an operation makes is an error of the
// protocol.
#pragma once

#include "mem/ruby/runtime/foreign/tbe_storage.hh"
#include "mem/ruby/runtime/tbe_table.hh"

namespace moscope::ruby {

template <class T> struct MN_TBETable : TBETable<T> {
    MN_TBETable() {} // makes it no aggregate: an empty list could not initialise the base
    T *chooseNewDistributor() {
        if (this->count() == 0)
            return nullptr;
        throw ProtocolError("MN_TBETable: DVM operations are not supported");
    }
};

template <class Retry> struct MN_TBEStorage {
    void set_capacity(std::int64_t) {}
    template <class... A> int size(A...) const { return 0; }
    template <class... A> int capacity(A...) const { return none(); }
    template <class... A> int reserved(A...) const { return 0; }
    template <class... A> int slotsAvailable(A...) const { return none(); }
    template <class... A> bool areNSlotsAvailable(A...) const { return none(); }
    template <class... A> void incrementReserved(A...) { none(); }
    template <class... A> void decrementReserved(A...) { none(); }
    template <class... A> int addEntryToNewSlot(A...) { return none(); }
    template <class... A> void removeEntryFromSlot(A...) { none(); }
    void emplaceRetryEntry(const Retry &) { none(); }
    bool hasPossibleRetry() const { return false; }
    Retry popNextRetryEntry() { return none(), Retry{}; }

  private:
    [[gnu::cold, gnu::noinline]] static int none() {
        throw ProtocolError("MN_TBEStorage: DVM operations are not supported");
    }
};

} // namespace moscope::ruby
