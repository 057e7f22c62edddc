// SPDX-License-Identifier: BSD-3-Clause
// Connects a home controller's memory buffers (MemoryMsg) to the node's DRAM. A read's message comes back with its data
// when the burst has been read; a write's comes back as an acknowledgement. Bytes are read and written in guest memory
// only in checking mode; else they are there already. Writes for which DRAM has no room wait here. Reads pass them; a
// read of a line with such a write is answered here.
#pragma once

#include <cstring>
#include <deque>
#include <functional>
#include <string>
#include <unordered_map>

#include "mem/ruby/runtime/message_buffer.hh"
#include "mem/ruby/runtime/message_pool.hh"
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

    /// Called by DRAM: the access, with its data on the bus, is done at tick `when`, which is not in the past.
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
        if (__builtin_expect(!blocked_[0].empty() || !blocked_[1].empty(), 0))
            retry(now);
        while (!ingress_.queue.empty() && ingress_.queue.front().tick <= now) {
            auto *m = static_cast<MemoryMsg *>(ingress_.queue.front().item);
            ingress_.queue.pop();
            --requests_->in_network_entry;
            ++in_dram_;
            take(m, now);
        }
        if (!ingress_.queue.empty())
            schedule_no_later_than(ingress_.queue.front_tick());
    }
    [[gnu::noinline]] void retry(Tick now) {
        for (auto &waiting : blocked_)
            while (!waiting.empty() && dram_.can_accept(is_write(waiting.front()))) {
                MemoryMsg *const m = waiting.front();
                waiting.pop_front();
                if (is_write(m) && --blocked_lines_[line_of(m->addr)] == 0)
                    blocked_lines_.erase(line_of(m->addr));
                dram_.push(line_of(m->addr), is_write(m), now, m);
            }
    }
    void take(MemoryMsg *m, Tick now) {
        const bool write = is_write(m);
        const Addr line = line_of(m->addr);
        if (write && checks_data_) {
            const unsigned offset = m->Len > 0 ? line_offset(m->addr) : 0;
            const auto bytes = m->Len > 0 ? static_cast<std::size_t>(m->Len) : std::size_t{kLineBytes};
            std::memcpy(memory_ + line + offset, m->DataBlk.bytes() + offset, bytes);
        }
        if (!write && __builtin_expect(!blocked_lines_.empty(), 0) && blocked_lines_.contains(line)) {
            done(m, now); // as from DRAM's queue of writes
        } else if (__builtin_expect(blocked_[write].empty() && dram_.can_accept(write), 1)) {
            dram_.push(line, write, now, m);
        } else {
            blocked_[write].push_back(m); // woken when DRAM has room again
            if (write)
                ++blocked_lines_[line];
        }
    }
    static bool is_write(const MemoryMsg *m) { return m->Type == MemoryRequestType_MEMORY_WB; }

    D &dram_;
    MachineID home_;
    MessageBuffer &responses_;
    MessageBuffer *requests_;
    std::byte *memory_;
    bool checks_data_;
    Ingress ingress_;
    std::deque<MemoryMsg *> blocked_[2];               ///< reads, writes that wait for room
    std::unordered_map<Addr, unsigned> blocked_lines_; ///< how many writes of a line wait
    unsigned in_dram_ = 0;                             ///< accesses in DRAM or waiting for room in it
};

} // namespace moscope::ruby
