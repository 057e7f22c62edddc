// SPDX-License-Identifier: BSD-3-Clause
// Decoded x87 instructions (AMD 26569): the content of Op::imm, the function that serves all of them, and the functions
// for common cases.
#pragma once

#include "cpu/x86/exec/x87/x87.hh"
#include "cpu/x86/exec/x87/x87_host.hh"
#include "cpu/x86/mmu/memory.hh"

namespace moscope::x86::x87 {

struct Packed {
    Code code;
    std::uint8_t bytes = 0; ///< of the memory operand
    bool store = false;
};
inline std::uint64_t pack(const Packed &p) {
    return std::uint64_t{p.code.opcode} | std::uint64_t{p.code.modrm} << 8 | std::uint64_t{p.bytes} << 16 |
           std::uint64_t{p.store} << 24;
}
inline Packed unpack(std::uint64_t x) {
    return {{static_cast<std::uint8_t>(x), static_cast<std::uint8_t>(x >> 8)},
            static_cast<std::uint8_t>(x >> 16),
            (x >> 24 & 1) != 0};
}

/// Records the last instruction that is not a control instruction, for the environment.
inline void remember(Core &c, const Op *op, Code code) {
    c.fpu.opcode = static_cast<std::uint16_t>(code.opcode << 8 | code.modrm);
    c.fpu.instruction = c.address_of(op);
    c.fpu.instruction_cs = c.seg[cs].selector;
}
/// The same with a memory operand, at linear address `a`.
inline void remember(Core &c, const Op *op, Code code, Addr a) {
    remember(c, op, code);
    c.fpu.operand = a - c.seg[op->seg].base;
    c.fpu.operand_ds = c.seg[op->seg == seg_none ? unsigned{ds} : op->seg].selector;
}

// The general functions, by operands: registers, registers and RFLAGS (FCMOV, FCOMI), memory.
const Op *with_registers(Core &, const Op *);
const Op *with_flags(Core &, const Op *);
const Op *with_memory(Core &, const Op *);

/// Stores 80 bits as processors do: two accesses, but none of them if the page of one may not be written. The limit of
/// the segment is checked for each. False: fault.
bool store_80_bits(Core &, const Op *, const X87::Reg &);

/// The function for the common case of an instruction, which passes other cases to those above; null: there is none.
Exec fast_x87(const Packed &);

} // namespace moscope::x86::x87
