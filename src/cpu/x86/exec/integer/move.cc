// SPDX-License-Identifier: BSD-3-Clause
// MOV between general registers, memory and immediates, MOVNTI, MOVZX MOVSX MOVSXD, LEA, XCHG, CMOVcc, SETcc.
// MOV to and from segment, control and debug registers is in cpu/x86/exec/system.
#include "cpu/x86/decode/lower_mov.hh"
#include "cpu/x86/decode/operands.hh"
#include "cpu/x86/exec/integer/alu.hh"

namespace moscope::x86 {

std::uint64_t effective_offset(const Core &c, const Op *op) {
    const std::uint64_t base = reg<std::uint64_t>(c, op->base), index = reg<std::uint64_t>(c, op->index);
    std::uint64_t a = base + (index << op->scale) + static_cast<std::int64_t>(op->disp);
    if (op->legacy && op->base == reg_block * 8)
        a += static_cast<std::uint64_t>(op->start) + op->length;
    return wrap_offset(op, a);
}

namespace {

/// A register or memory operand of type S to a register as T, which is no narrower; S's sign decides the extension.
template <class S, class T, bool kMemory> const Op *move_to(Core &c, const Op *op) {
    S x;
    if (!read_operand<S, kMemory>(c, op, op->src, x))
        return c.fault_at(op);
    set_reg<T>(c, op->dst, static_cast<T>(x));
    return op + 1;
}

/// memory = x.
template <class T> const Op *store_operand(Core &c, const Op *op, T x) {
    Addr a;
    if (!address(c, op, sizeof(T), true, a) || !store<T>(c, a, x))
        return c.fault_at(op);
    return op + 1;
}

template <class T> struct Mov {
    static const Op *reg_imm(Core &c, const Op *op) {
        set_reg<T>(c, op->dst, static_cast<T>(op->imm));
        return op + 1;
    }
    static const Op *mem_reg(Core &c, const Op *op) { return store_operand(c, op, reg<T>(c, op->src)); }
    static const Op *mem_imm(Core &c, const Op *op) { return store_operand(c, op, static_cast<T>(op->imm)); }
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
            return i.is_reg(1) ? move_to<T, T, false> : i.is_mem(1) ? move_to<T, T, true> : reg_imm;
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
    return with_size(i.bytes(0), [&]<class T>() { return Mov<T>::choose(i); });
}

template <class S> Exec extend_from(const Insn &i) {
    return with_size(i.bytes(0),
                     [&]<class T>() -> Exec { return i.is_reg(1) ? move_to<S, T, false> : move_to<S, T, true>; });
}

template <bool sign> Exec lower_extend(const Insn &i, Op &) {
    if (i.z.mnemonic == ZYDIS_MNEMONIC_MOVSXD && i.bytes(0) == 2) // nothing to extend, and no more is read
        return extend_from<std::int16_t>(i);
    return with_size(i.bytes(1),
                     [&]<class S>() { return extend_from<std::conditional_t<sign, std::make_signed_t<S>, S>>(i); });
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

/// CMOVcc: the 32-bit form clears the upper half even if the condition is false.
template <unsigned code> struct Cmov {
    template <class T> static const Op *run(Core &c, const Op *op, T x) {
        set_reg<T>(c, op->dst, alu::condition<code>(c.flags) ? x : reg<T>(c, op->dst));
        return op + 1;
    }
};
template <unsigned code> Exec lower_cmov(const Insn &i, Op &) {
    return by_place<OnOperand<Cmov<code>>::template Place>(i, 1);
}

template <unsigned code> struct Set {
    static const Op *to_reg(Core &c, const Op *op) {
        set_reg<std::uint8_t>(c, op->dst, alu::condition<code>(c.flags));
        return op + 1;
    }
    static const Op *to_mem(Core &c, const Op *op) {
        return store_operand(c, op, static_cast<std::uint8_t>(alu::condition<code>(c.flags)));
    }
};
template <unsigned code> Exec lower_set(const Insn &i, Op &) {
    return i.is_reg(0) ? Set<code>::to_reg : Set<code>::to_mem;
}

const Form kForms[] = {
    {{ZYDIS_MNEMONIC_MOV, ZYDIS_MNEMONIC_MOVNTI}, lower_mov},
    {ZYDIS_MNEMONIC_MOVZX, lower_extend<false>},
    {{ZYDIS_MNEMONIC_MOVSX, ZYDIS_MNEMONIC_MOVSXD}, lower_extend<true>},
    {ZYDIS_MNEMONIC_LEA, lower_lea},
    {ZYDIS_MNEMONIC_XCHG, lower_xchg},
};
const Group kGroup("moves", kForms);
const std::vector<Form> kCmov =
    by_condition({ZYDIS_MNEMONIC_CMOVO, ZYDIS_MNEMONIC_CMOVNO, ZYDIS_MNEMONIC_CMOVB, ZYDIS_MNEMONIC_CMOVNB,
                  ZYDIS_MNEMONIC_CMOVZ, ZYDIS_MNEMONIC_CMOVNZ, ZYDIS_MNEMONIC_CMOVBE, ZYDIS_MNEMONIC_CMOVNBE,
                  ZYDIS_MNEMONIC_CMOVS, ZYDIS_MNEMONIC_CMOVNS, ZYDIS_MNEMONIC_CMOVP, ZYDIS_MNEMONIC_CMOVNP,
                  ZYDIS_MNEMONIC_CMOVL, ZYDIS_MNEMONIC_CMOVNL, ZYDIS_MNEMONIC_CMOVLE, ZYDIS_MNEMONIC_CMOVNLE},
                 []<unsigned code>() { return lower_cmov<code>; });
const Group kCmovGroup("moves", kCmov);
const std::vector<Form> kSet =
    by_condition({ZYDIS_MNEMONIC_SETO, ZYDIS_MNEMONIC_SETNO, ZYDIS_MNEMONIC_SETB, ZYDIS_MNEMONIC_SETNB,
                  ZYDIS_MNEMONIC_SETZ, ZYDIS_MNEMONIC_SETNZ, ZYDIS_MNEMONIC_SETBE, ZYDIS_MNEMONIC_SETNBE,
                  ZYDIS_MNEMONIC_SETS, ZYDIS_MNEMONIC_SETNS, ZYDIS_MNEMONIC_SETP, ZYDIS_MNEMONIC_SETNP,
                  ZYDIS_MNEMONIC_SETL, ZYDIS_MNEMONIC_SETNL, ZYDIS_MNEMONIC_SETLE, ZYDIS_MNEMONIC_SETNLE},
                 []<unsigned code>() { return lower_set<code>; });
const Group kSetGroup("moves", kSet);

} // namespace
} // namespace moscope::x86
