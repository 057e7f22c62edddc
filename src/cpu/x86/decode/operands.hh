// SPDX-License-Identifier: BSD-3-Clause
// Access to an operand that is a register or in memory, for instruction functions that are templates over which of the
// two it is. They read it, or read, change and write it back (under LOCK as one access).
#pragma once

#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/mmu/memory.hh"

namespace moscope::x86 {

/// destination = f(destination). f runs once, after all that can fault. Returns what the instruction function returns.
template <class T, bool kMemory, class F> inline const Op *change(Core &c, const Op *op, F &&f) {
    if constexpr (kMemory) {
        Addr a;
        if (!address(c, op, sizeof(T), true, a) || !modify<T>(c, a, op->lock, f))
            return c.fault_at(op);
    } else
        set_reg<T>(c, op->dst, f(reg<T>(c, op->dst)));
    return op + 1;
}

/// Reads the operand from memory, or from the register at byte offset `r`. False: fault.
template <class T, bool kMemory> inline bool read_operand(Core &c, const Op *op, unsigned r, T &out) {
    if constexpr (kMemory) {
        Addr a;
        return address(c, op, sizeof(T), false, a) && load<T>(c, a, out);
    } else {
        out = reg<T>(c, r);
        return true;
    }
}

/// Adapts F::run<T>(core, op, value) to by_place: the value is the operand in memory or in the register of `kRegister`.
template <class F, std::uint8_t Op::*kRegister = &Op::src> struct OnOperand {
    template <bool kMemory> struct Place {
        template <class T> struct At {
            static const Op *run(Core &c, const Op *op) {
                T x;
                return read_operand<T, kMemory>(c, op, op->*kRegister, x) ? F::template run<T>(c, op, x)
                                                                          : c.fault_at(op);
            }
        };
    };
};

/// Chooses F<true> if operand `i` is in memory, otherwise F<false>, and in it the template At for the operand's own
/// size.
template <template <bool> class F> Exec by_place(const Insn &insn, unsigned i = 0) {
    return insn.is_mem(i) ? by_size<F<true>::template At>(insn.bytes(i))
                          : by_size<F<false>::template At>(insn.bytes(i));
}

} // namespace moscope::x86
