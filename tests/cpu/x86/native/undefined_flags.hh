// SPDX-License-Identifier: BSD-3-Clause
// Which flags the manual (AMD 24594, volume 3, the table of flags of each instruction; 26569, volume 5, for x87)
// leaves undefined: the only differences that a comparison of two processors may show.
#pragma once

#include <span>

#include <Zydis/Zydis.h>

#include "cpu/x86/exec/integer/flags.hh"

namespace moscope::x86::native {

struct UndefinedFlags {
    ZydisMnemonic mnemonic;
    std::uint64_t always;         ///< whatever the operands are (a shift by zero leaves all flags alone)
    std::uint64_t unless_one = 0; ///< shifts and rotates by more than one
    std::uint64_t beyond = 0;     ///< shifts by more than the operand has bits
};

inline std::span<const UndefinedFlags> undefined_flags() {
    constexpr auto cf = Flags::cf, pf = Flags::pf, af = Flags::af, zf = Flags::zf, sf = Flags::sf, of = Flags::of;
    static constexpr UndefinedFlags table[] = {
        {ZYDIS_MNEMONIC_AND, af},
        {ZYDIS_MNEMONIC_OR, af},
        {ZYDIS_MNEMONIC_XOR, af},
        {ZYDIS_MNEMONIC_TEST, af},
        {ZYDIS_MNEMONIC_MUL, sf | zf | af | pf},
        {ZYDIS_MNEMONIC_IMUL, sf | zf | af | pf},
        {ZYDIS_MNEMONIC_DIV, of | sf | zf | af | pf | cf},
        {ZYDIS_MNEMONIC_IDIV, of | sf | zf | af | pf | cf},
        {ZYDIS_MNEMONIC_BT, of | sf | af | pf},
        {ZYDIS_MNEMONIC_BTS, of | sf | af | pf},
        {ZYDIS_MNEMONIC_BTR, of | sf | af | pf},
        {ZYDIS_MNEMONIC_BTC, of | sf | af | pf},
        {ZYDIS_MNEMONIC_BSF, of | sf | af | pf | cf},
        {ZYDIS_MNEMONIC_BSR, of | sf | af | pf | cf},
        {ZYDIS_MNEMONIC_LZCNT, of | sf | af | pf},
        {ZYDIS_MNEMONIC_SHL, af, of, cf},
        {ZYDIS_MNEMONIC_SHR, af, of, cf},
        {ZYDIS_MNEMONIC_SAR, af, of, cf},
        {ZYDIS_MNEMONIC_SHLD, af, of},
        {ZYDIS_MNEMONIC_SHRD, af, of},
        {ZYDIS_MNEMONIC_DAA, of},
        {ZYDIS_MNEMONIC_DAS, of},
        {ZYDIS_MNEMONIC_AAA, of | sf | zf | pf},
        {ZYDIS_MNEMONIC_AAS, of | sf | zf | pf},
        {ZYDIS_MNEMONIC_AAM, of | af | cf},
        {ZYDIS_MNEMONIC_AAD, of | af | cf},
        {ZYDIS_MNEMONIC_ROL, 0, of},
        {ZYDIS_MNEMONIC_ROR, 0, of},
        {ZYDIS_MNEMONIC_RCL, 0, of},
        {ZYDIS_MNEMONIC_RCR, 0, of},
    };
    return table;
}

/// The undefined flags of an execution; `count` is a shift's masked count, `bits` its operand's.
inline std::uint64_t undefined_of(ZydisMnemonic m, unsigned count, unsigned bits) {
    for (const UndefinedFlags &u : undefined_flags())
        if (u.mnemonic == m) {
            if (!u.unless_one && !u.beyond)
                return u.always;
            return count == 0 ? 0 : u.always | (count > 1 ? u.unless_one : 0) | (count > bits ? u.beyond : 0);
        }
    return 0;
}

} // namespace moscope::x86::native
