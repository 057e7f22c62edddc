// SPDX-License-Identifier: BSD-3-Clause
// ADD ADC SUB SBB AND OR XOR CMP TEST, and INC DEC NEG NOT, in all operand forms.
#include "cpu/x86/exec/integer/alu.hh"
#include "cpu/x86/decode/operands.hh"

namespace moscope::x86 {
namespace {

template <class A, class T> struct Binary {
    static const Op *reg_with(Core &c, const Op *op, T b) {
        const T x = A::template run<T>(c, reg<T>(c, op->dst), b);
        if constexpr (A::writes)
            set_reg<T>(c, op->dst, x);
        return op + 1;
    }
    static const Op *reg_reg(Core &c, const Op *op) { return reg_with(c, op, reg<T>(c, op->src)); }
    static const Op *reg_imm(Core &c, const Op *op) { return reg_with(c, op, static_cast<T>(op->imm)); }
    static const Op *reg_mem(Core &c, const Op *op) {
        T b;
        return read_operand<T, true>(c, op, 0, b) ? reg_with(c, op, b) : c.fault_at(op);
    }
    static const Op *mem_with(Core &c, const Op *op, T b) {
        Addr a;
        if (!address(c, op, sizeof(T), A::writes, a))
            return c.fault_at(op);
        if constexpr (A::writes) {
            if (!modify<T>(c, a, op->lock, [&](T x) { return A::template run<T>(c, x, b); }))
                return c.fault_at(op);
        } else {
            T x;
            if (!load<T>(c, a, x))
                return c.fault_at(op);
            A::template run<T>(c, x, b);
        }
        return op + 1;
    }
    static const Op *mem_reg(Core &c, const Op *op) { return mem_with(c, op, reg<T>(c, op->src)); }
    static const Op *mem_imm(Core &c, const Op *op) { return mem_with(c, op, static_cast<T>(op->imm)); }

    static Exec choose(const Insn &i) {
        if (i.is_reg(0))
            return i.is_reg(1) ? reg_reg : i.is_mem(1) ? reg_mem : reg_imm;
        return i.is_reg(1) ? mem_reg : mem_imm;
    }
};

template <class A> Exec lower_binary(const Insn &i, Op &) {
    return with_size(i.bytes(0), [&]<class T>() { return Binary<A, T>::choose(i); });
}

template <class A> struct Unary {
    template <bool kMemory> struct Place {
        template <class T> struct At {
            static const Op *run(Core &c, const Op *op) {
                return change<T, kMemory>(c, op, [&](T x) { return A::template run<T>(c, x); });
            }
        };
    };
};
template <class A> Exec lower_unary(const Insn &i, Op &) { return by_place<Unary<A>::template Place>(i); }

const Form kForms[] = {
    {ZYDIS_MNEMONIC_ADD, lower_binary<alu::Add>},   {ZYDIS_MNEMONIC_ADC, lower_binary<alu::Adc>},
    {ZYDIS_MNEMONIC_SUB, lower_binary<alu::Sub>},   {ZYDIS_MNEMONIC_SBB, lower_binary<alu::Sbb>},
    {ZYDIS_MNEMONIC_AND, lower_binary<alu::And>},   {ZYDIS_MNEMONIC_OR, lower_binary<alu::Or>},
    {ZYDIS_MNEMONIC_XOR, lower_binary<alu::Xor>},   {ZYDIS_MNEMONIC_CMP, lower_binary<alu::Cmp>},
    {ZYDIS_MNEMONIC_TEST, lower_binary<alu::Test>}, {ZYDIS_MNEMONIC_INC, lower_unary<alu::Inc>},
    {ZYDIS_MNEMONIC_DEC, lower_unary<alu::Dec>},    {ZYDIS_MNEMONIC_NEG, lower_unary<alu::Neg>},
    {ZYDIS_MNEMONIC_NOT, lower_unary<alu::Not>},
};
const Group kGroup("integer arithmetic", kForms);

} // namespace
} // namespace moscope::x86
