// SPDX-License-Identifier: BSD-3-Clause
// A minimal core with the memory order of x86-TSO (Sewell et al., CACM 53(7), 2010): loads bind in program
// order, stores go through a FIFO buffer that younger loads of the core read from, locked operations and fences
// wait until it has drained. It exists to run litmus tests: one short program at a time, one load or locked
// operation and one draining store in flight. Ticks are femtoseconds.
#pragma once

#include <array>
#include <cstdint>

#include "base/rng.hh"
#include "mem/port.hh"
#include "sim/event_queue.hh"

namespace moscope::testers {

struct TsoOp {
    enum class Kind : std::uint8_t {
        load,  ///< reg = memory
        store, ///< memory = value
        swap,  ///< locked: reg = memory, memory = value
        add,   ///< locked: memory += value
        fence
    };
    Kind kind = Kind::fence;
    std::uint8_t reg = 0;
    PhysAddr addr; ///< of four bytes
    std::uint32_t value = 0;
};

class TsoCore : public Component {
  public:
    static constexpr unsigned kOps = 16, kRegisters = 8, kStoreBuffer = 8;

    TsoCore(EventQueue &queue, unsigned number, Port &port, std::uint64_t seed);

    /// A new program; the previous one has finished.
    void clear() { length_ = 0; }
    void add(const TsoOp &op);
    /// Runs the program from tick t. Each store rests in the buffer for up to drain_cycles before it drains.
    void start(Tick t, unsigned drain_cycles);
    /// Called when the program has ended and the store buffer is empty.
    void (*on_finished)(void *context, TsoCore &) = nullptr;
    void *context = nullptr;
    std::uint32_t reg(unsigned i) const { return registers_[i]; }

  private:
    struct Buffered {
        PhysAddr addr;
        std::uint32_t value;
        Tick ready;
    };

    void wake(Tick now);
    void step(Tick now);
    void drain(Tick now);
    void done(Access &a);
    bool buffer_empty() const { return head_ == tail_; }
    Tick after(Tick now, unsigned cycles) {
        cursor_.advance_to(now);
        return cursor_.after(cycles);
    }
    bool inline_load(const TsoOp &op, Tick now);

    Port &port_;
    Rng rng_;
    ClockCursor cursor_;
    std::array<TsoOp, kOps> program_;
    unsigned length_ = 0, pc_ = 0;
    Tick next_step_ = kNever;
    bool waiting_ = false, draining_ = false, running_ = false;
    unsigned drain_cycles_ = 0;
    std::array<std::uint32_t, kRegisters> registers_{};
    std::array<Buffered, kStoreBuffer> buffer_;
    unsigned head_ = 0, tail_ = 0; ///< only count up; used modulo kStoreBuffer
    Access access_, drain_access_;
};

} // namespace moscope::testers
