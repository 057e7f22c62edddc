// SPDX-License-Identifier: BSD-3-Clause
// Decimal adjustments (AMD 24594): DAA, DAS, AAA, AAS, AAM, AAD, and SALC. They do not exist in 64-bit mode, where the
// decoder rejects them.
#include "cpu/x86/decode/operands.hh"

namespace moscope::x86 {
namespace {

std::uint8_t al(const Core &c) { return static_cast<std::uint8_t>(c.r[rax]); }
void set_al(Core &c, unsigned x) { set_reg<std::uint8_t>(c, rax * 8, static_cast<std::uint8_t>(x)); }
void set_ax(Core &c, unsigned x) { set_reg<std::uint16_t>(c, rax * 8, static_cast<std::uint16_t>(x)); }

/// DAA and DAS.
template <bool kAfterAdd> const Op *adjust_packed(Core &c, const Op *op) {
    const unsigned before = al(c);
    const bool carry_before = c.flags.c();
    unsigned x = before;
    bool carry = false, adjust = false;
    if ((before & 15) > 9 || c.flags.a()) {
        x = kAfterAdd ? x + 6 : x - 6;
        carry = carry_before || x > 0xff;
        adjust = true;
    }
    if (before > 0x99 || carry_before) {
        x = kAfterAdd ? x + 0x60 : x - 0x60;
        carry = true;
    }
    set_al(c, x);
    c.flags.set(static_cast<std::uint8_t>(x), carry, false, adjust);
    return op + 1;
}

/// AAA and AAS.
template <bool kAfterAdd> const Op *adjust_unpacked(Core &c, const Op *op) {
    const bool adjust = (al(c) & 15) > 9 || c.flags.a();
    unsigned ax = static_cast<std::uint16_t>(c.r[rax]);
    if (adjust)
        ax = kAfterAdd ? ax + 0x106 : ax - 0x106;
    set_ax(c, ax & 0xff0f);
    c.flags.set(static_cast<std::uint8_t>(ax & 15), adjust, false, adjust);
    return op + 1;
}

const Op *adjust_product(Core &c, const Op *op) { // AAM
    const unsigned base = op->imm & 0xff, x = al(c);
    if (base == 0) {
        c.raise(exc_de);
        return c.fault_at(op);
    }
    set_ax(c, x / base << 8 | x % base);
    c.flags.logic(static_cast<std::uint8_t>(x % base));
    return op + 1;
}

const Op *adjust_dividend(Core &c, const Op *op) { // AAD
    const unsigned base = op->imm & 0xff, ax = static_cast<std::uint16_t>(c.r[rax]);
    const unsigned x = ((ax >> 8) * base + ax) & 0xff;
    set_ax(c, x);
    c.flags.logic(static_cast<std::uint8_t>(x));
    return op + 1;
}

const Op *set_from_carry(Core &c, const Op *op) { // SALC
    set_al(c, c.flags.c() ? 0xff : 0);
    return op + 1;
}

template <Exec F> Exec lower_base(const Insn &insn, Op &op) {
    op.imm = insn.op[0].imm.value.u;
    return F;
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_DAA, adjust_packed<true>},
    {ZYDIS_MNEMONIC_DAS, adjust_packed<false>},
    {ZYDIS_MNEMONIC_AAA, adjust_unpacked<true>},
    {ZYDIS_MNEMONIC_AAS, adjust_unpacked<false>},
    {ZYDIS_MNEMONIC_AAM, lower_base<adjust_product>},
    {ZYDIS_MNEMONIC_AAD, lower_base<adjust_dividend>},
    {ZYDIS_MNEMONIC_SALC, set_from_carry},
};
const Group kGroup("decimal", kForms);

} // namespace
} // namespace moscope::x86
