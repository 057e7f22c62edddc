// SPDX-License-Identifier: BSD-3-Clause
// The interpreter's loop: block after block, with interrupts, faults and single steps between them.
#include "cpu/x86/core.hh"
#include "cpu/x86/decode/block.hh"
#include "cpu/x86/system/interrupts.hh"
#include "cpu/x86/system/msr.hh"

namespace moscope::x86 {

namespace {

/// Interrupts, traps or breakpoints may be pending before the next instruction.
bool needs_attention(const Core &c) {
    return c.shadow || c.halted || c.wait_for_sipi || (c.flags.system & (Flags::tf | Flags::rf)) ||
           (c.signals.pending && interrupts_need_poll(c));
}

/// Traps after an instruction: RFLAGS.TF, and breakpoints on data and ports.
void debug_trap(Core &c, bool step) {
    c.dr[6] |= (step ? 1u << 14 : 0u) | c.struck;
    c.struck = 0;
    c.raise(exc_db);
    deliver_fault(c);
}

/// With DEBUGCTL.BTF set, only control transfers are stepped: whether the block's first instruction was one. A jump to the
/// next instruction passes for none, and so does a repeated instruction (`repeats`: it goes on).
bool stepped(Core &c, const Block &b, bool repeats) {
    const RememberedMsr *const control = find_msr(c, msr::debug_control);
    if (!control || !(control->value & msr::kBranchStep))
        return true;
    const std::uint64_t next = c.r[reg_block] + b.ops()[0].length;
    return !repeats && c.rip != (c.code64() ? next : next & 0xffffffff);
}

/// The block at rip; null: fault. `global`: it may be remembered beyond a change of CR3, because all its code is in
/// global pages. In the lower half of addresses it may not, because INVLPG forgets only what is local there
/// (Core::flush_page).
Block *block_at_rip(Core &c, bool single, bool &global) {
    Block *b = c.blocks->find(c, single, &global);
    global &= c.rip >> 63 != 0;
    if (b && global && b->crosses) {
        const Addr second = (c.rip | 0xfff) + 1;
        const Tlb::Entry &e = c.tlbs[c.cpl == 3].at(second);
        global = e.page == second && (e.phys & Tlb::Entry::kGlobal);
    }
    if (!b || c.code64())
        return b;
    // Decoded blocks ignore segment limits. If a block reaches over the limit of CS, its instructions run one by one
    // while they fit.
    const auto fits = [&] { return c.rip + b->bytes() <= std::uint64_t{c.seg[cs].limit} + 1; };
    if (!fits() && b->count > 1)
        b = c.blocks->find(c, true);
    if (!b || fits())
        return b;
    c.raise(exc_gp, 0);
    return nullptr;
}

} // namespace

Core::Begin Core::begin_block(bool attend, bool interrupts) {
    Begin next;
    const bool after_mov_ss = shadow == kShadowDebug;
    if (__builtin_expect(attend && needs_attention(*this), 0)) {
        if (interrupts && (signals.pending & dev::CoreSignals::stop)) {
            exit = Exit::stop;
            return next;
        }
        if (shadow) {
            shadow = 0;
            next.single = true;
        } else {
            if (interrupts)
                poll_interrupts(*this);
            if (exit != Exit::none)
                return next;
            if (halted || wait_for_sipi) {
                exit = Exit::halt;
                return next;
            }
        }
        next.trap = next.step = flags.system & Flags::tf;
        next.single |= next.step;
        next.resumed = flags.system & Flags::rf;
        flags.system &= ~Flags::rf;
    }
    if (__builtin_expect(watched, 0)) {
        bool near = false;
        if ((watched & kWatchFetch) && !watch_fetch(!next.resumed && !after_mov_ss, near)) {
            deliver_fault(*this);
            if (exit != Exit::shutdown)
                exit = Exit::none;
            return next;
        }
        next.trap |= (watched & (kWatchData | kWatchPort)) != 0;
        next.single |= near || next.trap;
    }
    Jump &j = jump_of(rip);
    if (__builtin_expect(!next.single && remembers(j, rip), 1)) {
        next.block = j.block;
        return next;
    }
    bool global = false;
    next.block = block_at_rip(*this, next.single, global);
    if (!next.block) {
        deliver_fault(*this);
        if (exit != Exit::shutdown)
            exit = Exit::none;
        return next;
    }
    if (next.block->kept) // code in device memory is not
        jump_of(rip) = {rip, global ? global_tag : local_tag, next.block};
    return next;
}

bool Core::end_block(const Begin &done) {
    bool trap = done.step, repeats = false;
    Exit leave = Exit::none;
    if (__builtin_expect(exit != Exit::none, 0)) {
        if (exit == Exit::shutdown) // a task switch, which ends its block
            return false;
        retired -= done.block->count - static_cast<std::uint64_t>(left_at - done.block->ops());
        switch (exit) {
        case Exit::fault:
            trap = false;
            struck = 0;
            deliver_fault(*this);
            if (exit == Exit::shutdown)
                return false;
            break;
        case Exit::restart: {
            Jump &j = jump_of(r[reg_block]);
            if (done.block->stale && j.block == done.block)
                j = {};
            repeats = left_at == done.block->ops(); // the instruction has not ended yet
            if (done.resumed && repeats)
                flags.system |= Flags::rf;
            break;
        }
        case Exit::trap:
            trap = false; // the handler is entered with TF clear
            break;        // what a load of SS has struck waits until then
        case Exit::traced: trap = flags.system & Flags::tf; break;
        default:
            if (!(trap || struck) || exit == Exit::unmodelled || left_at == done.block->ops())
                return false;
            leave = exit; // the instruction has ended: its traps come first
        }
        exit = Exit::none;
    }
    if (__builtin_expect(trap || struck, 0) && shadow != kShadowDebug) {
        trap = trap && stepped(*this, *done.block, repeats);
        if (trap || struck) {
            halted = false;
            debug_trap(*this, trap);
        }
        if (exit == Exit::shutdown)
            return false;
    }
    exit = leave == Exit::halt && !halted ? Exit::none : leave;
    return exit == Exit::none;
}

Exit Core::run(std::uint64_t budget) {
    const std::uint64_t end = retired + budget, limit = end + extra_cycles;
    exit = Exit::none;
    Block *before = nullptr; // the block that was run last, if it is kept
    while (true) {
        // The common case of begin_block, kept in this loop.
        Begin next;
        const Jump &j = jump_of(rip);
        if (__builtin_expect(remembers(j, rip) && !needs_attention(*this), 1)) {
            if (retired >= end)
                return Exit::none;
            next.block = j.block;
        } else {
            if (retired >= end && !needs_attention(*this))
                return Exit::none;
            next = begin_block(true);
            if (!next.block) {
                if (exit != Exit::none || retired + extra_cycles >= limit)
                    return exit;
                continue;
            }
        }
        Block *b = next.block;
        if (before)
            before->followed_by(b, rip);
        before = b->kept ? b : nullptr;
        b->fetch_ahead(*this);
        r[reg_block] = rip;
        retired += b->count;
        const Op *op = b->ops();
        do
            op = op->exec(*this, op);
        while (op);
        // Instructions that restart again and again, and endless faults, retire nothing but use up the time.
        if (__builtin_expect(exit != Exit::none || next.trap, 0) &&
            (!end_block(next) || retired + extra_cycles >= limit))
            return exit;
    }
}

} // namespace moscope::x86
