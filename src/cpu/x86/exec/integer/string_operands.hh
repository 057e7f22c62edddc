// SPDX-License-Identifier: BSD-3-Clause
// Implicit memory operands, [seg:(R|E)SI], ES:[(R|E)DI] and XLAT's (AMD 24592, section 3.3.6): which segment registers
// apply, and how many bits the pointers and the count of REP have at each address size.
#pragma once

#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/mmu/memory.hh"

namespace moscope::x86 {

/// Fills in seg (of the operand that an override applies to), dst (the Seg of ES:[(R|E)DI]) and legacy.
inline void string_segments(const Insn &insn, Op &op) {
    unsigned chosen = ds;
    switch (insn.z.attributes & ZYDIS_ATTRIB_HAS_SEGMENT) {
    case ZYDIS_ATTRIB_HAS_SEGMENT_CS: chosen = cs; break;
    case ZYDIS_ATTRIB_HAS_SEGMENT_SS: chosen = ss; break;
    case ZYDIS_ATTRIB_HAS_SEGMENT_ES: chosen = es; break;
    case ZYDIS_ATTRIB_HAS_SEGMENT_FS: chosen = fs; break;
    case ZYDIS_ATTRIB_HAS_SEGMENT_GS: chosen = gs; break;
    default: break;
    }
    const bool flat = insn.mode == Mode::code64;
    op.seg = static_cast<std::uint8_t>(flat && chosen != fs && chosen != gs ? seg_none : chosen) & 7;
    op.dst = static_cast<std::uint8_t>(flat ? seg_none : es);
    op.legacy = !flat || op.address_bytes != 8;
    op.mem = 1;
    op.base = op.index = reg_zero * 8;
    op.disp = 0;
}

/// A pointer or count register, cut to the address size.
inline std::uint64_t string_register(const Core &c, const Op *op, unsigned r) {
    return op->address_bytes == 8   ? c.r[r]
           : op->address_bytes == 4 ? static_cast<std::uint32_t>(c.r[r])
                                    : static_cast<std::uint16_t>(c.r[r]);
}
inline void set_string_register(Core &c, const Op *op, unsigned r, std::uint64_t value) {
    if (op->address_bytes == 8)
        c.r[r] = value;
    else if (op->address_bytes == 4)
        set_reg<std::uint32_t>(c, r * 8, static_cast<std::uint32_t>(value));
    else
        set_reg<std::uint16_t>(c, r * 8, static_cast<std::uint16_t>(value));
}

/// Linear address of [segment:register].
inline bool string_address(Core &c, const Op *op, unsigned r, unsigned segment, unsigned size, bool write, Addr &out) {
    if (!op->legacy) {
        out = c.r[r] + c.seg[segment].base;
        return true;
    }
    Op at = *op;
    at.base = static_cast<std::uint8_t>(r * 8);
    at.seg = static_cast<std::uint8_t>(segment) & 7;
    return legacy_address(c, &at, size, write, out);
}

} // namespace moscope::x86
