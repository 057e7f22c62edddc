// SPDX-License-Identifier: BSD-3-Clause
// Operand values worth trying: random ones, and those at which arithmetic changes its behaviour.
#pragma once

#include <cstdint>

#include "base/rng.hh"
#include "cpu/x86/native/snapshot.hh"

namespace moscope::x86::native {

class Values {
  public:
    explicit Values(std::uint64_t seed) : rng_(seed) {}

    std::uint64_t next() { return rng_.next(); }
    std::uint64_t below(std::uint64_t n) { return rng_.below(n); }
    bool percent(unsigned n) { return below(100) < n; }
    template <class T, std::size_t N> T one_of(const T (&list)[N]) { return list[below(N)]; }

    std::uint64_t integer() {
        static constexpr std::uint64_t corners[] = {0,
                                                    1,
                                                    2,
                                                    ~0ull,
                                                    ~1ull,
                                                    0x7f,
                                                    0x80,
                                                    0xff,
                                                    0x100,
                                                    0x7fff,
                                                    0x8000,
                                                    0xffff,
                                                    0x10000,
                                                    0x7fffffff,
                                                    0x80000000,
                                                    0xffffffff,
                                                    0x100000000,
                                                    0x7fffffffffffffff,
                                                    0x8000000000000000,
                                                    0xffffffff80000000,
                                                    0x8000000080008080};
        switch (below(8)) {
        case 0: return below(256);
        case 1: return 1ull << below(64);
        case 2: return (1ull << below(64)) - 1;
        case 3: return ~(1ull << below(64));
        case 4: return one_of(corners);
        case 5: return next() >> below(64);
        case 6: return static_cast<std::uint64_t>(static_cast<std::int64_t>(next()) >> below(64));
        default: return next();
        }
    }
    std::uint32_t f32() {
        static constexpr std::uint32_t corners[] = {0,          1,          0x7fffff,   0x800000,   0x3f800000,
                                                    0x3f7fffff, 0x3f800001, 0x3f000000, 0x3fc00000, 0x40200000,
                                                    0x4f000000, 0x4effffff, 0x5f000000, 0x7f7fffff, 0x7f800000,
                                                    0x7f800001, 0x7fbfffff, 0x7fc00000, 0x7fc12345, 0x4b000001};
        const std::uint32_t sign = percent(50) ? 0x80000000 : 0;
        switch (below(4)) {
        case 0: return one_of(corners) ^ sign;
        case 1: return static_cast<std::uint32_t>(next());
        case 2: return sign | static_cast<std::uint32_t>((96 + below(64)) << 23 | (next() & 0x7fffff));
        default: return sign | static_cast<std::uint32_t>((120 + below(16)) << 23 | (next() & 0x7f0000));
        }
    }
    std::uint64_t f64() {
        static constexpr std::uint64_t corners[] = {0,
                                                    1,
                                                    0xfffffffffffff,
                                                    0x10000000000000,
                                                    0x3ff0000000000000,
                                                    0x3fefffffffffffff,
                                                    0x3ff0000000000001,
                                                    0x3fe0000000000000,
                                                    0x3ff8000000000000,
                                                    0x4004000000000000,
                                                    0x41e0000000000000,
                                                    0x41dfffffffc00000,
                                                    0x41dfffffffffffff,
                                                    0x43e0000000000000,
                                                    0x43dfffffffffffff,
                                                    0x7fefffffffffffff,
                                                    0x7ff0000000000000,
                                                    0x7ff0000000000001,
                                                    0x7ff7ffffffffffff,
                                                    0x7ff8000000000000,
                                                    0x7ff8123456789abc,
                                                    0x36a0000000000000,
                                                    0x380fffffffffffff,
                                                    0x47efffffffffffff};
        const std::uint64_t sign = percent(50) ? 1ull << 63 : 0;
        switch (below(4)) {
        case 0: return one_of(corners) ^ sign;
        case 1: return next();
        case 2: return sign | (960 + below(128)) << 52 | (next() & 0xfffffffffffff);
        default: return sign | (1015 + below(20)) << 52 | (next() & 0xfffff00000000);
        }
    }
    void f80(std::uint64_t &significand, std::uint16_t &sign_exponent) {
        static constexpr std::uint16_t exponents[] = {0,      1,      2,      0x3fff, 0x3ffe, 0x4000, 0x3ffd,
                                                      0x7ffe, 0x7fff, 0x403d, 0x403e, 0x403f, 0x401e, 0x400e,
                                                      0x3fbf, 0x3c01, 0x3f81, 0x43fe, 0x407e, 0x43ff, 0x407f};
        static constexpr std::uint64_t significands[] = {1ull << 63,
                                                         3ull << 62,
                                                         ~0ull,
                                                         0,
                                                         1,
                                                         (1ull << 63) + 1,
                                                         ~0ull >> 1,
                                                         0xa000000000000000,
                                                         0xfffffffffffff800,
                                                         0xfffffffffffffc00,
                                                         0xffffff0000000000,
                                                         0xffffff8000000000};
        const auto sign = static_cast<std::uint16_t>(percent(50) ? 0x8000 : 0);
        const std::uint64_t kind = below(8);
        sign_exponent = static_cast<std::uint16_t>(sign | (kind < 3    ? one_of(exponents)
                                                           : kind == 3 ? next() & 0x7fff
                                                                       : 0x3fff - 40 + below(110)));
        significand = percent(30) ? one_of(significands) : next() | 1ull << 63;
        if (percent(25))
            significand &= ~0ull << below(64);
        if (percent(3))
            significand &= ~0ull >> 1; // unnormal, pseudo-infinity and the like
        if (percent(10))               // a small integer
            significand = 1ull << 63 | below(16) << 59,
            sign_exponent = static_cast<std::uint16_t>(sign | (0x3fff + below(4)));
        if (percent(4))
            significand = 0, sign_exponent = sign;
    }
    std::uint64_t quadword() {
        switch (below(4)) {
        case 0: return static_cast<std::uint64_t>(f32()) << 32 | f32();
        case 1: return f64();
        case 2: return integer();
        default: return next();
        }
    }

