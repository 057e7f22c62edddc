// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/timed/op_pipes.hh"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "cpu/x86/timed/op_timing.hh"

namespace moscope::x86 {

RegMask mask_of(ZydisRegister, ZydisMachineMode); // op_timing.cc

namespace {

constexpr unsigned kFlagsBit = 16;
constexpr ZydisAccessedFlagsMask kArithmeticFlags =
    ZYDIS_CPUFLAG_CF | ZYDIS_CPUFLAG_PF | ZYDIS_CPUFLAG_AF | ZYDIS_CPUFLAG_ZF | ZYDIS_CPUFLAG_SF | ZYDIS_CPUFLAG_OF;
constexpr std::uint8_t kMultiplier = Pipe::alu0, kBitCounter = Pipe::alu2;

/// pipes = 0: any of the three integer pipes, or any of FADD, FMUL and FMISC. With three of a kind, one is free for all
/// that is dispatched.
OpPipes of(std::uint8_t latency, std::uint8_t pipes, std::uint8_t busy = 1, std::uint8_t slots = 1) {
    return {.latency = latency, .pipes = pipes, .busy = busy, .slots = slots};
}

OpPipes multiply(const ZydisDecodedInstruction &z) {
    const bool one_result = z.operand_count_visible > 1;
    switch (z.operand_width) {
    case 64: return one_result ? of(4, kMultiplier, 2) : of(5, kMultiplier, 2, 2);
    case 32: return of(3, kMultiplier, 1, one_result ? 1 : 2);
    case 16: return z.operand_count_visible == 3 ? of(4, kMultiplier, 1, 2) : of(3, kMultiplier, 1, one_result ? 1 : 3);
    default: return of(3, kMultiplier);
    }
}

/// A scale, or base, index and displacement together, add a second cycle (AMD 25112, appendix C, note 4).
OpPipes lea(const ZydisDecodedOperand &m) {
    const bool three =
        m.mem.base != ZYDIS_REGISTER_NONE && m.mem.index != ZYDIS_REGISTER_NONE && m.mem.disp.has_displacement;
    return of(m.mem.scale > 1 || three ? 2 : 1, 0);
}

/// What an integer instruction needs, without its memory accesses.
OpPipes integer(const ZydisDecodedInstruction &z, const ZydisDecodedOperand *operands) {
    switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_IMUL:
    case ZYDIS_MNEMONIC_MUL: return multiply(z);
    case ZYDIS_MNEMONIC_DIV:
    case ZYDIS_MNEMONIC_IDIV: {
        const std::uint8_t n = division_cycles(z.operand_width);
        return of(n, 0, n);
    }
    case ZYDIS_MNEMONIC_LZCNT:
    case ZYDIS_MNEMONIC_POPCNT: return of(2, kBitCounter);
    case ZYDIS_MNEMONIC_BSF:
    case ZYDIS_MNEMONIC_BSR: return of(4, 0, 1, 9); // microcode: three cycles of dispatch
    case ZYDIS_MNEMONIC_SHLD:
    case ZYDIS_MNEMONIC_SHRD: return of(3, 0, 1, 9);
    case ZYDIS_MNEMONIC_BTC:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTS: return of(2, 0, 1, 3);
    case ZYDIS_MNEMONIC_XCHG: return of(2, 0, 1, 3);
    case ZYDIS_MNEMONIC_LAHF: return of(3, 0, 1, 6);
    case ZYDIS_MNEMONIC_LEA: return lea(operands[1]);
    case ZYDIS_MNEMONIC_CALL:
    case ZYDIS_MNEMONIC_RET:
    case ZYDIS_MNEMONIC_LEAVE: return of(1, 0, 1, 2);
    case ZYDIS_MNEMONIC_NOP: return of(1, 0);
    default: return of(1, 0);
    }
}

bool is_register(const ZydisDecodedOperand &o, ZydisRegisterClass c) {
    return o.type == ZYDIS_OPERAND_TYPE_REGISTER && ZydisRegisterGetClass(o.reg.value) == c;
}

/// Moves between XMM registers, and between these and general ones.
OpPipes sse_move(const ZydisDecodedOperand *operands) {
    if (is_register(operands[0], ZYDIS_REGCLASS_GPR32) || is_register(operands[0], ZYDIS_REGCLASS_GPR64))
        return of(3, Pipe::fadd);
    if (is_register(operands[1], ZYDIS_REGCLASS_GPR32) || is_register(operands[1], ZYDIS_REGCLASS_GPR64))
        return of(6, Pipe::fmisc, 3, 2);
    return of(2, 0);
}

/// Instructions that need the same.
struct Group {
    OpPipes needs;
    std::vector<ZydisMnemonic> members;
};

const std::vector<Group> &media_groups() {
    static const std::vector<Group> all{
        {of(4, Pipe::fadd),
         {ZYDIS_MNEMONIC_ADDPS, ZYDIS_MNEMONIC_ADDPD, ZYDIS_MNEMONIC_ADDSS, ZYDIS_MNEMONIC_ADDSD, ZYDIS_MNEMONIC_SUBPS,
          ZYDIS_MNEMONIC_SUBPD, ZYDIS_MNEMONIC_SUBSS, ZYDIS_MNEMONIC_SUBSD, ZYDIS_MNEMONIC_ADDSUBPS,
          ZYDIS_MNEMONIC_ADDSUBPD, ZYDIS_MNEMONIC_HADDPS, ZYDIS_MNEMONIC_HADDPD, ZYDIS_MNEMONIC_HSUBPS,
          ZYDIS_MNEMONIC_HSUBPD}},
        {of(2, Pipe::fadd),
         {ZYDIS_MNEMONIC_MAXPS, ZYDIS_MNEMONIC_MAXPD, ZYDIS_MNEMONIC_MAXSS, ZYDIS_MNEMONIC_MAXSD, ZYDIS_MNEMONIC_MINPS,
          ZYDIS_MNEMONIC_MINPD, ZYDIS_MNEMONIC_MINSS, ZYDIS_MNEMONIC_MINSD, ZYDIS_MNEMONIC_CMPPS, ZYDIS_MNEMONIC_CMPPD,
          ZYDIS_MNEMONIC_CMPSS, ZYDIS_MNEMONIC_CMPSD}},
        {of(3, Pipe::fadd),
         {ZYDIS_MNEMONIC_COMISS, ZYDIS_MNEMONIC_COMISD, ZYDIS_MNEMONIC_UCOMISS, ZYDIS_MNEMONIC_UCOMISD,
          ZYDIS_MNEMONIC_PSADBW, ZYDIS_MNEMONIC_PMOVMSKB, ZYDIS_MNEMONIC_MOVMSKPS, ZYDIS_MNEMONIC_MOVMSKPD}},
        {of(4, Pipe::fmul), {ZYDIS_MNEMONIC_MULPS, ZYDIS_MNEMONIC_MULPD, ZYDIS_MNEMONIC_MULSS, ZYDIS_MNEMONIC_MULSD}},
        {of(3, Pipe::fmul),
         {ZYDIS_MNEMONIC_RCPPS, ZYDIS_MNEMONIC_RCPSS, ZYDIS_MNEMONIC_RSQRTPS, ZYDIS_MNEMONIC_RSQRTSS,
          ZYDIS_MNEMONIC_PMULLW, ZYDIS_MNEMONIC_PMULHW, ZYDIS_MNEMONIC_PMULHUW, ZYDIS_MNEMONIC_PMULUDQ,
          ZYDIS_MNEMONIC_PMADDWD}},
        {of(16, 0, 13), {ZYDIS_MNEMONIC_DIVSS}},
        {of(18, 0, 15), {ZYDIS_MNEMONIC_DIVPS}},
        {of(20, 0, 17), {ZYDIS_MNEMONIC_DIVSD, ZYDIS_MNEMONIC_DIVPD}},
        {of(19, 0, 16), {ZYDIS_MNEMONIC_SQRTSS}},
        {of(21, 0, 18), {ZYDIS_MNEMONIC_SQRTPS}},
        {of(27, 0, 24), {ZYDIS_MNEMONIC_SQRTSD, ZYDIS_MNEMONIC_SQRTPD}},
        {of(3, Pipe::add_or_mul),
         {ZYDIS_MNEMONIC_SHUFPS, ZYDIS_MNEMONIC_SHUFPD, ZYDIS_MNEMONIC_PSHUFD, ZYDIS_MNEMONIC_UNPCKLPS,
          ZYDIS_MNEMONIC_UNPCKHPS, ZYDIS_MNEMONIC_UNPCKLPD, ZYDIS_MNEMONIC_UNPCKHPD, ZYDIS_MNEMONIC_PUNPCKLBW,
          ZYDIS_MNEMONIC_PUNPCKLWD, ZYDIS_MNEMONIC_PUNPCKLDQ, ZYDIS_MNEMONIC_PUNPCKLQDQ, ZYDIS_MNEMONIC_PUNPCKHBW,
          ZYDIS_MNEMONIC_PUNPCKHWD, ZYDIS_MNEMONIC_PUNPCKHDQ, ZYDIS_MNEMONIC_PUNPCKHQDQ}},
    };
    return all;
}

OpPipes media(ZydisMnemonic m) {
    for (const Group &g : media_groups())
        if (std::find(g.members.begin(), g.members.end(), m) != g.members.end())
            return g.needs;
    return of(2, Pipe::add_or_mul); // sums, comparisons, logic and shifts of integers
}

OpPipes conversion(const ZydisDecodedInstruction &z) {
    switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_CVTSI2SS:
    case ZYDIS_MNEMONIC_CVTSI2SD: return of(14, Pipe::fmisc, 3, 3);
    case ZYDIS_MNEMONIC_CVTSS2SI:
    case ZYDIS_MNEMONIC_CVTSD2SI:
    case ZYDIS_MNEMONIC_CVTTSS2SI:
    case ZYDIS_MNEMONIC_CVTTSD2SI: return of(8, Pipe::fmisc, 1, 2);
    case ZYDIS_MNEMONIC_CVTSS2SD: return of(7, Pipe::fmisc, 2, 3);
    case ZYDIS_MNEMONIC_CVTSD2SS: return of(8, Pipe::fmisc, 2, 3);
    case ZYDIS_MNEMONIC_CVTPD2PS:
    case ZYDIS_MNEMONIC_CVTPD2DQ:
    case ZYDIS_MNEMONIC_CVTTPD2DQ: return of(7, Pipe::fmisc, 1, 2);
    case ZYDIS_MNEMONIC_CVTPS2PD: return of(2, Pipe::fmisc);
    case ZYDIS_MNEMONIC_CVTDQ2PS:
    case ZYDIS_MNEMONIC_CVTPS2DQ:
    case ZYDIS_MNEMONIC_CVTTPS2DQ:
    case ZYDIS_MNEMONIC_CVTDQ2PD: return of(4, Pipe::fmisc);
    default: return of(1, 0); // of general registers: CBW and the like
    }
}

