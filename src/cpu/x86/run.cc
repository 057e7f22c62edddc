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

Exit Core::run(std::uint64_t budget) {
    const std::uint64_t end = retired + budget;
    exit = Exit::none;
    while (true) {
        bool single = false, trap = false;
        if (__builtin_expect(needs_attention(*this), 0)) {
            if (signals.pending & dev::CoreSignals::stop)
                return exit = Exit::stop;
            if (shadow) {
                shadow = 0;
                single = true;
            } else {
                poll_interrupts(*this);
                if (exit != Exit::none)
                    return exit;
                if (halted || wait_for_sipi)
                    return Exit::halt;
            }
            trap = flags.system & Flags::tf;
            single |= trap;
        }
        if (retired >= end && !single)
            return Exit::none;

        Block *b;
        Jump &j = jumps[(rip ^ rip >> 11) & (kJumps - 1)];
        if (__builtin_expect(!single && j.rip == rip && (j.tag == global_tag || j.tag == local_tag), 1))
            b = j.block;
        else {
            bool global = false;
            b = blocks.find(*this, single, &global);
            if (!b) {
                deliver_fault(*this);
                if (exit == Exit::shutdown)
                    return exit;
                exit = Exit::none;
                continue;
            }
            if (!single)
                j = {rip, global ? global_tag : local_tag, b};
        }

        r[reg_block] = rip;
        retired += b->count;
        const Op *op = b->ops.get();
        do
            op = op->exec(*this, op);
        while (op);

        if (__builtin_expect(exit != Exit::none, 0)) {
            retired -= b->count - static_cast<std::uint64_t>(left_at - b->ops.get());
            switch (exit) {
            case Exit::fault:
                trap = false;
                deliver_fault(*this);
                if (exit == Exit::shutdown)
                    return exit;
                break;
            case Exit::restart:
                if (b->stale && j.block == b)
                    j = {};
                break;
            case Exit::trap:
                break;
            default:
                return exit;
            }
            exit = Exit::none;
        }
        if (__builtin_expect(trap, 0)) {
            single_step_trap(*this);
            if (exit == Exit::shutdown)
                return exit;
            exit = Exit::none;
        }
    }
}

} // namespace moscope::x86
