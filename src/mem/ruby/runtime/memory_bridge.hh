// SPDX-License-Identifier: BSD-3-Clause
// Between a home controller's memory buffers (MemoryMsg) and the node's DRAM. A read's message comes back with
// its data when the burst has been read; a write's comes back as an acknowledgement. Bytes are read and
// written in guest memory only in checking mode; else they are there already.
#pragma once

#include <cstring>
#include <functional>
#include <string>

#include "mem/ruby/runtime/requests.hh"
#include "sim/event_queue.hh"

namespace moscope::ruby {

/// D is the DRAM model: `bool can_accept(bool write)`, `void push(Addr, bool write, Tick now, void *context)`, which
/// may complete the access at once.
template <class D> class MemoryBridge : public Component {
  public:
    MemoryBridge(EventQueue &queue, std::string name, D &dram, MachineID home, MessageBuffer &requests,
                 MessageBuffer &responses, std::byte *guest_memory, bool checks_data)
        : Component(queue, std::move(name), wake_entry),
          dram_(dram),
          home_(home),
          responses_(responses),
          memory_(guest_memory),
          checks_data_(checks_data) {
        ingress_.router = this;
        requests.ingress = &ingress_;
        requests_ = &requests;
    }

    /// Called by DRAM: the access is done (or its data is on the bus until) tick `when`, not in the past.
    void done(void *context, Tick when) {
        auto *m = static_cast<MemoryMsg *>(context);
        --in_dram_;
        if (checks_data_ && m->Type == MemoryRequestType_MEMORY_READ)
            std::memcpy(m->DataBlk.bytes(), memory_ + line_of(m->addr), kLineBytes);
        m->OriginalRequestorMachId = m->Sender;
        m->Sender = home_;
        m->MessageSize = m->Type == MemoryRequestType_MEMORY_READ ? MessageSizeType_Response_Data
                                                                  : MessageSizeType_Writeback_Control;
        m->account(Segment::dram, when);
        responses_.deliver(m, when);
    }
    unsigned held() const { return in_dram_ + ingress_.queue.size(); }

  private:
    static void wake_entry(Component &c, Tick now) { static_cast<MemoryBridge &>(c).serve(now); }
    void serve(Tick now) {
        while (!ingress_.queue.empty() && ingress_.queue.front().tick <= now) {
            auto *m = static_cast<MemoryMsg *>(ingress_.queue.front().item);
            const bool write = m->Type == MemoryRequestType_MEMORY_WB;
            if (!dram_.can_accept(write))
                return; // woken when DRAM has room again
            ingress_.queue.pop();
            --requests_->in_network_entry;
            ++in_dram_;
            if (write && checks_data_) {
                const unsigned offset = m->Len > 0 ? line_offset(m->addr) : 0;
                const auto bytes = m->Len > 0 ? static_cast<std::size_t>(m->Len) : std::size_t{kLineBytes};
                std::memcpy(memory_ + line_of(m->addr) + offset, m->DataBlk.bytes() + offset, bytes);
            }
            dram_.push(line_of(m->addr), write, now, m);
        }
        if (!ingress_.queue.empty())
            schedule_no_later_than(ingress_.queue.front_tick());
    }

    D &dram_;
    MachineID home_;
    MessageBuffer &responses_;
    MessageBuffer *requests_;
    std::byte *memory_;
    bool checks_data_;
    Ingress ingress_;
    unsigned in_dram_ = 0;
};

} // namespace moscope::ruby