OpPipes x87(const ZydisDecodedInstruction &z) {
    switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_FADD:
    case ZYDIS_MNEMONIC_FADDP:
    case ZYDIS_MNEMONIC_FSUB:
    case ZYDIS_MNEMONIC_FSUBP:
    case ZYDIS_MNEMONIC_FSUBR:
    case ZYDIS_MNEMONIC_FSUBRP: return of(4, Pipe::fadd);
    case ZYDIS_MNEMONIC_FDIV:
    case ZYDIS_MNEMONIC_FDIVP:
    case ZYDIS_MNEMONIC_FDIVR:
    case ZYDIS_MNEMONIC_FDIVRP: return of(31, 0, 24);
    case ZYDIS_MNEMONIC_FSQRT: return of(35, 0, 32);
    case ZYDIS_MNEMONIC_FABS:
    case ZYDIS_MNEMONIC_FCHS: return of(2, Pipe::fmul);
    default: return of(4, Pipe::fmul);
    }
}

bool touches_xmm(const ZydisDecodedInstruction &z, const ZydisDecodedOperand *operands) {
    for (unsigned i = 0; i < z.operand_count; ++i)
        if (is_register(operands[i], ZYDIS_REGCLASS_XMM))
            return true;
    return false;
}

OpPipes execution(const ZydisDecodedInstruction &z, const ZydisDecodedOperand *operands) {
    switch (z.meta.category) {
    case ZYDIS_CATEGORY_X87_ALU: return x87(z);
    case ZYDIS_CATEGORY_MMX:
    case ZYDIS_CATEGORY_SSE:
    case ZYDIS_CATEGORY_LOGICAL_FP:
        return z.mnemonic == ZYDIS_MNEMONIC_POPCNT ? integer(z, operands) : media(z.mnemonic);
    case ZYDIS_CATEGORY_CONVERT: return conversion(z);
    case ZYDIS_CATEGORY_LOGICAL: return touches_xmm(z, operands) ? of(2, Pipe::add_or_mul) : integer(z, operands);
    case ZYDIS_CATEGORY_DATAXFER: return touches_xmm(z, operands) ? sse_move(operands) : integer(z, operands);
    default: return integer(z, operands);
    }
}

