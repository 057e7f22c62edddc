// SPDX-License-Identifier: BSD-3-Clause
// What the overlapping core does while its oldest load waits: see overlap.hh. All that an operation can change, unless
// its kind is OpKind::other, is saved and restored, or kept aside.
#include <algorithm>
#include <cstring>

#include "cpu/x86/decode/block.hh"
#include "cpu/x86/timed/overlap.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86 {

/// State of the core and of its model that looking ahead changes.
struct Overlap::Saved {
    Saved(TimedCore &k, Core &c)
        : k_(k),
          c_(c),
          flags(c.flags),
          rip(c.rip),
          mxcsr(c.mxcsr),
          exit(c.exit),
          fault(c.fault),
          left_at(c.left_at),
          tlb(c.tlb),
          op(k.op_),
          load_ready(k.load_ready_),
          inline_hits(k.port_.inline_hits) {
        std::memcpy(r, c.r, sizeof r);
        std::memcpy(xmm, c.xmm, sizeof xmm);
        c.tlb = &Core::nothing;
    }
    ~Saved() {
        std::memcpy(c_.r, r, sizeof r);
        std::memcpy(c_.xmm, xmm, sizeof xmm);
        c_.flags = flags;
        c_.rip = rip;
        c_.mxcsr = mxcsr;
        c_.exit = exit;
        c_.fault = fault;
        c_.left_at = left_at;
        c_.tlb = tlb;
        k_.op_ = op;
        k_.load_ready_ = load_ready;
        k_.port_.inline_hits = inline_hits;
    }
    Saved(const Saved &) = delete;
    Saved &operator=(const Saved &) = delete;

  private:
    TimedCore &k_;
    Core &c_;
    Flags flags;
    std::uint64_t rip;
    std::uint32_t mxcsr;
    Exit exit;
    Fault fault;
    const Op *left_at;
    Tlb *tlb;
    const Op *op;
    std::int64_t load_ready;
    std::uint64_t inline_hits;
    std::uint64_t r[kRegs];
    Xmm xmm[16];
};

void Overlap::look_ahead() {
    TimedCore &k = core_;
    drop_plans();
    plan_second();
    if (!k.in_block_ || !c_.code64() || c_.watched || c_.check_alignment ||
        (c_.flags.system & (Flags::tf | Flags::rf)) || c_.shadow)
        return;
    const OpTiming &oldest = c_.blocks->timings().all()[k.op_->timing];
    if (!is_plain(oldest.kind) || under_way_ >= most_) // buffers of stores may become free before the oldest load ends
        return;
    const Saved saved(k, c_);
    ahead_.op = k.op_ + 1;
    ahead_.ready = window_.ready;
    ahead_.point = window_.point;
    ahead_.unknown = c_.blocks->timings().pipes()[k.op_->timing].writes;
    if (oldest.kind == OpKind::stack) // it moves RSP, although its timing does not say so
        ahead_.unknown |= RegMask{1} << rsp;
    ahead_.history = predictor_.history();
    ahead_.full = false;
    ahead_.stores = 0;
    k.looks_ahead_ = this;
    run_ahead(window_.entries() - 1);
    k.looks_ahead_ = nullptr;
}

void Overlap::run_ahead(unsigned most) {
    const OpTiming *const timings = c_.blocks->timings().all();
    const OpPipes *const pipes = c_.blocks->timings().pipes();
    c_.exit = Exit::none;
    for (unsigned n = 1; n <= most && !ahead_.full;) {
        const Op *op = ahead_.op;
        const OpTiming &t = timings[op->timing];
        if (!op->timing) { // the block's end
            op->exec(c_, op);
            ahead_.op = nullptr;
        } else {
            if (t.kind == OpKind::other || t.unit == OpUnit::all)
                return;
            ahead_.point.next(window_.width());
            ahead_.point.not_before(window_.room(n));
            ahead_.point.taken += pipes[op->timing].slots;
            core_.op_ = op;
            if (!step_ahead(t, pipes[op->timing]))
                return;
            ++n;
        }
        if (c_.exit != Exit::none)
            return;
        if (!ahead_.op) {
            const Core::Jump &j = c_.jump_of(c_.rip);
            if (!c_.remembers(j, c_.rip) || j.block->stale || j.block->crosses)
                return;
            if (!j.block->timed) // whether another chip's thread has timed it already must not matter
                c_.blocks->time(*j.block);
            c_.r[reg_block] = c_.rip;
            ahead_.op = j.block->ops();
        }
    }
}

