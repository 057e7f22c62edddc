// SPDX-License-Identifier: BSD-3-Clause
// The interpreter's loop: block after block, with interrupts, faults and single steps between them.
#include "cpu/x86/block.hh"
#include "cpu/x86/core.hh"
#include "cpu/x86/interrupts.hh"

namespace moscope::x86 {

namespace {

/// Something has to be looked at before the next instruction.
bool needs_attention(const Core &c) {
    return c.shadow || c.halted || c.wait_for_sipi || (c.flags.system & Flags::tf) ||
           (c.signals.pending & ~dev::CoreSignals::intr) ||
           (c.signals.pending && (c.flags.system & Flags::if_));
}

void single_step_trap(Core &c) {
    c.dr[6] |= 1 << 14;
    c.raise(exc_db);
    deliver_fault(c);
}

} // namespace

Core::Begin Core::begin_block(bool poll) {
    Begin next;
    if (__builtin_expect(poll && needs_attention(*this), 0)) {
        if (signals.pending & dev::CoreSignals::stop) {
            exit = Exit::stop;
            return next;
        }
        if (shadow) {
            shadow = 0;
            next.single = true;
        } else {
            poll_interrupts(*this);
            if (exit != Exit::none)
                return next;
            if (halted || wait_for_sipi) {
                exit = Exit::halt;
                return next;
            }
        }
        next.trap = flags.system & Flags::tf;
        next.single |= next.trap;
    }
    Jump &j = jump_of(rip);
    if (__builtin_expect(!next.single && j.rip == rip && (j.tag == global_tag || j.tag == local_tag), 1)) {
        next.block = j.block;
        return next;
    }
    bool global = false;
    next.block = blocks.find(*this, next.single, &global);
    if (!next.block) {
        deliver_fault(*this);
        if (exit != Exit::shutdown)
            exit = Exit::none;
        return next;
    }
    if (!next.single)
        jump_of(rip) = {rip, global ? global_tag : local_tag, next.block};
    return next;
}

bool Core::end_block(const Begin &done) {
    bool trap = done.trap;
    if (__builtin_expect(exit != Exit::none, 0)) {
        retired -= done.block->count - static_cast<std::uint64_t>(left_at - done.block->ops.get());
        switch (exit) {
        case Exit::fault:
            trap = false;
            deliver_fault(*this);
            if (exit == Exit::shutdown)
                return false;
            break;
        case Exit::restart: {
            Jump &j = jump_of(r[reg_block]);
            if (done.block->stale && j.block == done.block)
                j = {};
            break;
        }
        case Exit::trap:
            trap = false; // the handler is entered with TF clear
            break;
        default:
            return false;
        }
        exit = Exit::none;
    }
    if (__builtin_expect(trap, 0)) {
        single_step_trap(*this);
        if (exit == Exit::shutdown)
            return false;
        exit = Exit::none;
    }
    return true;
}

Exit Core::run(std::uint64_t budget) {
    const std::uint64_t end = retired + budget;
    exit = Exit::none;
    while (true) {
        // The common case of begin_block, kept in this loop.
        Begin next;
        const Jump &j = jump_of(rip);
        if (__builtin_expect(j.rip == rip && (j.tag == global_tag || j.tag == local_tag) && !needs_attention(*this), 1)) {
            if (retired >= end)
                return Exit::none;
            next.block = j.block;
        } else {
            if (retired >= end && !needs_attention(*this))
                return Exit::none;
            next = begin_block(true);
            if (!next.block) {
                if (exit != Exit::none)
                    return exit;
                continue;
            }
        }
        Block *b = next.block;
        r[reg_block] = rip;
        retired += b->count;
        const Op *op = b->ops.get();
        do
            op = op->exec(*this, op);
        while (op);
        if (__builtin_expect(exit != Exit::none || next.trap, 0) && !end_block(next))
            return exit;
    }
}

} // namespace moscope::x86
