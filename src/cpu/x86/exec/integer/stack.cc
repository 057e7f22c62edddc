// SPDX-License-Identifier: BSD-3-Clause
// PUSH and POP of general registers, memory and immediates, PUSHA, POPA, ENTER, LEAVE. Segment registers are in
// exec/system/segment.cc, PUSHF and POPF in flags.cc.
#include "cpu/x86/exec/integer/stack.hh"
#include "cpu/x86/decode/lower.hh"
#include "cpu/x86/decode/lower_stack.hh"

namespace moscope::x86 {
namespace {

template <class T> struct Push {
    static const Op *run(Core &c, const Op *op) {
        T x;
        if (op->mem) {
            Addr a;
            if (!address(c, op, sizeof(T), false, a) || !load<T>(c, a, x))
                return c.fault_at(op);
        } else
            x = static_cast<T>(op->imm);
        return push<T>(c, x) ? op + 1 : c.fault_at(op);
    }
};
template <class T> struct PushReg {
    static const Op *run(Core &c, const Op *op) { return push<T>(c, reg<T>(c, op->dst)) ? op + 1 : c.fault_at(op); }
};
const Op *push64(Core &c, const Op *op) {
    const std::uint64_t sp = c.r[rsp] - 8;
    if (!store<std::uint64_t>(c, sp, reg<std::uint64_t>(c, op->dst)))
        return c.fault_at(op);
    c.r[rsp] = sp;
    return op + 1;
}

Exec lower_push(const Insn &i, Op &op) {
    if (i.is_reg(0) && ZydisRegisterGetClass(i.reg(0)) == ZYDIS_REGCLASS_SEGMENT)
        return lower_push_segment(i, op);
    if (!i.is_reg(0))
        return by_size<Push>(op.width);
    return op.width == 8 ? push64 : by_size<PushReg>(op.width);
}

template <class T> struct Pop {
    static const Op *run(Core &c, const Op *op) {
        T x;
        if (!op->mem) {
            if (!pop<T>(c, x))
                return c.fault_at(op);
            set_reg<T>(c, op->dst, x);
            return op + 1;
        }
        // The address is computed with the stack pointer already moved; a fault puts it back.
        const std::uint64_t sp = c.r[rsp];
        Addr a;
        if (!peek_stack<T>(c, x))
            return c.fault_at(op);
        drop_stack(c, sizeof(T));
        if (!address(c, op, sizeof(T), true, a) || !store<T>(c, a, x)) {
            c.r[rsp] = sp;
            return c.fault_at(op);
        }
        return op + 1;
    }
};
const Op *pop64(Core &c, const Op *op) {
    std::uint64_t x;
    if (!load<std::uint64_t>(c, c.r[rsp], x))
        return c.fault_at(op);
    c.r[rsp] += 8;
    c.r[op->dst / 8] = x;
    return op + 1;
}

Exec lower_pop(const Insn &i, Op &op) {
    if (i.is_reg(0) && ZydisRegisterGetClass(i.reg(0)) == ZYDIS_REGCLASS_SEGMENT)
        return lower_pop_segment(i, op);
    return op.width == 8 && i.is_reg(0) ? pop64 : by_size<Pop>(op.width);
}

template <class T> struct PushAll {
    static const Op *run(Core &c, const Op *op) {
        const std::uint64_t sp = c.r[rsp];
        for (unsigned k = 0; k < 8; ++k)
            if (!push<T>(c, static_cast<T>(k == rsp ? sp : c.r[k]))) {
                c.r[rsp] = sp;
                return c.fault_at(op);
            }
        return op + 1;
    }
};
template <class T> struct PopAll {
    static const Op *run(Core &c, const Op *op) {
        T x[8];
        for (unsigned k = 0; k < 8; ++k)
            if (!peek_stack<T>(c, x[k], k * sizeof(T)))
                return c.fault_at(op);
        drop_stack(c, 8 * sizeof(T));
        for (unsigned k = 0; k < 8; ++k)
            if (7 - k != rsp)
                set_reg<T>(c, (7 - k) * 8, x[k]);
        return op + 1;
    }
};

template <class T> struct Leave {
    static const Op *run(Core &c, const Op *op) {
        const std::uint64_t sp = c.r[rsp];
        set_sp(c, c.r[rbp]);
        T x;
        if (!pop<T>(c, x)) {
            c.r[rsp] = sp;
            return c.fault_at(op);
        }
        set_reg<T>(c, rbp * 8, x);
        return op + 1;
    }
};

template <class T> struct Enter {
    static const Op *run(Core &c, const Op *op) {
        const std::uint64_t sp = c.r[rsp], bp = c.r[rbp];
        const unsigned level = static_cast<unsigned>(op->disp) & 31;
        const auto give_up = [&] {
            c.r[rsp] = sp;
            return c.fault_at(op);
        };
        if (!push<T>(c, static_cast<T>(bp)))
            return give_up();
        const std::uint64_t frame = c.r[rsp];
        for (unsigned k = 1; k < level; ++k) {
            Addr a;
            T x;
            if (!stack_address(c, (bp - k * sizeof(T)) & stack_mask(c), sizeof(T), false, a) || !load<T>(c, a, x) ||
                !push<T>(c, x))
                return give_up();
        }
        if (level && !push<T>(c, static_cast<T>(frame)))
            return give_up();
        set_sp(c, c.r[rsp] - (op->imm & 0xffff));
        // The new stack top must be writable, as the manual's last step checks.
        Addr a;
        T x;
        if (!stack_address(c, c.r[rsp] & stack_mask(c), sizeof(T), true, a) || !load<T>(c, a, x) || !store<T>(c, a, x))
            return give_up();
        set_reg<T>(c, rbp * 8, static_cast<T>(frame));
        return op + 1;
    }
};

const Form kForms[] = {
    {ZYDIS_MNEMONIC_PUSH, lower_push},
    {ZYDIS_MNEMONIC_POP, lower_pop},
    {{ZYDIS_MNEMONIC_PUSHA, ZYDIS_MNEMONIC_PUSHAD}, lower_sized<PushAll>},
    {{ZYDIS_MNEMONIC_POPA, ZYDIS_MNEMONIC_POPAD}, lower_sized<PopAll>},
    {ZYDIS_MNEMONIC_LEAVE, lower_sized<Leave>},
    {ZYDIS_MNEMONIC_ENTER, lower_sized<Enter>},
};
const Group kGroup("stack", kForms);

} // namespace
} // namespace moscope::x86
