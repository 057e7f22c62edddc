// SPDX-License-Identifier: BSD-3-Clause
// The common case of common x87 instructions: the control word is the one that the host runs with anyway, no register
// that the instruction needs is empty (or, for a load, full), and no exception flag is raised that the guest does not
// have yet. Then only the operands pass through the host's unit, whose stack is empty in between. The host's sticky
// flags are not cleared: if one is set that the guest lacks, the instruction takes the general path, which clears them.
#include "cpu/x86/decode/x87_forms.hh"

namespace moscope::x86::x87 {

namespace {

using Reg = X87::Reg;
constexpr std::uint16_t kHostControl = 0x037f;

bool filled(const X87 &f, unsigned r) { return f.valid >> r & 1; }
unsigned at(const X87 &f, unsigned i) { return (f.top() + i) & 7; }
void pop(X87 &f) {
    f.valid &= static_cast<std::uint8_t>(~(1u << f.top()));
    f.set_top(f.top() + 1);
}
void push(X87 &f, const Reg &r) {
    f.set_top(f.top() - 1);
    f.valid |= static_cast<std::uint8_t>(1u << f.top());
    f.st[f.top()] = r;
}

/// The instruction may try: it waits for nothing and rounds as the host does.
bool may_try(const Core &c) {
    return !(c.cr0 & (cr0::em | cr0::ts)) && !(c.fpu.status & X87::kSummary) && c.fpu.control == kHostControl;
}
/// If the guest has all exception flags of `status` already, takes over its condition code C1. False: nothing has
/// happened.
bool settle(X87 &f, std::uint16_t status) {
    if (status & ~f.status & kFlags)
        return false;
    f.status = static_cast<std::uint16_t>((f.status & ~kC1) | (status & kC1));
    return true;
}

// --- arithmetic: the three bits that choose it in all encodings; the r of "fsubr" takes the operands the other way
// round
enum Operation : unsigned { add = 0, mul = 1, sub = 4, subr = 5, div = 6, divr = 7 };

template <unsigned kOperation> std::uint16_t with(const Reg &top, const Reg &x, Reg &result) {
    std::uint16_t status;
#define RUN(INSTRUCTION)                                                                                               \
    asm volatile("fldt %3\n\tfldt %2\n\t" INSTRUCTION " %%st(1), %%st\n\tfnstsw %0\n\tfstpt %1\n\tfstp %%st(0)"        \
                 : "=a"(status), "=m"(result)                                                                          \
                 : "m"(top), "m"(x))
    if constexpr (kOperation == add)
        RUN("fadd");
    else if constexpr (kOperation == mul)
        RUN("fmul");
    else if constexpr (kOperation == sub)
        RUN("fsub");
    else if constexpr (kOperation == subr)
        RUN("fsubr");
    else if constexpr (kOperation == div)
        RUN("fdiv");
    else
        RUN("fdivr");
#undef RUN
    return status;
}

template <unsigned kOperation, class T> std::uint16_t with(const Reg &top, const T &x, Reg &result) {
    std::uint16_t status;
#define RUN(INSTRUCTION)                                                                                               \
    asm volatile("fldt %2\n\t" INSTRUCTION " %3\n\tfnstsw %0\n\tfstpt %1"                                              \
                 : "=a"(status), "=m"(result)                                                                          \
                 : "m"(top), "m"(x))
#define EITHER(INSTRUCTION)                                                                                            \
    if constexpr (sizeof(T) == 4)                                                                                      \
        RUN(INSTRUCTION "s");                                                                                          \
    else                                                                                                               \
        RUN(INSTRUCTION "l")
    if constexpr (kOperation == add) {
        EITHER("fadd");
    } else if constexpr (kOperation == mul) {
        EITHER("fmul");
    } else if constexpr (kOperation == sub) {
        EITHER("fsub");
    } else if constexpr (kOperation == subr) {
        EITHER("fsubr");
    } else if constexpr (kOperation == div) {
        EITHER("fdiv");
    } else {
        EITHER("fdivr");
    }
#undef EITHER
#undef RUN
    return status;
}

/// kInto: the destination is ST(i), not ST(0).
template <unsigned kOperation, bool kInto, bool kPop> const Op *arithmetic(Core &c, const Op *op) {
    X87 &f = c.fpu;
    const Code code = unpack(op->imm).code;
    const unsigned top = f.top(), other = at(f, code.modrm & 7);
    Reg result;
    if (!may_try(c) || !filled(f, top) || !filled(f, other) ||
        !settle(f, with<kOperation>(f.st[top], f.st[other], result)))
        return with_registers(c, op);
    Reg &to = f.st[kInto ? other : top];
    to.significand = result.significand;
    to.sign_exponent = result.sign_exponent;
    if constexpr (kPop)
        pop(f);
    remember(c, op, code);
    return op + 1;
}

template <unsigned kOperation, class T> const Op *arithmetic_memory(Core &c, const Op *op) {
    X87 &f = c.fpu;
    Addr a;
    T x;
    Reg result;
    if (!may_try(c) || !filled(f, f.top()))
        return with_memory(c, op);
    if (!address(c, op, sizeof(T), false, a) || !load(c, a, x))
        return c.fault_at(op);
    if (!settle(f, with<kOperation, T>(f.st[f.top()], x, result)))
        return with_memory(c, op);
    f.st[f.top()] = result;
    remember(c, op, unpack(op->imm).code, a);
    return op + 1;
}

// --- loads and stores
/// A format in memory: `load` converts to a register, `store` from one; both return the status word.
#define FORMAT(NAME, BITS, LOAD, STORE)                                                                                \
    struct NAME {                                                                                                      \
        using Bits = BITS;                                                                                             \
        static std::uint16_t load(const Bits &x, Reg &r) {                                                             \
            std::uint16_t status;                                                                                      \
            asm volatile(LOAD " %2\n\tfnstsw %0\n\tfstpt %1" : "=a"(status), "=m"(r) : "m"(x));                        \
            return status;                                                                                             \
        }                                                                                                              \
        static std::uint16_t store(const Reg &r, Bits &x) {                                                            \
            std::uint16_t status;                                                                                      \
            asm volatile("fldt %2\n\t" STORE " %1\n\tfnstsw %0" : "=a"(status), "=m"(x) : "m"(r));                     \
            return status;                                                                                             \
        }                                                                                                              \
    };
FORMAT(Single, std::uint32_t, "flds", "fstps")
FORMAT(Double, std::uint64_t, "fldl", "fstpl")
FORMAT(Integer16, std::uint16_t, "filds", "fistps")
FORMAT(Integer32, std::uint32_t, "fildl", "fistpl")
FORMAT(Integer64, std::uint64_t, "fildll", "fistpll")
#undef FORMAT

template <class F> const Op *load_real(Core &c, const Op *op) {
    X87 &f = c.fpu;
    Addr a;
    typename F::Bits x;
    Reg r;
    if (!may_try(c) || filled(f, at(f, 7)))
        return with_memory(c, op);
    if (!address(c, op, sizeof x, false, a) || !load(c, a, x))
        return c.fault_at(op);
    if (!settle(f, F::load(x, r)))
        return with_memory(c, op);
    push(f, r);
    remember(c, op, unpack(op->imm).code, a);
    return op + 1;
}

template <class F, bool kPop> const Op *store_real(Core &c, const Op *op) {
    X87 &f = c.fpu;
    Addr a;
    typename F::Bits x;
    if (!may_try(c) || !filled(f, f.top()))
        return with_memory(c, op);
    const std::uint16_t status = F::store(f.st[f.top()], x);
    if (status & ~f.status & kFlags)
        return with_memory(c, op);
    if (!address(c, op, sizeof x, true, a) || !store(c, a, x))
        return c.fault_at(op);
    settle(f, status);
    if constexpr (kPop)
        pop(f);
    remember(c, op, unpack(op->imm).code, a);
    return op + 1;
}

// --- comparison to RFLAGS
template <bool kQuiet, bool kPop> const Op *compare(Core &c, const Op *op) {
    X87 &f = c.fpu;
    const unsigned other = at(f, op->imm >> 8 & 7);
    if (!may_try(c) || !filled(f, f.top()) || !filled(f, other))
        return with_flags(c, op);
    bool z, p, carry;
    std::uint16_t status;
#define RUN(INSTRUCTION)                                                                                               \
    asm volatile("fldt %5\n\tfldt %4\n\t" INSTRUCTION " %%st(1), %%st\n\tfnstsw %3\n\tfstp %%st(0)\n\tfstp %%st(0)"    \
                 : "=@ccz"(z), "=@ccp"(p), "=@ccc"(carry), "=a"(status)                                                \
                 : "m"(f.st[f.top()]), "m"(f.st[other]))
    if constexpr (kQuiet)
        RUN("fucomi");
    else
        RUN("fcomi");
#undef RUN
    if (status & ~f.status & kFlags) // C1 stays
        return with_flags(c, op);
    c.flags.set_arithmetic((z ? Flags::zf : 0u) | (p ? Flags::pf : 0u) | (carry ? std::uint64_t{Flags::cf} : 0u));
    if constexpr (kPop)
        pop(f);
    remember(c, op, unpack(op->imm).code);
    return op + 1;
}

// --- moves among registers, and what only touches the sign: no rounding, no flags, C1 is 0
bool waits_for_nothing(const Core &c) { return !(c.cr0 & (cr0::em | cr0::ts)) && !(c.fpu.status & X87::kSummary); }
const Op *done(Core &c, const Op *op) {
    c.fpu.status &= static_cast<std::uint16_t>(~kC1);
    remember(c, op, unpack(op->imm).code);
    return op + 1;
}

const Op *load_register(Core &c, const Op *op) {
    X87 &f = c.fpu;
    const unsigned from = at(f, op->imm >> 8 & 7);
    if (!waits_for_nothing(c) || !filled(f, from) || filled(f, at(f, 7)))
        return with_registers(c, op);
    push(f, Reg(f.st[from]));
    return done(c, op);
}
template <std::uint64_t kSignificand, std::uint16_t kExponent> const Op *load_constant(Core &c, const Op *op) {
    if (!waits_for_nothing(c) || filled(c.fpu, at(c.fpu, 7)))
        return with_registers(c, op);
    push(c.fpu, Reg{kSignificand, kExponent});
    return done(c, op);
}
template <bool kPop> const Op *store_register(Core &c, const Op *op) {
    X87 &f = c.fpu;
    const unsigned to = at(f, op->imm >> 8 & 7);
    if (!waits_for_nothing(c) || !filled(f, f.top()))
        return with_registers(c, op);
    f.st[to] = f.st[f.top()];
    f.valid |= static_cast<std::uint8_t>(1u << to);
    if constexpr (kPop)
        pop(f);
    return done(c, op);
}
const Op *exchange(Core &c, const Op *op) {
    X87 &f = c.fpu;
    const unsigned other = at(f, op->imm >> 8 & 7);
    if (!waits_for_nothing(c) || !filled(f, f.top()) || !filled(f, other))
        return with_registers(c, op);
    std::swap(f.st[f.top()], f.st[other]);
    return done(c, op);
}
template <bool kAbsolute> const Op *change_sign(Core &c, const Op *op) {
    X87 &f = c.fpu;
    if (!waits_for_nothing(c) || !filled(f, f.top()))
        return with_registers(c, op);
    std::uint16_t &x = f.st[f.top()].sign_exponent;
    x = static_cast<std::uint16_t>(kAbsolute ? x & 0x7fff : x ^ 0x8000);
    return done(c, op);
}

/// The 80-bit format moves as it is.
const Op *load_extended(Core &c, const Op *op) {
    Addr a;
    Reg r;
    if (!waits_for_nothing(c) || filled(c.fpu, at(c.fpu, 7)))
        return with_memory(c, op);
    if (!address(c, op, 8, false, a) || !load(c, a, r.significand) || !load_part(c, op, 8, r.sign_exponent))
        return c.fault_at(op);
    push(c.fpu, r);
    c.fpu.status &= static_cast<std::uint16_t>(~kC1);
    remember(c, op, unpack(op->imm).code, a);
    return op + 1;
}
const Op *store_extended(Core &c, const Op *op) {
    Addr a;
    const Reg r = c.fpu.st[c.fpu.top()];
    if (!waits_for_nothing(c) || !filled(c.fpu, c.fpu.top()))
        return with_memory(c, op);
    if (!address(c, op, 8, true, a))
        return c.fault_at(op);
    const bool in_page = !op->legacy && (a & 0xfff) <= 0x1000 - 10;
    if (!(in_page ? store(c, a, r.significand) && store(c, a + 8, r.sign_exponent) : store_80_bits(c, op, r)))
        return c.fault_at(op);
    pop(c.fpu);
    c.fpu.status &= static_cast<std::uint16_t>(~kC1);
    remember(c, op, unpack(op->imm).code, a);
    return op + 1;
}

// --- choice by encoding
template <unsigned kOperation> Exec arithmetic_form(const Packed &p) {
    if (p.code.memory())
        return p.code.opcode == 0   ? arithmetic_memory<kOperation, std::uint32_t>
               : p.code.opcode == 4 ? arithmetic_memory<kOperation, std::uint64_t>
                                    : nullptr;
    switch (p.code.opcode) {
    case 0: return arithmetic<kOperation, false, false>;
    case 4: return arithmetic<kOperation, true, false>;
    case 6: return arithmetic<kOperation, true, true>;
    default: return nullptr;
    }
}

constexpr unsigned key(unsigned opcode, unsigned field) { return opcode << 3 | field; }

Exec memory_form(unsigned opcode_and_field) {
    switch (opcode_and_field) {
    case key(1, 0): return load_real<Single>;
    case key(5, 0): return load_real<Double>;
    case key(7, 0): return load_real<Integer16>;
    case key(3, 0): return load_real<Integer32>;
    case key(7, 5): return load_real<Integer64>;
    case key(3, 5): return load_extended;
    case key(3, 7): return store_extended;
    case key(1, 2): return store_real<Single, false>;
    case key(1, 3): return store_real<Single, true>;
    case key(5, 2): return store_real<Double, false>;
    case key(5, 3): return store_real<Double, true>;
    case key(7, 2): return store_real<Integer16, false>;
    case key(7, 3): return store_real<Integer16, true>;
    case key(3, 2): return store_real<Integer32, false>;
    case key(3, 3): return store_real<Integer32, true>;
    case key(7, 7): return store_real<Integer64, true>;
    default: return nullptr;
    }
}

Exec register_form(Code code) {
    switch (key(code.opcode, code.modrm >> 3 & 7)) {
    case key(1, 0): return load_register;
    case key(1, 1): return exchange;
    case key(5, 2): return store_register<false>;
    case key(5, 3): return store_register<true>;
    case key(3, 5): return compare<true, false>;
    case key(7, 5): return compare<true, true>;
    case key(3, 6): return compare<false, false>;
    case key(7, 6): return compare<false, true>;
    default: break;
    }
    if (code.opcode != 1)
        return nullptr;
    switch (code.modrm) {
    case 0xe0: return change_sign<false>;
    case 0xe1: return change_sign<true>;
    case 0xe8: return load_constant<0x8000000000000000, 0x3fff>;
    case 0xee: return load_constant<0, 0>;
    default: return nullptr;
    }
}

} // namespace

Exec fast_x87(const Packed &p) {
    const unsigned field = p.code.modrm >> 3 & 7;
    if (p.code.opcode == 0 || p.code.opcode == 4 || (p.code.opcode == 6 && !p.code.memory()))
        switch (field) {
        case add: return arithmetic_form<add>(p);
        case mul: return arithmetic_form<mul>(p);
        case sub: return arithmetic_form<sub>(p);
        case subr: return arithmetic_form<subr>(p);
        case div: return arithmetic_form<div>(p);
        case divr: return arithmetic_form<divr>(p);
        default: return nullptr;
        }
    return p.code.memory() ? memory_form(key(p.code.opcode, field)) : register_form(p.code);
}

} // namespace moscope::x86::x87