bool clears_its_register(const ZydisDecodedInstruction &z, const ZydisDecodedOperand *operands) {
    switch (z.mnemonic) {
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_SUB:
        if (z.operand_width < 32)
            return false;
        break;
    case ZYDIS_MNEMONIC_PXOR:
    case ZYDIS_MNEMONIC_XORPS:
    case ZYDIS_MNEMONIC_XORPD: break;
    default: return false;
    }
    return operands[0].type == ZYDIS_OPERAND_TYPE_REGISTER && operands[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
           operands[0].reg.value == operands[1].reg.value;
}

/// The arithmetic flags count as one register. The hardware renames CF and OF apart from the others, so INC and DEC,
/// which keep CF, and shifts by CL, which may keep all, wait for no earlier flags.
void add_dataflow(OpPipes &p, const ZydisDecodedInstruction &z, const ZydisDecodedOperand *operands,
                  const OpTiming &t) {
    constexpr RegMask flags = RegMask{1} << kFlagsBit;
    p.sources = clears_its_register(z, operands)         ? 0
                : z.meta.category == ZYDIS_CATEGORY_CMOV ? t.reads | t.writes // it may leave the register as it was
                                                         : t.reads;
    p.writes = t.writes;
    for (unsigned i = 0; i < z.operand_count; ++i) // the rest of the register stays
        if ((operands[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
            (is_register(operands[i], ZYDIS_REGCLASS_GPR8) || is_register(operands[i], ZYDIS_REGCLASS_GPR16)))
            p.sources |= mask_of(operands[i].reg.value, z.machine_mode);
    if (!z.cpu_flags)
        return;
    const ZydisAccessedFlags &f = *z.cpu_flags;
    if (f.tested & kArithmeticFlags)
        p.sources |= flags;
    if ((f.modified | f.set_0 | f.set_1 | f.undefined) & kArithmeticFlags)
        p.writes |= flags;
}

/// Nothing is executed: the value is the one loaded, or goes to the store buffer.
bool only_moves(ZydisMnemonic m) {
    switch (m) {
    case ZYDIS_MNEMONIC_MOV:
    case ZYDIS_MNEMONIC_PUSH:
    case ZYDIS_MNEMONIC_POP:
    case ZYDIS_MNEMONIC_MOVD:
    case ZYDIS_MNEMONIC_MOVQ:
    case ZYDIS_MNEMONIC_MOVSS:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVAPS:
    case ZYDIS_MNEMONIC_MOVAPD:
    case ZYDIS_MNEMONIC_MOVUPS:
    case ZYDIS_MNEMONIC_MOVUPD:
    case ZYDIS_MNEMONIC_MOVDQA:
    case ZYDIS_MNEMONIC_MOVDQU:
    case ZYDIS_MNEMONIC_LDDQU: return true;
    default: return false;
    }
}

/// The numbers of the bits of `mask`, in `numbers`. False: there is no room for all.
template <std::size_t kRoom> bool list(RegMask mask, std::uint8_t (&numbers)[kRoom]) {
    if (std::popcount(mask) > static_cast<int>(kRoom))
        return false;
    for (std::size_t i = 0; mask; mask &= mask - 1)
        numbers[i++] = static_cast<std::uint8_t>(std::countr_zero(mask));
    return true;
}

void note_form(OpPipes &p, const OpTiming &t) {
    if (t.kind == OpKind::other || t.unit != OpUnit::none || p.pipes || p.loads + p.stores > 1)
        return;
    OpPipes listed = p;
    if (!list(p.sources & ~RegMask{t.address}, listed.source) || !list(t.address, listed.address) ||
        !list(p.writes, listed.result))
        return;
    p = listed;
    p.form = p.loads ? OpPipes::Form::load : p.stores ? OpPipes::Form::store : OpPipes::Form::simple;
    p.only_loads = t.reads == t.address;
}

} // namespace

OpPipes pipes_of(const ZydisDecodedInstruction &z, const ZydisDecodedOperand *operands, const OpTiming &t) {
    OpPipes p = execution(z, operands);
    add_dataflow(p, z, operands, t);
    if (z.meta.category == ZYDIS_CATEGORY_PREFETCH)
        return p;
    if (z.mnemonic == ZYDIS_MNEMONIC_LEA || z.mnemonic == ZYDIS_MNEMONIC_NOP) { // which access no memory
        note_form(p, t);
        return p;
    }
    for (unsigned i = 0; i < z.operand_count; ++i) {
        const ZydisDecodedOperand &o = operands[i];
        if (o.type != ZYDIS_OPERAND_TYPE_MEMORY)
            continue;
        // Stores are of 64 bits: one of 128 is two macro-operations.
        const std::uint8_t halves = o.size > 64 ? 2 : 1;
        if (o.actions & ZYDIS_OPERAND_ACTION_MASK_READ)
            ++p.loads;
        if (o.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
            p.stores = static_cast<std::uint8_t>(p.stores + halves);
            p.slots = std::max(p.slots, halves);
        }
    }
    if ((p.loads || p.stores) && only_moves(z.mnemonic)) {
        p.latency = 1;
        p.pipes = p.stores && touches_xmm(z, operands) ? Pipe::fmisc : 0;
        p.busy = 1;
        p.slots = std::max<std::uint8_t>(p.stores, 1);
    } else if (p.loads && (z.mnemonic == ZYDIS_MNEMONIC_MOVZX || z.mnemonic == ZYDIS_MNEMONIC_MOVSX ||
                           z.mnemonic == ZYDIS_MNEMONIC_MOVSXD))
        p.latency = 2; // a cycle more than a load of the whole register
    note_form(p, t);
    return p;
}

} // namespace moscope::x86
