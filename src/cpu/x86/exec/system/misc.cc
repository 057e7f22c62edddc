// SPDX-License-Identifier: BSD-3-Clause
// Conversions within the accumulator, single flags, table look-up and no operation (AMD 24594).
#include "cpu/x86/decode/operands.hh"
#include "cpu/x86/exec/integer/string_operands.hh"

namespace moscope::x86 {
namespace {

/// CBW, CWDE, CDQE: the accumulator's lower half, extended to T.
template <class From, class T> const Op *extend_accumulator(Core &c, const Op *op) {
    set_reg<T>(c, rax * 8, static_cast<T>(static_cast<std::make_signed_t<From>>(reg<From>(c, rax * 8))));
    return op + 1;
}
/// CWD, CDQ, CQO: its sign in every bit of (R|E)DX.
template <class T> const Op *sign_to_rdx(Core &c, const Op *op) {
    set_reg<T>(c, rdx * 8, static_cast<T>(static_cast<std::make_signed_t<T>>(reg<T>(c, rax * 8)) < 0 ? ~T{0} : T{0}));
    return op + 1;
}

const Op *load_ah(Core &c, const Op *op) {
    const std::uint64_t visible = c.flags.arithmetic() & ~Flags::of;
    set_reg<std::uint8_t>(c, rax * 8 + 1, static_cast<std::uint8_t>(visible | Flags::fixed));
    return op + 1;
}
const Op *store_ah(Core &c, const Op *op) {
    const std::uint64_t low = Flags::sf | Flags::zf | Flags::af | Flags::pf | Flags::cf;
    c.flags.set_arithmetic((c.flags.arithmetic() & ~low) | (c.r[rax] >> 8 & low));
    return op + 1;
}

const Op *complement_carry(Core &c, const Op *op) {
    c.flags.set_carry(!c.flags.c());
    return op + 1;
}
template <bool kTo> const Op *carry_to(Core &c, const Op *op) {
    c.flags.set_carry(kTo);
    return op + 1;
}
template <bool kTo> const Op *direction_to(Core &c, const Op *op) {
    c.flags.system = kTo ? c.flags.system | Flags::df : c.flags.system & ~Flags::df;
    return op + 1;
}

const Op *translate_byte(Core &c, const Op *op) { // XLAT: AL = [(R|E)BX + AL]
    Op at = *op;
    at.base = rbx * 8;
    at.disp = static_cast<std::uint8_t>(c.r[rax]);
    Addr a;
    std::uint8_t x;
    if (!address(c, &at, 1, false, a) || !load(c, a, x))
        return c.fault_at(op);
    set_reg<std::uint8_t>(c, rax * 8, x);
    return op + 1;
}

const Op *nothing(Core &, const Op *op) { return op + 1; }

Exec lower_translate(const Insn &insn, Op &op) {
    op.index = reg_zero * 8;
    string_segments(insn, op);
    return translate_byte;
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_CBW, extend_accumulator<std::uint8_t, std::uint16_t>},
    {ZYDIS_MNEMONIC_CWDE, extend_accumulator<std::uint16_t, std::uint32_t>},
    {ZYDIS_MNEMONIC_CDQE, extend_accumulator<std::uint32_t, std::uint64_t>},
    {ZYDIS_MNEMONIC_CWD, sign_to_rdx<std::uint16_t>},
    {ZYDIS_MNEMONIC_CDQ, sign_to_rdx<std::uint32_t>},
    {ZYDIS_MNEMONIC_CQO, sign_to_rdx<std::uint64_t>},
    {ZYDIS_MNEMONIC_LAHF, load_ah},
    {ZYDIS_MNEMONIC_SAHF, store_ah},
    {ZYDIS_MNEMONIC_CMC, complement_carry},
    {ZYDIS_MNEMONIC_CLC, carry_to<false>},
    {ZYDIS_MNEMONIC_STC, carry_to<true>},
    {ZYDIS_MNEMONIC_CLD, direction_to<false>},
    {ZYDIS_MNEMONIC_STD, direction_to<true>},
    {ZYDIS_MNEMONIC_XLAT, lower_translate},
    {ZYDIS_MNEMONIC_NOP, nothing},
};
const Group kGroup("miscellaneous", kForms);

} // namespace
} // namespace moscope::x86
