// SPDX-License-Identifier: BSD-3-Clause
// Device accesses through the protocol. They begin in the order of their issue.
#include "mem/ruby/runtime/dma_sequencer.hh"

#include <algorithm>
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
    a.txn = 0;
    queue_.push_back(&a);
    start_next(a.issued);
}

bool DMASequencer::line_is_started(Addr line) const {
    return std::any_of(queue_.begin(), queue_.end(),
                       [line](const Access *a) { return a->txn != 0 && line_of(a->addr.value) == line; });
}

/// Starts what may be started. An access to a line that is in the protocol waits, and so do those after it.
void DMASequencer::start_next(Tick now) {
    for (Access *a : queue_) {
        if (started_ == most_)
            return;
        if (a->txn != 0)
            continue;
        if (line_is_started(line_of(a->addr.value)))
            return;
        ++started_;
        start(*a, now);
    }
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
    const auto found = std::find_if(queue_.begin(), queue_.end(), [addr](const Access *x) {
        return x->txn != 0 && line_of(x->addr.value) == line_of(addr);
    });
    if (found == queue_.end())
        throw ProtocolError(c_.name() + ": callback without a device access in flight for its line");
    Access &a = **found;
    queue_.erase(found);
    --started_;
    if (a.kind == AccessKind::load) {
        const std::byte *line = checks_data_ && bytes ? bytes : memory_ + line_of(addr);
        if (a.data)
            std::memcpy(a.data, line + line_offset(a.addr.value), a.size);
    } else if (a.data && !checks_data_) {
        std::memcpy(memory_ + a.addr.value, a.data, a.size);
    }
    a.done = c_.now();
    a.supplier = MachineType_NULL; // the home does not report who supplied the data
    a.path = {};
    if (const Message *const cause = c_.caused_by(); cause && cause->txn == a.txn) {
        a.path = cause->path;
        a.hops = cause->txn_hops;
        MOSCOPE_CHECK(a.path.total() == a.done - a.issued);
    } else {
        a.path.in[static_cast<unsigned>(Segment::queue)] = a.done - a.issued;
    }
    start_next(c_.now());
    if (a.on_done)
        a.on_done(a);
}

} // namespace moscope::ruby
