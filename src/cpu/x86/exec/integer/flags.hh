// SPDX-License-Identifier: BSD-3-Clause
// RFLAGS. The arithmetic flags are kept lazily: an instruction leaves its result, sign-extended, and the vector
// of its carries, and the flags are worked out where they are read. ZF is result == 0, SF its sign, PF the
// parity of its low byte; in `aux` the top two bits are the carries out of and into the sign bit (CF, and OF as
// their difference), bit 3 is the carry out of bit 3 (AF). Combinations that no result has (POPF, SAHF) are
// expressed by correction bits: bit 0 inverts SF, bits 15:8 are added to the byte whose parity counts.
#pragma once

#include <cstdint>
#include <type_traits>

#include "sim/archive.hh"

namespace moscope::x86 {

struct Flags {
    static constexpr std::uint64_t cf = 1, fixed = 2, pf = 4, af = 16, zf = 64, sf = 128, tf = 256, if_ = 512,
                                   df = 1024, of = 2048, iopl = 3 << 12, nt = 1 << 14, rf = 1 << 16, vm = 1 << 17,
                                   ac = 1 << 18, vif = 1 << 19, vip = 1 << 20, id = 1 << 21;
    static constexpr std::uint64_t kArithmetic = cf | pf | af | zf | sf | of;

    std::int64_t result = 1;
    std::uint64_t aux = 0;
    std::uint64_t system = fixed; ///< all other bits of RFLAGS

    static constexpr std::uint64_t kCarry = std::uint64_t{1} << 63, kInto = std::uint64_t{1} << 62, kAux = 8;

    bool c() const { return aux >> 63; }
    bool o() const { return (aux ^ aux << 1) >> 63; }
    bool z() const { return result == 0; }
    bool s() const { return (static_cast<std::uint64_t>(result) >> 63) ^ (aux & 1); }
    bool a() const { return aux & kAux; }
    bool p() const {
        return !(__builtin_popcount((static_cast<unsigned>(result) ^ static_cast<unsigned>(aux >> 8)) & 0xff) & 1);
    }

    /// Carries of an addition or subtraction of T, given at T's own bit positions.
    template <class T> static constexpr std::uint64_t carries(T at) {
        constexpr unsigned shift = 64 - 8 * sizeof(T);
        return (static_cast<std::uint64_t>(at) << shift & (kCarry | kInto)) | (static_cast<std::uint64_t>(at) & kAux);
    }
    template <class T> static std::int64_t extend(T x) {
        return static_cast<std::int64_t>(static_cast<std::make_signed_t<T>>(x));
    }

    /// r = a + b (+ carry).
    template <class T> void add(T a, T b, T r) {
        result = extend(r);
        aux = carries(static_cast<T>((a & b) | ((a | b) & ~r)));
    }
    /// r = a - b (- borrow).
    template <class T> void sub(T a, T b, T r) {
        result = extend(r);
        aux = carries(static_cast<T>((~a & b) | ((~a | b) & r)));
    }
    /// CF = OF = AF = 0.
    template <class T> void logic(T r) {
        result = extend(r);
        aux = 0;
    }
    /// ZF, SF and PF of r; the others as given.
    template <class T> void set(T r, bool carry, bool overflow, bool adjust) {
        result = extend(r);
        aux = (carry ? kCarry : 0) | (carry != overflow ? kInto : 0) | (adjust ? kAux : 0);
    }
    /// INC and DEC: all but CF as `add` or `sub` with 1 set them.
    void keep_carry(bool carry) {
        const bool overflow = o();
        aux = (aux & ~(kCarry | kInto)) | (carry ? kCarry : 0) | (carry != overflow ? kInto : 0);
    }
    /// Changes CF alone.
    void set_carry(bool carry) { keep_carry(carry); }
    /// Changes CF and OF alone (rotates).
    void set_carry_overflow(bool carry, bool overflow) {
        aux = (aux & ~(kCarry | kInto)) | (carry ? kCarry : 0) | (carry != overflow ? kInto : 0);
    }

    std::uint64_t arithmetic() const {
        return (c() * cf) | (p() * pf) | (a() * af) | (z() * zf) | (s() * sf) | (o() * of);
    }
    /// Sets the six arithmetic flags, whatever their combination.
    void set_arithmetic(std::uint64_t f) {
        const bool zero = f & zf, sign = f & sf, parity = f & pf;
        result = zero ? 0 : 1; // parity of 0 is even, of 1 odd; both are positive
        aux = ((f & cf) ? kCarry : 0) | (!(f & cf) != !(f & of) ? kInto : 0) | ((f & af) ? kAux : 0) | (sign ? 1 : 0) |
              (parity != zero ? 0x100 : 0);
    }

    std::uint64_t value() const { return system | arithmetic(); }
    void set_value(std::uint64_t f) {
        set_arithmetic(f);
        system = (f & ~kArithmetic) | fixed;
    }
    void archive(Archive &a) { a(result, aux, system); }
};

} // namespace moscope::x86
