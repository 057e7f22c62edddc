// SPDX-License-Identifier: BSD-3-Clause
// Shifts and rotates (AMD 24594): counts are taken modulo 32, or 64 for 64-bit operands; a count of zero changes no
// flag. OF is defined for counts of one only; for others it is what the last single-bit step would give.
#include "cpu/x86/decode/operands.hh"

namespace moscope::x86 {
namespace {

enum class Kind { rol, ror, rcl, rcr, shl, shr, sar };

template <class T> constexpr unsigned kBits = 8 * sizeof(T);
template <class T> constexpr bool msb(T x) { return x >> (kBits<T> - 1) & 1; }

/// x shifted by `count`, which is masked already and not zero.
template <Kind K, class T> T shifted(Flags &flags, T x, unsigned count) {
    constexpr unsigned n = kBits<T>;
    if constexpr (K == Kind::shl) {
        const bool carry = count <= n && (x >> (n - count) & 1);
        const T r = count < n ? static_cast<T>(x << count) : T{0};
        flags.set(r, carry, msb(r) != carry, false);
        return r;
    } else if constexpr (K == Kind::shr) {
        const bool carry = count <= n && (x >> (count - 1) & 1);
        const T r = count < n ? static_cast<T>(x >> count) : T{0};
        flags.set(r, carry, count == 1 && msb(x), false);
        return r;
    } else if constexpr (K == Kind::sar) {
        const auto wide = Flags::extend(x);
        const unsigned last = count - 1 < 63 ? count - 1 : 63;
        const T r = static_cast<T>(wide >> (count < 63 ? count : 63));
        flags.set(r, wide >> last & 1, false, false);
        return r;
    } else if constexpr (K == Kind::rol) {
        const unsigned by = count % n;
        const T r = by ? static_cast<T>(x << by | x >> (n - by)) : x;
        flags.set_carry_overflow(r & 1, msb(r) != (r & 1));
        return r;
    } else if constexpr (K == Kind::ror) {
        const unsigned by = count % n;
        const T r = by ? static_cast<T>(x >> by | x << (n - by)) : x;
        flags.set_carry_overflow(msb(r), msb(r) != msb(static_cast<T>(r << 1)));
        return r;
    } else {
        // Through carry: a rotation of n + 1 bits.
        const unsigned by = count % (n + 1);
        if (by == 0)
            return x;
        const T carry_in = flags.c();
        T r;
        bool carry;
        if constexpr (K == Kind::rcl) {
            r = static_cast<T>((by < n ? x << by : 0) | carry_in << (by - 1) | (by > 1 ? x >> (n + 1 - by) : 0));
            carry = x >> (n - by) & 1;
            flags.set_carry_overflow(carry, msb(r) != carry);
        } else {
            r = static_cast<T>((by < n ? x >> by : 0) | carry_in << (n - by) | (by > 1 ? x << (n + 1 - by) : 0));
            carry = x >> (by - 1) & 1;
            flags.set_carry_overflow(carry, msb(r) != msb(static_cast<T>(r << 1)));
        }
        return r;
    }
}

template <class T> constexpr unsigned kCountMask = sizeof(T) == 8 ? 63 : 31;

template <Kind K, bool kByCl> struct Shift {
    template <bool kMemory> struct Place {
        template <class T> struct At {
            static const Op *run(Core &c, const Op *op) {
                const unsigned count = static_cast<unsigned>(kByCl ? c.r[rcx] : op->imm) & kCountMask<T>;
                return change<T, kMemory>(c, op, [&](T x) { return count ? shifted<K>(c.flags, x, count) : x; });
            }
        };
    };
};

template <Kind K> Exec lower_shift(const Insn &insn, Op &op) {
    if (insn.is_reg(1))
        return by_place<Shift<K, true>::template Place>(insn);
    op.imm = insn.op[1].imm.value.u;
    return by_place<Shift<K, false>::template Place>(insn);
}

/// SHLD and SHRD. Counts above 16 leave a 16-bit result undefined: here bits come from a rotation of both operands.
template <bool kLeft, class T> T double_shifted(Flags &flags, T x, T fill, unsigned count) {
    constexpr unsigned n = kBits<T>;
    T r, before;
    bool carry;
    if (sizeof(T) == 2 && count > n) {
        // A 48-bit string x:fill:x.
        const std::uint64_t string = std::uint64_t{x} << 32 | std::uint64_t{fill} << 16 | x;
        if (kLeft) {
            r = static_cast<T>(string >> (32 - count));
            carry = string >> (48 - count) & 1;
        } else {
            r = static_cast<T>(string >> count);
            carry = string >> (count - 1) & 1;
        }
        before = x;
    } else if (count == n) {
        r = fill;
        carry = kLeft ? x & 1 : msb(x);
        before = x;
    } else {
        r = kLeft ? static_cast<T>(x << count | fill >> (n - count)) : static_cast<T>(x >> count | fill << (n - count));
        carry = kLeft ? x >> (n - count) & 1 : x >> (count - 1) & 1;
        before = x;
    }
    flags.set(r, carry, msb(r) != msb(before), false);
    return r;
}

template <bool kLeft, bool kByCl> struct DoubleShift {
    template <bool kMemory> struct Place {
        template <class T> struct At {
            static const Op *run(Core &c, const Op *op) {
                const unsigned count = static_cast<unsigned>(kByCl ? c.r[rcx] : op->imm) & kCountMask<T>;
                const T fill = reg<T>(c, op->src);
                return change<T, kMemory>(
                    c, op, [&](T x) { return count ? double_shifted<kLeft>(c.flags, x, fill, count) : x; });
            }
        };
    };
};

template <bool kLeft> Exec lower_double_shift(const Insn &insn, Op &op) {
    if (insn.bytes(0) == 1)
        return nullptr;
    if (insn.is_reg(2))
        return by_place<DoubleShift<kLeft, true>::template Place>(insn);
    op.imm = insn.op[2].imm.value.u;
    return by_place<DoubleShift<kLeft, false>::template Place>(insn);
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_ROL, lower_shift<Kind::rol>},     {ZYDIS_MNEMONIC_ROR, lower_shift<Kind::ror>},
    {ZYDIS_MNEMONIC_RCL, lower_shift<Kind::rcl>},     {ZYDIS_MNEMONIC_RCR, lower_shift<Kind::rcr>},
    {ZYDIS_MNEMONIC_SHL, lower_shift<Kind::shl>},     {ZYDIS_MNEMONIC_SHR, lower_shift<Kind::shr>},
    {ZYDIS_MNEMONIC_SAR, lower_shift<Kind::sar>},     {ZYDIS_MNEMONIC_SHLD, lower_double_shift<true>},
    {ZYDIS_MNEMONIC_SHRD, lower_double_shift<false>},
};
const Group kGroup("shift", kForms);

} // namespace
} // namespace moscope::x86
