// SPDX-License-Identifier: BSD-3-Clause
// Device accesses: SLICC's DMASequencer. Takes line-sized or smaller reads and writes, one per line at a time,
// through a port like a core's (AccessKind load and store), and gives them to the protocol's DMA machine: one at a
// time, or as many to different lines as the board allows.
#pragma once

#include <deque>

#include "mem/port.hh"
#include "mem/ruby/runtime/controller.hh"
#include "mem/ruby/runtime/requests.hh"

namespace moscope::ruby {

class DMASequencer {
  public:
    DMASequencer(AbstractController &c, MessageBuffer &mandatory, std::byte *guest_memory, bool checks_data);

    Port &port() { return port_; }
    /// How many accesses may be in the protocol at a time, at least 1.
    void allow(unsigned in_flight) { most_ = in_flight; }

    // ---- called by protocols
    void ackCallback(Addr a) { complete(a, nullptr); }
    template <class D> void dataCallback(const D &d, Addr a) { complete(a, d.bytes()); }
    template <class D> void atomicCallback(const D &d, Addr a) { complete(a, d.bytes()); }
    void recordRequestType(CacheRequestType) {}

    unsigned outstanding() const { return static_cast<unsigned>(queue_.size()); }
    Tick oldest() const { return queue_.empty() ? kNever : queue_.front()->issued; }
    template <class F> void for_each(F &&f) const {
        for (const Access *a : queue_)
            f(*a);
    }

  private:
    static void issue_entry(void *self, Access &a) { static_cast<DMASequencer *>(self)->issue(a); }
    static std::byte *no_probe(void *, Port &, AccessKind, Addr, Tick) { return nullptr; }
    static Tick no_hit(void *, Tick now) { return now; }
    void issue(Access &a);
    void start_next(Tick now);
    bool line_is_started(Addr line) const;
    void start(Access &a, Tick now);
    void complete(Addr a, const std::byte *bytes);

    AbstractController &c_;
    MessageBuffer &mandatory_;
    std::byte *memory_;
    bool checks_data_;
    Port port_;
    std::deque<Access *> queue_; ///< in their order of issue; `txn` is not 0 if an access is in the protocol
    unsigned most_ = 1, started_ = 0;
    TxnId next_txn_ = 0;
};

} // namespace moscope::ruby
