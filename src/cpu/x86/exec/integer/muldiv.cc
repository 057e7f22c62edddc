// SPDX-License-Identifier: BSD-3-Clause
// Multiplication and division (AMD 24594). MUL and IMUL set CF and OF if the upper half holds more than the lower
// one's extension; division leaves the flags, which the manual calls undefined, as they are, and faults with #DE on a
// divisor of zero and on a quotient that does not fit.
#include <limits>

#include "cpu/x86/decode/operands.hh"

namespace moscope::x86 {
namespace {

template <class T> struct Wider;
template <> struct Wider<std::uint8_t> { using Type = std::uint16_t; };
template <> struct Wider<std::uint16_t> { using Type = std::uint32_t; };
template <> struct Wider<std::uint32_t> { using Type = std::uint64_t; };
template <> struct Wider<std::uint64_t> { using Type = unsigned __int128; };
template <class T> using Wide = typename Wider<T>::Type;

template <class T> struct Signed { using Type = std::make_signed_t<T>; };
template <> struct Signed<unsigned __int128> { using Type = __int128; };
template <class T> using Int = typename Signed<T>::Type;

constexpr unsigned kRax = rax * 8, kRdx = rdx * 8;

/// The pair that holds a product or dividend: AX, DX:AX, EDX:EAX, RDX:RAX.
template <class T> Wide<T> pair(const Core &c) {
    if constexpr (sizeof(T) == 1)
        return reg<std::uint16_t>(c, kRax);
    else
        return static_cast<Wide<T>>(Wide<T>{reg<T>(c, kRdx)} << 8 * sizeof(T) | reg<T>(c, kRax));
}
template <class T> void set_pair(Core &c, T high, T low) {
    if constexpr (sizeof(T) == 1)
        set_reg<std::uint16_t>(c, kRax, static_cast<std::uint16_t>(high << 8 | low));
    else {
        set_reg<T>(c, kRax, low);
        set_reg<T>(c, kRdx, high);
    }
}

/// The product; CF and OF are set if it needs more than T.
template <bool kSigned, class T> Wide<T> product(Flags &flags, T a, T b) {
    Wide<T> r;
    bool more;
    if constexpr (kSigned) {
        const auto p =
            static_cast<Int<Wide<T>>>(static_cast<Int<Wide<T>>>(static_cast<Int<T>>(a)) * static_cast<Int<T>>(b));
        r = static_cast<Wide<T>>(p);
        more = p != static_cast<Int<T>>(p);
    } else {
        r = static_cast<Wide<T>>(static_cast<Wide<T>>(a) * b);
        more = r >> 8 * sizeof(T) != 0;
    }
    flags.set(static_cast<T>(r), more, more, false);
    return r;
}

template <bool kSigned> struct Multiply {
    template <class T> static const Op *run(Core &c, const Op *op, T b) {
        const Wide<T> r = product<kSigned, T>(c.flags, reg<T>(c, kRax), b);
        set_pair<T>(c, static_cast<T>(r >> 8 * sizeof(T)), static_cast<T>(r));
        return op + 1;
    }
};

/// IMUL r, r/m and IMUL r, r/m, imm.
template <bool kImmediate> struct MultiplyTo {
    template <class T> static const Op *run(Core &c, const Op *op, T b) {
        const T a = kImmediate ? static_cast<T>(op->imm) : reg<T>(c, op->dst);
        set_reg<T>(c, op->dst, static_cast<T>(product<true, T>(c.flags, a, b)));
        return op + 1;
    }
};

/// False: #DE.
template <class T> bool divide(Wide<T> a, T b, T &quotient, T &remainder) {
    if (b == 0 || static_cast<T>(a >> 8 * sizeof(T)) >= b)
        return false;
    if constexpr (sizeof(T) == 8) {
        const auto high = static_cast<std::uint64_t>(a >> 64);
        asm("divq %4" : "=a"(quotient), "=d"(remainder) : "a"(static_cast<std::uint64_t>(a)), "d"(high), "r"(b) : "cc");
    } else {
        quotient = static_cast<T>(a / b);
        remainder = static_cast<T>(a % b);
    }
    return true;
}

template <class T> bool divide_signed(Wide<T> a, T b, T &quotient, T &remainder) {
    const bool negative_a = static_cast<Int<Wide<T>>>(a) < 0, negative_b = static_cast<Int<T>>(b) < 0;
    T q, r;
    if (!divide<T>(static_cast<Wide<T>>(negative_a ? -a : a), static_cast<T>(negative_b ? -b : b), q, r))
        return false;
    const T limit = static_cast<T>(std::numeric_limits<Int<T>>::max());
    if (q > static_cast<T>(negative_a != negative_b ? limit + 1 : limit))
        return false;
    quotient = static_cast<T>(negative_a != negative_b ? -q : q);
    remainder = static_cast<T>(negative_a ? -r : r);
    return true;
}

template <bool kSigned> struct Divide {
    template <class T> static const Op *run(Core &c, const Op *op, T b) {
        T quotient, remainder;
        const Wide<T> a = pair<T>(c);
        if (!(kSigned ? divide_signed<T>(a, b, quotient, remainder) : divide<T>(a, b, quotient, remainder))) {
            c.raise(exc_de);
            return c.fault_at(op);
        }
        set_pair<T>(c, remainder, quotient);
        return op + 1;
    }
};

template <bool kSigned> Exec lower_multiply(const Insn &insn, Op &op) {
    // Visible operands only: one for the widening form.
    switch (insn.z.operand_count_visible) {
    case 1: return by_place<OnOperand<Multiply<kSigned>, &Op::dst>::template Place>(insn);
    case 2: return insn.bytes(0) == 1 ? nullptr : by_place<OnOperand<MultiplyTo<false>>::template Place>(insn, 1);
    case 3:
        op.imm = static_cast<std::uint64_t>(insn.op[2].imm.value.s);
        return by_place<OnOperand<MultiplyTo<true>>::template Place>(insn, 1);
    }
    return nullptr;
}

template <bool kSigned> Exec lower_divide(const Insn &insn, Op &) {
    return by_place<OnOperand<Divide<kSigned>, &Op::dst>::template Place>(insn);
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_MUL, lower_multiply<false>},
    {ZYDIS_MNEMONIC_IMUL, lower_multiply<true>},
    {ZYDIS_MNEMONIC_DIV, lower_divide<false>},
    {ZYDIS_MNEMONIC_IDIV, lower_divide<true>},
};
const Group kGroup("multiply and divide", kForms);

} // namespace
} // namespace moscope::x86
