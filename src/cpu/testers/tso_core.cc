// SPDX-License-Identifier: BSD-3-Clause
// Steps of the TSO core: at most one operation begins per cycle.
#include "cpu/testers/tso_core.hh"

#include <cstring>

namespace moscope::testers {

TsoCore::TsoCore(EventQueue &queue, unsigned number, Port &port, std::uint64_t seed)
    : Component(queue, "tso core " + std::to_string(number),
                [](Component &c, Tick now) { static_cast<TsoCore &>(c).wake(now); }),
      port_(port),
      rng_(seed),
      cursor_(port.core_clock_) {
    for (Access *a : {&access_, &drain_access_}) {
        a->size = 4;
        a->owner = this;
        a->on_done = [](Access &x) { static_cast<TsoCore *>(x.owner)->done(x); };
    }
    access_.rmw_context = this;
    access_.rmw = [](void *core, void *bytes) {
        auto &c = *static_cast<TsoCore *>(core);
        const TsoOp &op = c.program_[c.pc_];
        std::uint32_t v;
        std::memcpy(&v, bytes, 4);
        if (op.kind == TsoOp::Kind::swap)
            c.registers_[op.reg] = v;
        v = op.kind == TsoOp::Kind::add ? v + op.value : op.value;
        std::memcpy(bytes, &v, 4);
    };
}

void TsoCore::add(const TsoOp &op) {
    MOSCOPE_CHECK(length_ < kOps && op.reg < kRegisters);
    program_[length_++] = op;
}

void TsoCore::start(Tick t, unsigned drain_cycles) {
    MOSCOPE_CHECK(!running_);
    running_ = true;
    pc_ = 0;
    drain_cycles_ = drain_cycles;
    next_step_ = t;
    schedule_no_later_than(t);
}

void TsoCore::wake(Tick now) {
    drain(now);
    if (running_ && !waiting_ && next_step_ <= now)
        step(now);
    if (running_ && pc_ == length_ && !waiting_ && buffer_empty()) {
        running_ = false;
        on_finished(context, *this);
        return;
    }
    if (!buffer_empty() && !draining_)
        schedule_no_later_than(std::max(buffer_[head_ % kStoreBuffer].ready, after(now, 1)));
    if (running_ && !waiting_ && pc_ < length_ && next_step_ > now && next_step_ != kNever)
        schedule_no_later_than(next_step_);
}

void TsoCore::drain(Tick now) {
    if (draining_ || buffer_empty() || buffer_[head_ % kStoreBuffer].ready > now)
        return;
    Buffered &b = buffer_[head_ % kStoreBuffer];
    draining_ = true;
    drain_access_.kind = AccessKind::store;
    drain_access_.addr = b.addr;
    drain_access_.data = &b.value;
    port_.issue(drain_access_, now);
}

bool TsoCore::inline_load(const TsoOp &op, Tick now) {
    const Addr line = line_of(op.addr.value);
    const Tick when = port_.hit_done(now);
    const std::byte *b = port_.hit(line, Port::right_load, when);
    if (!b)
        b = port_.probe(AccessKind::load, line, when);
    if (b)
        std::memcpy(&registers_[op.reg], b + line_offset(op.addr.value), 4);
    return b != nullptr;
}

void TsoCore::step(Tick now) {
    if (pc_ == length_)
        return;
    const TsoOp &op = program_[pc_];
    const bool locked = op.kind == TsoOp::Kind::swap || op.kind == TsoOp::Kind::add;
    if ((locked || op.kind == TsoOp::Kind::fence) && !buffer_empty()) {
        next_step_ = kNever; // the last store to drain wakes it
        return;
    }
    switch (op.kind) {
    case TsoOp::Kind::store:
        if (tail_ - head_ == kStoreBuffer) {
            next_step_ = kNever;
            return;
        }
        buffer_[tail_++ % kStoreBuffer] = {op.addr, op.value,
                                           after(now, 1 + static_cast<unsigned>(rng_.below(drain_cycles_ + 1)))};
        break;
    case TsoOp::Kind::load: {
        bool forwarded = false;
        for (unsigned i = tail_; i != head_ && !forwarded; --i) {
            const Buffered &b = buffer_[(i - 1) % kStoreBuffer];
            if (b.addr == op.addr) {
                registers_[op.reg] = b.value;
                forwarded = true;
            }
        }
        if (forwarded || (rng_.below(2) && inline_load(op, now)))
            break;
        [[fallthrough]];
    }
    case TsoOp::Kind::swap:
    case TsoOp::Kind::add:
        access_.kind = locked ? AccessKind::rmw : AccessKind::load;
        access_.addr = op.addr;
        access_.data = locked ? nullptr : &registers_[op.reg];
        waiting_ = true;
        port_.issue(access_, now);
        return;
    case TsoOp::Kind::fence: break;
    }
    ++pc_;
    next_step_ = after(now, 1);
}

void TsoCore::done(Access &a) {
    if (&a == &drain_access_) {
        draining_ = false;
        ++head_;
        if (next_step_ == kNever)
            next_step_ = a.done;
    } else {
        waiting_ = false;
        ++pc_;
        next_step_ = after(a.done, 1);
    }
    schedule_no_later_than(after(a.done, 1));
}

} // namespace moscope::testers
