// SPDX-License-Identifier: BSD-3-Clause
// The arithmetic of the two-operand integer instructions (AMD 24594), flags included, and the condition codes.
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86::alu {

struct Add {
    static constexpr bool writes = true;
    template <class T> static T run(Core &c, T a, T b) {
        const T r = static_cast<T>(a + b);
        c.flags.add<T>(a, b, r);
        return r;
    }
};
struct Adc {
    static constexpr bool writes = true;
    template <class T> static T run(Core &c, T a, T b) {
        const T r = static_cast<T>(a + b + c.flags.c());
        c.flags.add<T>(a, b, r);
        return r;
    }
};
struct Sub {
    static constexpr bool writes = true;
    template <class T> static T run(Core &c, T a, T b) {
        const T r = static_cast<T>(a - b);
        c.flags.sub<T>(a, b, r);
        return r;
    }
};
struct Sbb {
    static constexpr bool writes = true;
    template <class T> static T run(Core &c, T a, T b) {
        const T r = static_cast<T>(a - b - c.flags.c());
        c.flags.sub<T>(a, b, r);
        return r;
    }
};
struct Cmp : Sub {
    static constexpr bool writes = false;
};
struct And {
    static constexpr bool writes = true;
    template <class T> static T run(Core &c, T a, T b) {
        const T r = static_cast<T>(a & b);
        c.flags.logic<T>(r);
        return r;
    }
};
struct Test : And {
    static constexpr bool writes = false;
};
struct Or {
    static constexpr bool writes = true;
    template <class T> static T run(Core &c, T a, T b) {
        const T r = static_cast<T>(a | b);
        c.flags.logic<T>(r);
        return r;
    }
};
struct Xor {
    static constexpr bool writes = true;
    template <class T> static T run(Core &c, T a, T b) {
        const T r = static_cast<T>(a ^ b);
        c.flags.logic<T>(r);
        return r;
    }
};

struct Inc {
    template <class T> static T run(Core &c, T a) {
        const bool carry = c.flags.c();
        const T r = static_cast<T>(a + 1);
        c.flags.add<T>(a, 1, r);
        c.flags.keep_carry(carry);
        return r;
    }
};
struct Dec {
    template <class T> static T run(Core &c, T a) {
        const bool carry = c.flags.c();
        const T r = static_cast<T>(a - 1);
        c.flags.sub<T>(a, 1, r);
        c.flags.keep_carry(carry);
        return r;
    }
};
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
