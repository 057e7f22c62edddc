// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the two-operand integer instructions (AMD 24594), flags included, and the condition codes.
#pragma once

#include <functional>

#include "cpu/x86/core.hh"

namespace moscope::x86::alu {

/// A sum or difference, with or without CF as a third operand.
template <bool kSubtract, bool kCarry> struct Sum {
    static constexpr bool writes = true;
    template <class T> static T run(Core &c, T a, T b) {
        const unsigned carry = kCarry ? c.flags.c() : 0;
        const T r = static_cast<T>(kSubtract ? a - b - carry : a + b + carry);
        if constexpr (kSubtract)
            c.flags.sub<T>(a, b, r);
        else
            c.flags.add<T>(a, b, r);
        return r;
    }
};
using Add = Sum<false, false>;
using Adc = Sum<false, true>;
using Sub = Sum<true, false>;
using Sbb = Sum<true, true>;
struct Cmp : Sub {
    static constexpr bool writes = false;
};

template <class F> struct Logic {
    static constexpr bool writes = true;
    template <class T> static T run(Core &c, T a, T b) {
        const T r = static_cast<T>(F{}(a, b));
        c.flags.logic<T>(r);
        return r;
    }
};
using And = Logic<std::bit_and<>>;
using Or = Logic<std::bit_or<>>;
using Xor = Logic<std::bit_xor<>>;
struct Test : And {
    static constexpr bool writes = false;
};

/// Add and Sub with 1 as the second operand; CF stays.
template <class F> struct Step {
    template <class T> static T run(Core &c, T a) {
        const bool carry = c.flags.c();
        const T r = F::template run<T>(c, a, T{1});
        c.flags.keep_carry(carry);
        return r;
    }
};
using Inc = Step<Add>;
using Dec = Step<Sub>;
struct Neg {
    template <class T> static T run(Core &c, T a) {
        const T r = static_cast<T>(0 - a);
        c.flags.sub<T>(0, a, r);
        return r;
    }
};
struct Not {
    template <class T> static T run(Core &, T a) { return static_cast<T>(~a); }
};

/// Condition `code` as the low four bits of Jcc, SETcc and CMOVcc encode it.
template <unsigned code> inline bool condition(const Flags &f) {
    bool x;
    if constexpr (code >> 1 == 0)
        x = f.o();
    else if constexpr (code >> 1 == 1)
        x = f.c();
    else if constexpr (code >> 1 == 2)
        x = f.z();
    else if constexpr (code >> 1 == 3)
        x = f.c() || f.z();
    else if constexpr (code >> 1 == 4)
        x = f.s();
    else if constexpr (code >> 1 == 5)
        x = f.p();
    else if constexpr (code >> 1 == 6)
        x = f.s() != f.o();
    else
        x = f.z() || f.s() != f.o();
    return x != (code & 1);
}

} // namespace moscope::x86::alu
