// SPDX-License-Identifier: BSD-3-Clause
// Exchange-and-add and compare-and-exchange (AMD 24594). A destination in memory is written back even
// where the comparison fails, as the processor does. CMPXCHG16B needs an aligned operand.
#include "cpu/x86/decode/operands.hh"

namespace moscope::x86 {
namespace {

constexpr unsigned kRax = rax * 8;

template <bool kMemory> struct ExchangeAdd {
    template <class T> struct At {
        static const Op *run(Core &c, const Op *op) {
            const T b = reg<T>(c, op->src);
            T old{};
            const auto add = [&](T a) {
                old = a;
                return static_cast<T>(a + b);
            };
            if constexpr (kMemory) {
                if (!change<T, true>(c, op, add))
                    return nullptr;
                set_reg<T>(c, op->src, old);
            } else { // both the same register: the sum stays
                const T sum = add(reg<T>(c, op->dst));
                set_reg<T>(c, op->src, old);
                set_reg<T>(c, op->dst, sum);
            }
            c.flags.add<T>(old, b, static_cast<T>(old + b));
            return op + 1;
        }
    };
};

template <bool kMemory> struct CompareExchange {
    template <class T> struct At {
        static const Op *run(Core &c, const Op *op) {
            const T expected = reg<T>(c, kRax), desired = reg<T>(c, op->src);
            T old{};
            if constexpr (kMemory) {
                if (!change<T, true>(c, op, [&](T x) {
                        old = x;
                        return x == expected ? desired : x;
                    }))
                    return nullptr;
            } else {
                old = reg<T>(c, op->dst);
                if (old == expected) // otherwise not even the upper half is touched
                    set_reg<T>(c, op->dst, desired);
            }
            c.flags.sub<T>(expected, old, static_cast<T>(expected - old));
            if (old != expected)
                set_reg<T>(c, kRax, old);
            return op + 1;
        }
    };
};

/// CMPXCHG8B and 16B with halves of type T. ZF is the only flag that changes.
template <class T> struct CompareExchangePair {
    struct Pair {
        T low, high;
    };
    static const Op *run(Core &c, const Op *op) {
        const Pair expected{reg<T>(c, rax * 8), reg<T>(c, rdx * 8)}, desired{reg<T>(c, rbx * 8), reg<T>(c, rcx * 8)};
        Addr a;
        if (!address(c, op, sizeof(Pair), true, a))
            return c.fault_at(op);
        if (sizeof(T) == 8 && a % 16 != 0) {
            c.raise(exc_gp, 0);
            return c.fault_at(op);
        }
        Pair old{};
        bool equal = false;
        if (!modify<Pair>(c, a, op->lock, [&](Pair x) {
                old = x;
                equal = x.low == expected.low && x.high == expected.high;
                return equal ? desired : x;
            }))
            return c.fault_at(op);
        const std::uint64_t others = c.flags.arithmetic() & ~Flags::zf;
        c.flags.set_arithmetic(equal ? others | Flags::zf : others);
        if (!equal) {
            set_reg<T>(c, rax * 8, old.low);
            set_reg<T>(c, rdx * 8, old.high);
        }
        return op + 1;
    }
};

template <template <bool> class F> Exec lower_atomic(const Insn &insn, Op &) { return by_place<F>(insn); }
Exec lower_pair(const Insn &insn, Op &) {
    return insn.z.mnemonic == ZYDIS_MNEMONIC_CMPXCHG16B ? CompareExchangePair<std::uint64_t>::run
                                                        : CompareExchangePair<std::uint32_t>::run;
}

const Form kForms[] = {
    {ZYDIS_MNEMONIC_XADD, lower_atomic<ExchangeAdd>},
    {ZYDIS_MNEMONIC_CMPXCHG, lower_atomic<CompareExchange>},
    {{ZYDIS_MNEMONIC_CMPXCHG8B, ZYDIS_MNEMONIC_CMPXCHG16B}, lower_pair},
};
const Group kGroup("atomic", kForms);

} // namespace
} // namespace moscope::x86