    /// Registers of all kinds.
    void fill(Snapshot &s) {
        std::memset(&s, 0, sizeof s);
        for (std::uint64_t &r : s.r)
            r = integer();
        s.flags = 0x202 | (next() & 0x8d5) | (percent(30) ? 0x400 : 0);
        fill_x87(s.fx);
        const std::uint64_t lanes = below(4);
        for (auto &x : s.fx.xmm)
            for (std::uint64_t &q : x)
                q = lanes == 0 ? static_cast<std::uint64_t>(f32()) << 32 | f32() : lanes == 1 ? f64() : quadword();
        s.fx.mxcsr = 0x1f80;
        if (percent(60))
            s.fx.mxcsr |= static_cast<std::uint32_t>(below(4) << 13); // rounding
        if (percent(20))
            s.fx.mxcsr |= 0x8000; // flush to zero
        if (percent(20))
            s.fx.mxcsr |= 0x40; // denormals are zeros
        if (percent(30))
            s.fx.mxcsr |= static_cast<std::uint32_t>(next() & 0x3f);
        if (percent(10))
            s.fx.mxcsr &= ~static_cast<std::uint32_t>(next() & 0x1f80);
    }

  private:
    void fill_x87(Fx &f) {
        f.control = 0x37f;
        if (percent(50)) {
            static constexpr std::uint16_t precisions[] = {0, 0x200, 0x300};
            f.control = static_cast<std::uint16_t>(0x7f | below(4) << 10 | one_of(precisions));
        }
        if (percent(10))
            f.control = static_cast<std::uint16_t>(f.control & ~(next() & 0x3f));
        const unsigned top = static_cast<unsigned>(below(8));
        f.status = static_cast<std::uint16_t>(top << 11 | (next() & 0x4700));
        if (percent(20))
            f.status |= static_cast<std::uint16_t>(next() & 0x7f);
        if (!percent(20)) // otherwise an exception may be pending
            f.status &= static_cast<std::uint16_t>(~0x3f | (f.control & 0x3f));
        if (f.status & 0x3f & ~f.control)
            f.status |= 0x8080;
        f.valid = static_cast<std::uint8_t>(percent(75) ? 0xff : percent(20) ? 0 : next());
        for (auto &r : f.st)
            f80(r.significand, r.sign_exponent);
    }

    Rng rng_;
};

} // namespace moscope::x86::native