bool Overlap::step_ahead(const OpTiming &t, const OpPipes &p) {
    const Op *op = ahead_.op;
    if (p.form == OpPipes::Form::simple && t.kind == OpKind::plain) { // executed even if the result is unknown
        ahead_.op = op->exec(c_, op);
        ahead_.ready.set(p.result, ahead_.ready.latest(p.source, ahead_.point.cycle) + p.latency);
        ahead_.unknown = p.sources & ahead_.unknown ? ahead_.unknown | p.writes : ahead_.unknown & ~p.writes;
        return true;
    }
    const Addr pc = c_.address_of(op), after = c_.address_after(op);
    // A division of unknown values is not executed: it might fault.
    const bool lost = ahead_.unknown & (is_plain(t.kind) && t.unit != OpUnit::integer_divider ? t.address : t.reads);
    ahead_.address_at = ahead_.ready.latest(t.address, ahead_.point.cycle);
    const std::int64_t operands = ahead_.ready.latest(p.sources & ~t.address, ahead_.address_at);
    ahead_.load_unknown = false;
    bool loaded = false;
    if (!lost) {
        core_.load_ready_ = 0;
        ahead_.op = op->exec(c_, op);
        loaded = core_.load_ready_;
        if (c_.exit != Exit::none)
            return false;
    } else
        ahead_.op = op + 1;
    const bool known = !lost && !ahead_.load_unknown && !(p.sources & ahead_.unknown);
    const std::int64_t hit = loaded ? core_.port_.hit_cycles_ : 0;
    const std::int64_t done =
        std::max(operands, ahead_.address_at + hit) + p.latency - (loaded && t.reads == t.address ? 1 : 0);
    if (is_plain(t.kind)) {
        if (lost && t.kind == OpKind::stack)
            return false;
        ahead_.ready.set(p.writes, done);
        ahead_.unknown = known ? ahead_.unknown & ~p.writes : ahead_.unknown | p.writes;
        return true;
    }
    bool foreseen = true;
    switch (t.kind) {
    case OpKind::conditional: {
        const bool guess = predictor_.taken(pc, ahead_.history);
        if (!known)
            c_.rip = guess ? c_.r[reg_block] + op->imm : after;
        foreseen = guess == (c_.rip != after);
        ahead_.history = BranchPredictor::after(ahead_.history, c_.rip != after);
        break;
    }
    case OpKind::indirect:
    case OpKind::indirect_call: {
        if (lost && t.kind == OpKind::indirect_call)
            return false;
        const Addr guess = predictor_.target(pc, ahead_.history);
        if (!known)
            c_.rip = guess;
        foreseen = guess == c_.rip;
        break;
    }
    case OpKind::call:
        if (lost)
            return false;
        break;
    case OpKind::ret:
        if (!known)
            return false;
        break;
    default: break;
    }
    ahead_.op = nullptr;
    if (!foreseen)
        ahead_.point.not_before(done + mispredicted_);
    else if (c_.rip != after)
        ahead_.point.not_before(ahead_.point.cycle + 1);
    return true;
}

// --- memory

bool Overlap::translate(Addr va, bool user, Addr &dram, unsigned &late) const {
    PhysAddr at(va);
    late = 0;
    if (c_.paging()) {
        Tlb &tlb = c_.tlbs[user];
        unsigned shift;
        if (const Tlb::Entry &e = tlb.at(va); e.page == (va & ~Addr{0xfff})) {
            at = e.at(va);
            shift = e.shift();
        } else if (const Tlb::Large &l = tlb.large_at(va); l.number == va >> 21) {
            at = PhysAddr((l.phys & ~Addr{0x1fffff}) | (va & 0x1fffff));
            shift = l.shift();
        } else
            return false;
        if (!core_.l1_tlb_.contains(va >> shift))
            late = core_.params_.l2_tlb_cycles;
    }
    dram = c_.phys.dram_address(at);
    return dram != PhysMap::kNone;
}

