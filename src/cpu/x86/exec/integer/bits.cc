// SPDX-License-Identifier: BSD-3-Clause
// Bit tests, scans and counts, and byte swaps (AMD 24594). If a register gives the number of a bit in memory, the
// number is a signed offset into a bit string, which reaches beyond the operand.
#include <bit>

#include "cpu/x86/decode/operands.hh"

namespace moscope::x86 {
namespace {

enum class Kind { test, set, reset, complement };

template <Kind K, class T> T apply(T x, unsigned bit) {
    const T one = static_cast<T>(T{1} << bit);
    return static_cast<T>(K == Kind::set ? x | one : K == Kind::reset ? x & ~one : K == Kind::complement ? x ^ one : x);
}

template <Kind K, bool kImmediate> struct BitTest {
    template <bool kMemory> struct Place {
        template <class T> struct At {
            static const Op *run(Core &c, const Op *op) {
                constexpr unsigned bits = 8 * sizeof(T);
                const T number = kImmediate ? static_cast<T>(op->imm) : reg<T>(c, op->src);
                const unsigned bit = number & (bits - 1);
                bool carry = false;
                const auto work = [&](T x) {
                    carry = x >> bit & 1;
                    return apply<K>(x, bit);
                };
                if constexpr (kMemory) {
                    Addr a;
                    if (!place(c, op, kImmediate ? 0 : Flags::extend(number), a))
                        return c.fault_at(op);
                    if constexpr (K == Kind::test) {
                        T x;
                        if (!load<T>(c, a, x))
                            return c.fault_at(op);
                        work(x);
                    } else if (!modify<T>(c, a, op->lock, work))
                        return c.fault_at(op);
                } else if constexpr (K == Kind::test)
                    work(reg<T>(c, op->dst));
                else
                    set_reg<T>(c, op->dst, work(reg<T>(c, op->dst)));
                c.flags.set_carry(carry);
                return op + 1;
            }
            /// Address of the word of the string that holds bit `number`.
            static bool place(Core &c, const Op *op, std::int64_t number, Addr &a) {
                constexpr int shift = std::countr_zero(8 * sizeof(T));
                const std::int64_t offset = (number >> shift) * static_cast<std::int64_t>(sizeof(T));
                if (!op->legacy || offset == 0) {
                    if (!address(c, op, sizeof(T), K != Kind::test, a))
                        return false;
                    a += static_cast<Addr>(offset);
                    return true;
                }
                Op moved = *op; // the sum is masked and checked; beyond 32 bits nothing of it is left
                moved.disp = static_cast<std::int32_t>(static_cast<std::uint32_t>(op->disp) +
                                                       static_cast<std::uint32_t>(offset));
                return legacy_address(c, &moved, sizeof(T), K != Kind::test, a);
            }
        };
    };
};

template <Kind K> Exec lower_bit_test(const Insn &insn, Op &op) {
    if (insn.bytes(0) == 1)
        return nullptr;
    if (insn.is_imm(1)) {
        op.imm = insn.op[1].imm.value.u;
        return by_place<BitTest<K, true>::template Place>(insn);
    }
    return by_place<BitTest<K, false>::template Place>(insn);
}

/// BSF, BSR: the destination keeps its value where the source is zero.
template <bool kForward> struct Scan {
    template <class T> static const Op *run(Core &c, const Op *op, T x) {
        c.flags.set<T>(x != 0, false, false, false);
        if (x != 0)
            set_reg<T>(c, op->dst,
                       static_cast<T>(kForward ? std::countr_zero(x)
                                               : 8 * static_cast<int>(sizeof(T)) - 1 - std::countl_zero(x)));
        return op + 1;
    }
};

struct LeadingZeros {
    template <class T> static const Op *run(Core &c, const Op *op, T x) {
        const T r = static_cast<T>(std::countl_zero(x));
        c.flags.set<T>(r, x == 0, false, false);
        set_reg<T>(c, op->dst, r);
        return op + 1;
    }
};

struct PopulationCount {
    template <class T> static const Op *run(Core &c, const Op *op, T x) {
        c.flags.set_arithmetic(x == 0 ? Flags::zf : 0);
        set_reg<T>(c, op->dst, static_cast<T>(std::popcount(x)));
        return op + 1;
    }
};

template <class F> Exec lower_scan(const Insn &insn, Op &) {
    return insn.bytes(0) == 1 ? nullptr : by_place<OnOperand<F>::template Place>(insn, 1);
}

const Op *swap2(Core &c, const Op *op) { // undefined; the family clears the register
    set_reg<std::uint16_t>(c, op->dst, 0);
    return op + 1;
}
const Op *swap4(Core &c, const Op *op) {
    set_reg<std::uint32_t>(c, op->dst, __builtin_bswap32(reg<std::uint32_t>(c, op->dst)));
    return op + 1;
}
const Op *swap8(Core &c, const Op *op) {
    set_reg<std::uint64_t>(c, op->dst, __builtin_bswap64(reg<std::uint64_t>(c, op->dst)));
    return op + 1;
}
Exec lower_swap(const Insn &insn, Op &) { return insn.bytes(0) == 8 ? swap8 : insn.bytes(0) == 4 ? swap4 : swap2; }

const Form kForms[] = {
    {ZYDIS_MNEMONIC_BT, lower_bit_test<Kind::test>},
    {ZYDIS_MNEMONIC_BTS, lower_bit_test<Kind::set>},
    {ZYDIS_MNEMONIC_BTR, lower_bit_test<Kind::reset>},
    {ZYDIS_MNEMONIC_BTC, lower_bit_test<Kind::complement>},
    {ZYDIS_MNEMONIC_BSF, lower_scan<Scan<true>>},
    {ZYDIS_MNEMONIC_BSR, lower_scan<Scan<false>>},
    {ZYDIS_MNEMONIC_LZCNT, lower_scan<LeadingZeros>},
    {ZYDIS_MNEMONIC_POPCNT, lower_scan<PopulationCount>},
    {ZYDIS_MNEMONIC_BSWAP, lower_swap},
};
const Group kGroup("bits", kForms);

} // namespace
} // namespace moscope::x86
