// SPDX-License-Identifier: BSD-3-Clause
// MOV between general registers, memory and immediates, MOVNTI, MOVZX MOVSX MOVSXD, LEA, XCHG, CMOVcc, SETcc.
// MOV to and from segment, control and debug registers is in exec_system.cc, which takes those forms.
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/decode/lower_mov.hh"
#include "cpu/x86/exec/integer/alu.hh"
#include "cpu/x86/mmu/memory.hh"

namespace moscope::x86 {

std::uint64_t effective_offset(const Core &c, const Op *op) {
    const std::uint64_t base = reg<std::uint64_t>(c, op->base), index = reg<std::uint64_t>(c, op->index);
    std::uint64_t a = base + (index << op->scale) + static_cast<std::int64_t>(op->disp);
    if (op->legacy && op->base == reg_block * 8)
        a += static_cast<std::uint64_t>(op->start) + op->length;
    return wrap_offset(op, a);
}

namespace {

template <class T> struct Mov {
    static const Op *reg_reg(Core &c, const Op *op) {
        set_reg<T>(c, op->dst, reg<T>(c, op->src));
        return op + 1;
    }
    static const Op *reg_imm(Core &c, const Op *op) {
        set_reg<T>(c, op->dst, static_cast<T>(op->imm));
        return op + 1;
    }
    static const Op *reg_mem(Core &c, const Op *op) {
        Addr a;
        T x;
        if (!address(c, op, sizeof(T), false, a) || !load<T>(c, a, x))
            return c.fault_at(op);
        set_reg<T>(c, op->dst, x);
        return op + 1;
    }
    static const Op *mem_reg(Core &c, const Op *op) {
        Addr a;
        if (!address(c, op, sizeof(T), true, a) || !store<T>(c, a, reg<T>(c, op->src)))
            return c.fault_at(op);
        return op + 1;
    }
    static const Op *mem_imm(Core &c, const Op *op) {
        Addr a;
        if (!address(c, op, sizeof(T), true, a) || !store<T>(c, a, static_cast<T>(op->imm)))
            return c.fault_at(op);
        return op + 1;
    }
    // The accumulator and a 64-bit offset in the instruction.
    static const Op *far_load(Core &c, const Op *op) {
        T x;
        if (!load<T>(c, op->imm + c.seg[op->seg].base, x))
            return c.fault_at(op);
        set_reg<T>(c, op->dst, x);
        return op + 1;
    }
    static const Op *far_store(Core &c, const Op *op) {
        if (!store<T>(c, op->imm + c.seg[op->seg].base, reg<T>(c, op->src)))
            return c.fault_at(op);
        return op + 1;
    }

    static Exec choose(const Insn &i) {
        const auto far = [&](unsigned k) {
            const auto &m = i.op[k].mem;
            return i.is_mem(k) && m.base == ZYDIS_REGISTER_NONE && m.index == ZYDIS_REGISTER_NONE &&
                   m.disp.has_displacement && m.disp.value != static_cast<std::int32_t>(m.disp.value);
        };
        if (far(0))
            return far_store;
        if (far(1))
            return far_load;
        if (i.is_reg(0))
            return i.is_reg(1) ? reg_reg : i.is_mem(1) ? reg_mem : reg_imm;
        return i.is_reg(1) ? mem_reg : mem_imm;
    }
};

Exec lower_mov(const Insn &i, Op &op) {
    op.non_temporal = i.z.mnemonic == ZYDIS_MNEMONIC_MOVNTI;
    for (unsigned k = 0; k < 2; ++k)
        if (i.is_reg(k)) {
            const ZydisRegisterClass cls = ZydisRegisterGetClass(i.reg(k));
            if (cls == ZYDIS_REGCLASS_SEGMENT)
                return lower_mov_segment(i, op);
            if (cls == ZYDIS_REGCLASS_CONTROL || cls == ZYDIS_REGCLASS_DEBUG)
                return lower_mov_control(i, op);
        }
    switch (i.bytes(0)) {
    case 1: return Mov<std::uint8_t>::choose(i);
    case 2: return Mov<std::uint16_t>::choose(i);
    case 4: return Mov<std::uint32_t>::choose(i);
    case 8: return Mov<std::uint64_t>::choose(i);
    }
    return nullptr;
}

/// From S to T, T wider; the extension follows from S's sign.
template <class S, class T> struct Extend {
    static const Op *from_reg(Core &c, const Op *op) {
        set_reg<T>(c, op->dst, static_cast<T>(reg<S>(c, op->src)));
        return op + 1;
    }
    static const Op *from_mem(Core &c, const Op *op) {
        Addr a;
        S x;
        if (!address(c, op, sizeof(S), false, a) || !load<S>(c, a, x))
            return c.fault_at(op);
        set_reg<T>(c, op->dst, static_cast<T>(x));
        return op + 1;
    }
    static Exec choose(const Insn &i) { return i.is_reg(1) ? from_reg : from_mem; }
};

template <class S> Exec extend_from(const Insn &i) {
    switch (i.bytes(0)) {
    case 2: return Extend<S, std::uint16_t>::choose(i);
    case 4: return Extend<S, std::uint32_t>::choose(i);
    case 8: return Extend<S, std::uint64_t>::choose(i);
    }
    return nullptr;
}

template <bool sign> Exec lower_extend(const Insn &i, Op &) {
    if (i.z.mnemonic == ZYDIS_MNEMONIC_MOVSXD && i.bytes(0) == 2) // nothing to extend, and no more is read
        return extend_from<std::int16_t>(i);
    using U8 = std::conditional_t<sign, std::int8_t, std::uint8_t>;
    using U16 = std::conditional_t<sign, std::int16_t, std::uint16_t>;
    using U32 = std::conditional_t<sign, std::int32_t, std::uint32_t>;
    switch (i.bytes(1)) {
    case 1: return extend_from<U8>(i);
    case 2: return extend_from<U16>(i);
    case 4: return extend_from<U32>(i);
    }
    return nullptr;
}

template <class T> struct Lea {
    static const Op *run(Core &c, const Op *op) {
        set_reg<T>(c, op->dst, static_cast<T>(effective_offset(c, op)));
        return op + 1;
    }
};
const Op *lea64(Core &c, const Op *op) {
    c.r[op->dst / 8] = reg<std::uint64_t>(c, op->base) + (reg<std::uint64_t>(c, op->index) << op->scale) +
                       static_cast<std::uint64_t>(std::int64_t{op->disp});
    return op + 1;
}

Exec lower_lea(const Insn &i, Op &op) { return i.bytes(0) == 8 && !op.legacy ? lea64 : by_size<Lea>(i.bytes(0)); }

template <class T> struct Xchg {
    static const Op *reg_reg(Core &c, const Op *op) {
        const T a = reg<T>(c, op->dst), b = reg<T>(c, op->src);
        set_reg<T>(c, op->dst, b);
        set_reg<T>(c, op->src, a);
        return op + 1;
    }
    static const Op *mem_reg(Core &c, const Op *op) {
        Addr a;
        T old{};
        const T x = reg<T>(c, op->src);
        if (!address(c, op, sizeof(T), true, a) || !modify<T>(c, a, true, [&](T v) {
                old = v;
                return x;
            }))
            return c.fault_at(op);
        set_reg<T>(c, op->src, old);
        return op + 1;
    }
    static const Op *run(Core &c, const Op *op) { return op->mem ? mem_reg(c, op) : reg_reg(c, op); }
};

Exec lower_xchg(const Insn &i, Op &op) {
    if (i.is_mem(1))
        op.src = op.dst;
    return by_size<Xchg>(i.bytes(0));
}

template <unsigned code, class T> struct Cmov {
    static const Op *from_reg(Core &c, const Op *op) {
        // The 32-bit form clears the upper half even if the condition is false.
        set_reg<T>(c, op->dst, alu::condition<code>(c.flags) ? reg<T>(c, op->src) : reg<T>(c, op->dst));
        return op + 1;
    }
    static const Op *from_mem(Core &c, const Op *op) {
        Addr a;
        T x;
        if (!address(c, op, sizeof(T), false, a) || !load<T>(c, a, x))
            return c.fault_at(op);
        set_reg<T>(c, op->dst, alu::condition<code>(c.flags) ? x : reg<T>(c, op->dst));
        return op + 1;
    }
    static Exec choose(const Insn &i) { return i.is_reg(1) ? from_reg : from_mem; }
};

template <unsigned code> Exec lower_cmov(const Insn &i, Op &) {
    switch (i.bytes(0)) {
    case 2: return Cmov<code, std::uint16_t>::choose(i);
    case 4: return Cmov<code, std::uint32_t>::choose(i);
    case 8: return Cmov<code, std::uint64_t>::choose(i);
    }
    return nullptr;
}

template <unsigned code> struct Set {
    static const Op *to_reg(Core &c, const Op *op) {
        set_reg<std::uint8_t>(c, op->dst, alu::condition<code>(c.flags));
        return op + 1;
    }
    static const Op *to_mem(Core &c, const Op *op) {
        Addr a;
        const std::uint8_t x = alu::condition<code>(c.flags);
        if (!address(c, op, 1, true, a) || !store(c, a, x))
            return c.fault_at(op);
        return op + 1;
    }
};
template <unsigned code> Exec lower_set(const Insn &i, Op &) {
    return i.is_reg(0) ? Set<code>::to_reg : Set<code>::to_mem;
}

constexpr Form kForms[] = {
    {ZYDIS_MNEMONIC_MOV, lower_mov},
    {ZYDIS_MNEMONIC_MOVNTI, lower_mov},
    {ZYDIS_MNEMONIC_MOVZX, lower_extend<false>},
    {ZYDIS_MNEMONIC_MOVSX, lower_extend<true>},
    {ZYDIS_MNEMONIC_MOVSXD, lower_extend<true>},
    {ZYDIS_MNEMONIC_LEA, lower_lea},
    {ZYDIS_MNEMONIC_XCHG, lower_xchg},
    {ZYDIS_MNEMONIC_CMOVO, lower_cmov<0>},
    {ZYDIS_MNEMONIC_CMOVNO, lower_cmov<1>},
    {ZYDIS_MNEMONIC_CMOVB, lower_cmov<2>},
    {ZYDIS_MNEMONIC_CMOVNB, lower_cmov<3>},
    {ZYDIS_MNEMONIC_CMOVZ, lower_cmov<4>},
    {ZYDIS_MNEMONIC_CMOVNZ, lower_cmov<5>},
    {ZYDIS_MNEMONIC_CMOVBE, lower_cmov<6>},
    {ZYDIS_MNEMONIC_CMOVNBE, lower_cmov<7>},
    {ZYDIS_MNEMONIC_CMOVS, lower_cmov<8>},
    {ZYDIS_MNEMONIC_CMOVNS, lower_cmov<9>},
    {ZYDIS_MNEMONIC_CMOVP, lower_cmov<10>},
    {ZYDIS_MNEMONIC_CMOVNP, lower_cmov<11>},
    {ZYDIS_MNEMONIC_CMOVL, lower_cmov<12>},
    {ZYDIS_MNEMONIC_CMOVNL, lower_cmov<13>},
    {ZYDIS_MNEMONIC_CMOVLE, lower_cmov<14>},
    {ZYDIS_MNEMONIC_CMOVNLE, lower_cmov<15>},
    {ZYDIS_MNEMONIC_SETO, lower_set<0>},
    {ZYDIS_MNEMONIC_SETNO, lower_set<1>},
    {ZYDIS_MNEMONIC_SETB, lower_set<2>},
    {ZYDIS_MNEMONIC_SETNB, lower_set<3>},
    {ZYDIS_MNEMONIC_SETZ, lower_set<4>},
    {ZYDIS_MNEMONIC_SETNZ, lower_set<5>},
    {ZYDIS_MNEMONIC_SETBE, lower_set<6>},
    {ZYDIS_MNEMONIC_SETNBE, lower_set<7>},
    {ZYDIS_MNEMONIC_SETS, lower_set<8>},
    {ZYDIS_MNEMONIC_SETNS, lower_set<9>},
    {ZYDIS_MNEMONIC_SETP, lower_set<10>},
    {ZYDIS_MNEMONIC_SETNP, lower_set<11>},
    {ZYDIS_MNEMONIC_SETL, lower_set<12>},
    {ZYDIS_MNEMONIC_SETNL, lower_set<13>},
    {ZYDIS_MNEMONIC_SETLE, lower_set<14>},
    {ZYDIS_MNEMONIC_SETNLE, lower_set<15>},
};
const Group kGroup("moves", kForms);

} // namespace
} // namespace moscope::x86