void Overlap::peek(Addr va, void *to, unsigned size, bool user) {
    auto *bytes = static_cast<std::uint8_t *>(to);
    // A missing divisor reads as a value with which no division faults.
    const bool divisor = c_.blocks->timings().all()[core_.op_->timing].unit == OpUnit::integer_divider;
    std::memset(bytes, divisor ? 0x7f : 0, size);
    core_.load_ready_ = 1;
    for (unsigned n; size; va += n, bytes += n, size -= n) {
        n = std::min(size, kLineBytes - line_offset(va));
        Addr d;
        unsigned late;
        if (translate(va, user, d, late))
            peek_line(d, bytes, n, va, ahead_.address_at + late);
        else
            ahead_.load_unknown = true;
    }
}

void Overlap::peek_line(Addr d, void *to, unsigned size, Addr va, std::int64_t address_at) {
    for (unsigned i = ahead_.stores; i-- > 0;) {
        const Ahead::Store &s = ahead_.store[i];
        if (d + size <= s.dram || s.dram + s.size <= d)
            continue;
        if (s.known && d >= s.dram && d + size <= s.dram + s.size)
            std::memcpy(to, s.bytes + (d - s.dram), size);
        else
            ahead_.load_unknown = true;
        return;
    }
    const StoreBuffer::Found found = core_.stores_.look(d, to, size);
    if (found == StoreBuffer::Found::whole)
        return;
    const Addr line = line_of(d);
    if (found == StoreBuffer::Found::part || core_.combiner_.holds(line)) {
        ahead_.load_unknown = true;
        return;
    }
    const Tick when = core_.hit_done();
    const std::byte *b = core_.port_.hit(line, Port::right_load, when);
    if (!b)
        b = core_.port_.probe(AccessKind::load, d, when);
    if (b) {
        std::memcpy(to, b + line_offset(d), size);
        return;
    }
    ahead_.load_unknown = true;
    plan_ahead(d, size, va, address_at, AccessKind::load);
}

void Overlap::plan_ahead(Addr d, unsigned size, Addr va, std::int64_t address_at, AccessKind kind) {
    if (flight_of(core_.port_.line(d)))
        return;
    const auto planned = static_cast<unsigned>(std::popcount(planned_));
    if (under_way_ + planned < most_)
        plan(d, size, c_.address_of(core_.op_), va, tick_of(address_at), kind);
    ahead_.full = under_way_ + planned + 1 >= most_;
}

void Overlap::prefetch_ahead(Addr va, bool write, bool user) {
    Addr d;
    unsigned late;
    const AccessKind kind = write ? AccessKind::store : AccessKind::load;
    if (translate(va, user, d, late) && !core_.combiner_.holds(line_of(d)) && !in_cache(kind, d))
        plan_ahead(d, 1, va, ahead_.address_at + late, kind);
}

void Overlap::keep(Addr va, const void *from, unsigned size, bool user) {
    const auto *bytes = static_cast<const std::uint8_t *>(from);
    const OpPipes &p = c_.blocks->timings().pipes()[core_.op_->timing];
    const bool known = !(p.sources & ahead_.unknown) && !ahead_.load_unknown;
    for (unsigned n; size; va += n, bytes += n, size -= n) {
        n = std::min({size, kLineBytes - line_offset(va), static_cast<unsigned>(sizeof Ahead::Store::bytes)});
        Addr d;
        if (unsigned late; !translate(va, user, d, late))
            continue;
        if (ahead_.stores == Ahead::kStores) { // no room for more stores: the look ahead ends
            ahead_.full = true;
            return;
        }
        Ahead::Store &s = ahead_.store[ahead_.stores++];
        s.dram = d;
        s.size = n;
        s.known = known;
        std::memcpy(s.bytes, bytes, n);
    }
}

void Overlap::modify(Addr va, unsigned size, void (*f)(void *, void *), void *context, bool user) {
    alignas(16) std::uint8_t bytes[kLineBytes];
    peek(va, bytes, size, user);
    f(context, bytes);
    keep(va, bytes, size, user);
}

} // namespace moscope::x86
