// SPDX-License-Identifier: BSD-3-Clause
// x87 instructions that compute, load and store: arithmetic, comparison, conversion, transcendental functions, stack
// (AMD 26569). They run on the host's unit (x87_host.hh) with the guest's control word, so precision, rounding, stack
// faults, flags and condition codes are a real x87's. Common cases take a shorter path (x87_fast.cc).
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/decode/x87_forms.hh"
#include "cpu/x86/mmu/memory.hh"

namespace moscope::x86 {

using namespace x87;

namespace {

template <unsigned n> using Bytes = std::uint8_t[n];

/// An operand of 2, 4, 8 or 10 bytes; the last is two accesses, on processors too.
bool load_operand(Core &c, const Op *op, unsigned bytes, std::uint8_t *to) {
    switch (bytes) {
    case 2: return load_part(c, op, 0, *reinterpret_cast<Bytes<2> *>(to));
    case 4: return load_part(c, op, 0, *reinterpret_cast<Bytes<4> *>(to));
    case 8: return load_part(c, op, 0, *reinterpret_cast<Bytes<8> *>(to));
    default: return load_operand(c, op, 8, to) && load_part(c, op, 8, *reinterpret_cast<Bytes<2> *>(to + 8));
    }
}
bool store_operand(Core &c, const Op *op, unsigned bytes, const std::uint8_t *from) {
    switch (bytes) {
    case 2: return store_part(c, op, 0, *reinterpret_cast<const Bytes<2> *>(from));
    case 4: return store_part(c, op, 0, *reinterpret_cast<const Bytes<4> *>(from));
    case 8: return store_part(c, op, 0, *reinterpret_cast<const Bytes<8> *>(from));
    default: {
        X87::Reg r;
        std::memcpy(&r.significand, from, 8);
        std::memcpy(&r.sign_exponent, from + 8, 2);
        return store_80_bits(c, op, r);
    }
    }
}

} // namespace

namespace x87 {

bool store_80_bits(Core &c, const Op *op, const X87::Reg &r) {
    Addr first, second;
    if (!address(c, op, 8, true, first))
        return false;
    if (address(c, op, 2, true, second, 8) && first >> 12 != (second + 1) >> 12 &&
        !(may_store(c, first, 8) && may_store(c, second, 2)))
        return false;
    return store(c, first, r.significand) && store_part(c, op, 8, r.sign_exponent);
}

const Op *with_registers(Core &c, const Op *op) {
    if (!ready(c))
        return c.fault_at(op);
    std::uint64_t flags = Flags::fixed;
    run_on_host(c.fpu, unpack(op->imm).code, nullptr, flags);
    remember(c, op, unpack(op->imm).code);
    return op + 1;
}

/// FCMOV and FCOMI: RFLAGS too.
const Op *with_flags(Core &c, const Op *op) {
    if (!ready(c))
        return c.fault_at(op);
    std::uint64_t flags = c.flags.arithmetic() | Flags::fixed;
    run_on_host(c.fpu, unpack(op->imm).code, nullptr, flags);
    c.flags.set_arithmetic(flags);
    remember(c, op, unpack(op->imm).code);
    return op + 1;
}

const Op *with_memory(Core &c, const Op *op) {
    const Packed p = unpack(op->imm);
    std::uint8_t operand[16] = {};
    std::uint64_t flags = Flags::fixed;
    if (!ready(c) || (!p.store && !load_operand(c, op, p.bytes, operand)))
        return c.fault_at(op);
    X87 after = c.fpu;
    run_on_host(after, p.code, operand, flags);
    // An unmasked exception other than an inexact result leaves memory as it is, and its address and rights are not
    // checked.
    constexpr unsigned kInexact = 0x20;
    const unsigned pending = after.status & ~after.control & kFlags;
    if (p.store && !(pending & ~kInexact) && !store_operand(c, op, p.bytes, operand))
        return c.fault_at(op);
    c.fpu = after;
    remember(c, op, p.code, c.seg[op->seg].base + effective_offset(c, op));
    return op + 1;
}

} // namespace x87

namespace {

Exec lower_x87(const Insn &insn, Op &op) {
    Packed p;
    const auto &modrm = insn.z.raw.modrm;
    p.code = {static_cast<std::uint8_t>(insn.z.opcode & 7),
              static_cast<std::uint8_t>(modrm.mod << 6 | modrm.reg << 3 | modrm.rm)};
    for (unsigned i = 0; i < insn.z.operand_count; ++i)
        if (insn.is_mem(i)) {
            p.bytes = static_cast<std::uint8_t>(insn.bytes(i));
            p.store = insn.op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
        }
    op.imm = pack(p);
    if (const Exec fast = fast_x87(p))
        return fast;
    if (op.mem)
        return with_memory;
    switch (insn.z.meta.category) {
    case ZYDIS_CATEGORY_FCMOV: return with_flags;
    default: break;
    }
    switch (insn.z.mnemonic) {
    case ZYDIS_MNEMONIC_FCOMI:
    case ZYDIS_MNEMONIC_FCOMIP:
    case ZYDIS_MNEMONIC_FUCOMI:
    case ZYDIS_MNEMONIC_FUCOMIP: return with_flags;
    default: return with_registers;
    }
}

#define X87(NAME)                                                                                                      \
    { ZYDIS_MNEMONIC_##NAME, lower_x87 }

const Form kForms[] = {
    X87(F2XM1),   X87(FABS),    X87(FADD),    X87(FADDP),    X87(FBLD),    X87(FBSTP),   X87(FCHS),    X87(FCMOVB),
    X87(FCMOVBE), X87(FCMOVE),  X87(FCMOVNB), X87(FCMOVNBE), X87(FCMOVNE), X87(FCMOVNU), X87(FCMOVU),  X87(FCOM),
    X87(FCOMI),   X87(FCOMIP),  X87(FCOMP),   X87(FCOMPP),   X87(FCOS),    X87(FDECSTP), X87(FDIV),    X87(FDIVP),
    X87(FDIVR),   X87(FDIVRP),  X87(FFREE),   X87(FFREEP),   X87(FIADD),   X87(FICOM),   X87(FICOMP),  X87(FIDIV),
    X87(FIDIVR),  X87(FILD),    X87(FIMUL),   X87(FINCSTP),  X87(FIST),    X87(FISTP),   X87(FISTTP),  X87(FISUB),
    X87(FISUBR),  X87(FLD),     X87(FLD1),    X87(FLDL2E),   X87(FLDL2T),  X87(FLDLG2),  X87(FLDLN2),  X87(FLDPI),
    X87(FLDZ),    X87(FMUL),    X87(FMULP),   X87(FNOP),     X87(FPATAN),  X87(FPREM),   X87(FPREM1),  X87(FPTAN),
    X87(FRNDINT), X87(FSCALE),  X87(FSIN),    X87(FSINCOS),  X87(FSQRT),   X87(FST),     X87(FSTP),    X87(FSTPNCE),
    X87(FSUB),    X87(FSUBP),   X87(FSUBR),   X87(FSUBRP),   X87(FTST),    X87(FUCOM),   X87(FUCOMI),  X87(FUCOMIP),
    X87(FUCOMP),  X87(FUCOMPP), X87(FXAM),    X87(FXCH),     X87(FXTRACT), X87(FYL2X),   X87(FYL2XP1),
};
const Group kGroup("x87", kForms);

#undef X87

} // namespace

} // namespace moscope::x86
