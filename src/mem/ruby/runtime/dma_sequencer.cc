// SPDX-License-Identifier: BSD-3-Clause
// Device accesses through the protocol, in order, one at a time per controller.
#include "mem/ruby/runtime/dma_sequencer.hh"

#include <cstring>

namespace moscope::ruby {

DMASequencer::DMASequencer(AbstractController &c, MessageBuffer &mandatory, std::byte *guest_memory, bool checks_data)
    : c_(c), mandatory_(mandatory), memory_(guest_memory), checks_data_(checks_data) {
    port_.memory_ = this;
    port_.issue_ = issue_entry;
    port_.probe_ = no_probe;
    port_.hit_done_ = no_hit;
}

void DMASequencer::issue(Access &a) {
    MOSCOPE_CHECK(line_offset(a.addr.value) + a.size <= kLineBytes);
    MOSCOPE_CHECK(a.kind == AccessKind::load || a.kind == AccessKind::store);
    queue_.push_back(&a);
    if (queue_.size() == 1)
        start(a, a.issued);
}

void DMASequencer::start(Access &a, Tick now) {
    auto *m = message_pool().make<SequencerMsg>();
    m->type = SequencerMsg::kType;
    m->line = line_of(a.addr.value);
    m->LineAddress = m->line;
    m->PhysicalAddress = a.addr.value;
    m->Type = a.kind == AccessKind::load ? SequencerRequestType_LD : SequencerRequestType_ST;
    m->Len = a.size;
    m->writeMask.setMask(static_cast<int>(line_offset(a.addr.value)), a.size);
    if (a.kind == AccessKind::store && a.data)
        std::memcpy(m->DataBlk.bytes() + line_offset(a.addr.value), a.data, a.size);
    m->source = c_.node;
    m->vnet = 0xff;
    a.txn = (TxnId{0x8000} + c_.version) << 40 | ++next_txn_;
    m->txn = a.txn;
    m->stamp = a.issued;
    m->account(Segment::queue, now);
    const Tick arrival = c_.edge_from(now, 1);
    m->account(Segment::cache, arrival);
    if (__builtin_expect(c_.trace != nullptr, 0))
        c_.trace->sent(c_, now, *m, arrival, nullptr);
    mandatory_.enqueue(m, arrival);
}

void DMASequencer::complete(Addr addr, const std::byte *bytes) {
    if (queue_.empty() || line_of(queue_.front()->addr.value) != line_of(addr))
        throw ProtocolError(c_.name() + ": callback without a device access in flight for its line");
    Access &a = *queue_.front();
    queue_.pop_front();
    if (a.kind == AccessKind::load) {
        const std::byte *line = checks_data_ && bytes ? bytes : memory_ + line_of(addr);
        if (a.data)
            std::memcpy(a.data, line + line_offset(a.addr.value), a.size);
    } else if (a.data && !checks_data_) {
        std::memcpy(memory_ + a.addr.value, a.data, a.size);
    }
    a.done = c_.now();
    a.path = {};
    if (c_.cause_ && c_.cause_->txn == a.txn) {
        a.path = c_.cause_->path;
        a.hops = c_.cause_->txn_hops;
        MOSCOPE_CHECK(a.path.total() == a.done - a.issued);
    } else {
        a.path.in[static_cast<unsigned>(Segment::queue)] = a.done - a.issued;
    }
    if (!queue_.empty())
        start(*queue_.front(), c_.now());
    if (a.on_done)
        a.on_done(a);
}

} // namespace moscope::ruby
