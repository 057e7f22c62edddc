// SPDX-License-Identifier: BSD-3-Clause
// One execution of a form: bytes with random registers, addressing, prefixes without meaning and immediates, and
// the state that they meet. Registers that address memory or count are set so that most executions stay in the
// data pages; the rest meet unmapped, read-only and non-canonical addresses. All places are chosen as linear addresses;
// 16-bit code has its offsets in segments of a base, which end (or begin) among the data at times.
#pragma once

#include <cstddef>
#include <cstring>
#include <iterator>

#include "cpu/x86/native/forms.hh"
#include "cpu/x86/native/values.hh"

namespace moscope::x86::native {

struct Case {
    Bytes code;
    std::uint64_t at = 0;     ///< address of the code
    std::uint64_t target = 0; ///< address of the memory operand, if the form has one
    unsigned layout = 0;      ///< the segments, of kLayouts
    Snapshot in;
};

class CaseMaker {
  public:
    CaseMaker(const NativeForm &form, std::uint64_t seed) : f_(form), v_(seed) {}

    /// Fills the data pages at `data` (both processors' are given the same) and returns the case.
    Case make(std::uint8_t *data) {
        data_ = data;
        Case c;
        while (true) {
            v_.fill(c.in);
            c.layout = layout_ = f_.mode == Mode::code16 ? choose_layout() : 0;
            fill_data();
            c.target = choose_target();
            if (!build(c))
                continue;
            ZydisDecodedInstruction z;
            ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
            if (!decode(f_.mode, c.code, z, op) || z.mnemonic != f_.z.mnemonic || z.length != c.code.size())
                continue; // REX.B made another instruction of it (90)
            prepare(c, z, op);
            return c;
        }
    }

  private:
    std::uint8_t *host(std::uint64_t a) { return data_ + (a - kData); }
    template <class T> void put(std::uint64_t a, T x) {
        for (const Window &w : kWindows)
            if (a >= w.at && a + sizeof(T) <= w.at + w.bytes)
                std::memcpy(host(a), &x, sizeof(T));
    }
    /// An MXCSR in memory has no MM: the family knows it, hosts need not.
    void clear_misaligned_mask(std::uint64_t a) { put(a, peek<std::uint32_t>(a) & ~(1u << 17)); }
    template <class T> T peek(std::uint64_t a) {
        T x{};
        if (a >= kData && a + sizeof(T) <= kData + kDataBytes)
            std::memcpy(&x, host(a), sizeof(T));
        return x;
    }

    void fill_data() {
        for (const Window &w : kWindows)
            for (std::uint64_t a = w.at; a < w.at + w.bytes; a += 8)
                put(a, f_.stops ? code_address() : v_.quadword());
    }
    /// Where a branch may go, in CS: an INT3, away from the branch itself.
    std::uint64_t code_address() {
        return kCode - code_base(layout_) + (v_.percent(50) ? 0x100 : 0x1100) + v_.below(0x600);
    }

    unsigned choose_layout() {
        if (v_.percent(50))
            return 1;
        return 2 + static_cast<unsigned>(v_.below(std::size(kLayouts) - 2));
    }
    const Layout &layout() const { return kLayouts[layout_]; }
    std::uint64_t offset(std::uint64_t linear) const { return linear - layout().base; }
    /// For a stack register: in 16-bit stacks the upper half is not looked at, and has to be kept.
    std::uint64_t stack_pointer(std::uint64_t linear) {
        return layout().big ? offset(linear) & (f_.mode == Mode::code64 ? ~0ull : 0xffffffff)
                            : (offset(linear) & 0xffff) | v_.below(0x10000) << 16;
    }
    unsigned address_bits(bool prefixed) const {
        const bool wide = f_.mode == Mode::code64, old = f_.mode == Mode::code16;
        return wide ? (prefixed ? 32 : 64) : prefixed != old ? 16 : 32;
    }

    std::uint64_t choose_target() {
        const unsigned bytes = f_.memory_bytes() ? f_.memory_bytes() : 8;
        std::uint64_t t;
        if (f_.stops && v_.percent(4))
            t = kReadOnly + 0x1040;
        else if (!f_.stops && v_.percent(layout_ ? 10 : 4)) {
            const std::uint64_t edges[] = {kData, kReadOnly, kReadOnly + 0x1000, layout().base + layout().limit + 1,
                                           layout().base + 0x10000};
            t = edges[v_.below(layout_ ? 5 : 3)] - v_.below(bytes + 1);
        } else if (!f_.stops && v_.percent(1))
            t = !v_.percent(50) ? kReadOnly + 64 : layout_ ? layout().base + v_.below(0x10000) : v_.next();
        else if (v_.percent(20))
            t = kMiddle - v_.below(bytes + 1);
        else
            t = kMiddle - 256 + v_.below(512);
        if (v_.percent(50) || bytes >= 100 || f_.stops)
            t &= ~15ull;
        // Not a locked access across lines: it stops the host's whole memory, and hosts punish it with seconds of
        // waiting.
        if (f_.locks() && (f_.is_bit_string() || (t + bytes) % 64 < bytes))
            t &= ~std::uint64_t{bytes - 1};
        // The value there, in the operand's own format half of the time.
        if (bytes == 10) {
            std::uint64_t significand;
            std::uint16_t sign_exponent;
            v_.f80(significand, sign_exponent);
            put(t, significand);
            put(t + 8, sign_exponent);
        } else if (!f_.stops && v_.percent(50)) {
            if (bytes == 4)
                put(t, v_.f32());
            else
                for (unsigned i = 0; i < bytes && i < 16; i += 8)
                    put(t + i, v_.f64());
        } else if (!f_.stops && v_.percent(50) && bytes <= 16)
            for (unsigned i = 0; i < bytes; i += 8)
                put(t + i, v_.integer());
        return t;
    }

    bool build(Case &c) {
        c.code.clear();
        const bool short_addresses = (f_.memory || f_.offset_bytes || implicit_memory() || f_.mode == Mode::code16) &&
                                     !f_.jumps_by_count() && v_.percent(8);
        if (short_addresses && f_.mode == Mode::code32 &&
            (f_.is(ZYDIS_MNEMONIC_MASKMOVQ) || f_.is(ZYDIS_MNEMONIC_MASKMOVDQU)))
            return false; // which byte faults is the processor's choice
        if (short_addresses && f_.mode == Mode::code32 && f_.locks())
            return false; // 16 bits of any value: across lines, see choose_target
        if (v_.percent(4)) {
            static constexpr std::uint8_t segments[] = {0x26, 0x2e, 0x36, 0x3e};
            const std::uint8_t s = v_.one_of(segments);
            // CS in compatibility mode cannot be written, and the x87 stack after that fault is not defined.
            const bool x87 = f_.z.meta.isa_ext == ZYDIS_ISA_EXT_X87 || f_.is(ZYDIS_MNEMONIC_FISTTP) || f_.has_mmx();
            if (s == 0x2e && layout_ && c.target - kData >= kDataBytes + 0x1000)
                return false; // in the segment of code that may be the code itself, which the host's way back is part
                              // of
            if (!f_.stops && (s != 0x2e || f_.mode == Mode::code64 || !x87))
                c.code.push_back(s);
        }
        const bool wide = f_.mode == Mode::code64;
        const bool gs_segment = wide && (f_.memory || f_.offset_bytes) && v_.percent(4);
        if (gs_segment)
            c.code.push_back(0x65);
        if (short_addresses)
            c.code.push_back(0x67);
        c.code.insert(c.code.end(), f_.prefixes.begin(), f_.prefixes.end());
        const auto rex = static_cast<std::uint8_t>((f_.rex_w ? 8 : 0) | (wide && v_.percent(50) ? v_.below(8) : 0));
        if (rex || (wide && v_.percent(25)))
            c.code.push_back(static_cast<std::uint8_t>(0x40 | rex));
        if (f_.two_bytes)
            c.code.push_back(0x0f);
        c.code.push_back(f_.opcodes[v_.below(f_.opcodes.size())]);
        const std::uint64_t linear = c.target - (gs_segment ? kGsBase : 0);
        if (f_.modrm) {
            const std::uint8_t m = f_.modrms[v_.below(f_.modrms.size())];
            if (!f_.memory)
                c.code.push_back(m);
            else if (!address(c, m & 0x38, rex, address_bits(short_addresses), offset(linear)))
                return false;
        }
        const unsigned offset_bytes = f_.offset_bytes ? address_bits(short_addresses) / 8 : 0;
        for (unsigned i = 0; i < offset_bytes; ++i)
            c.code.push_back(static_cast<std::uint8_t>(offset(linear) >> 8 * i));
        std::uint64_t immediate = v_.percent(50) ? v_.integer() : v_.below(70);
        if (f_.stops) // within the code pages
            immediate = f_.immediate_bytes == 1 ? v_.next() : v_.below(0x800) - 0x400;
        if (f_.is(ZYDIS_MNEMONIC_ENTER))
            immediate = v_.below(0x80) | v_.below(6) << 16;
        if (f_.is(ZYDIS_MNEMONIC_RET))
            immediate &= 0x7ff;
        if ((f_.is(ZYDIS_MNEMONIC_SHLD) || f_.is(ZYDIS_MNEMONIC_SHRD)) && f_.z.operand_width == 16)
            immediate = v_.below(17) | (v_.next() & 0xe0);
        for (unsigned i = 0; i < f_.immediate_bytes; ++i)
            c.code.push_back(static_cast<std::uint8_t>(immediate >> 8 * i));
        if (c.code.size() > 15)
            return false;
        if (f_.stops && f_.immediate_bytes) { // not into the branch itself
            const auto distance =
                f_.immediate_bytes == 1 ? static_cast<std::int8_t>(immediate) : static_cast<std::int64_t>(immediate);
            if (!f_.is(ZYDIS_MNEMONIC_RET) && distance < 0 && distance >= -static_cast<std::int64_t>(c.code.size()))
                return false;
        }
        c.at = kCode + 0x800;
        if (v_.percent(5)) // across a page's end
            c.at = kCode + 0x1000 - v_.below(c.code.size() + 1);
        if (rip_relative_)
            put_displacement(c, linear, short_addresses);
        return true;
    }

    /// ModRM and displacement of 16-bit addresses. In flat segments they reach nothing: the fault shows which address
    /// it was.
    void address16(Case &c, std::uint8_t reg, std::uint64_t t) {
        const unsigned m = static_cast<unsigned>(v_.below(3)), rm = static_cast<unsigned>(v_.below(8));
        const bool absolute = m == 0 && rm == 6;
        std::uint64_t d = m == 1   ? static_cast<std::uint64_t>(static_cast<std::int8_t>(v_.next()))
                          : m == 2 ? v_.next()
                                   : 0;
        if (absolute)
            d = layout_ ? t : v_.next();
        else if (layout_) {
            static constexpr struct {
                Reg base, index;
            } sums[8] = {{rbx, rsi}, {rbx, rdi}, {rbp, rsi}, {rbp, rdi},
                         {rsi, rsi}, {rdi, rdi}, {rbp, rbp}, {rbx, rbx}};
            const auto [base, index] = sums[rm];
            const std::uint64_t rest = t - d - (index == base ? 0 : c.in.r[index]);
            c.in.r[base] = (c.in.r[base] & ~0xffffull) | (rest & 0xffff);
        }
        c.code.push_back(static_cast<std::uint8_t>(m << 6 | reg | rm));
        for (unsigned i = 0; i < (m == 1 ? 1u : m == 2 || absolute ? 2u : 0u); ++i)
            c.code.push_back(static_cast<std::uint8_t>(d >> 8 * i));
    }

    /// ModRM, SIB and displacement of a memory operand at offset `t`; base and index registers are set.
    bool address(Case &c, std::uint8_t reg, std::uint8_t rex, unsigned bits, std::uint64_t t) {
        const bool wide = f_.mode == Mode::code64;
        if (bits == 16) {
            rip_relative_ = false;
            address16(c, reg, t);
            return true;
        }
        const std::uint64_t mask = bits == 32 ? 0xffffffff : ~0ull;
        const auto set = [&](unsigned r, std::uint64_t x) { c.in.r[r] = (x & mask) | (v_.next() & ~mask); };
        rip_relative_ = false;
        const std::uint64_t kind = v_.below(10);
        const unsigned mod = static_cast<unsigned>(v_.below(3));
        const std::uint64_t d = mod == 0   ? 0
                                : mod == 1 ? static_cast<std::uint64_t>(static_cast<std::int8_t>(v_.next()))
                                           : static_cast<std::uint64_t>(static_cast<std::int32_t>(v_.next()));
        const auto displacement = [&](std::uint64_t x, unsigned bytes) {
            for (unsigned i = 0; i < bytes; ++i)
                c.code.push_back(static_cast<std::uint8_t>(x >> 8 * i));
        };
        const unsigned d_bytes = mod == 0 ? 0 : mod == 1 ? 1 : 4;
        if (kind == 0) { // RIP-relative; filled in when the length is known
            c.code.push_back(reg | 5);
            displacement_at_ = c.code.size();
            displacement(t, 4); // in compatibility mode the address itself
            rip_relative_ = wide;
            return true;
        }
        if (kind == 1) { // a 32-bit address alone
            if (wide && static_cast<std::uint64_t>(static_cast<std::int32_t>(t)) != t)
                return false;
            c.code.push_back(reg | 4);
            c.code.push_back(0x25);
            if (rex & 2)
                return false; // that would be an index
            displacement(t, 4);
            return true;
        }
        if (kind < 6) { // base and displacement
            const unsigned rm = static_cast<unsigned>(v_.below(8));
            if (rm == 4 || (rm == 5 && mod == 0))
                return false;
            c.code.push_back(static_cast<std::uint8_t>(mod << 6 | reg | rm));
            displacement(d, d_bytes);
            set(rm | (rex & 1 ? 8 : 0), t - d);
            return true;
        }
        const unsigned index3 = static_cast<unsigned>(v_.below(8)), base3 = static_cast<unsigned>(v_.below(8));
        const unsigned scale = static_cast<unsigned>(v_.below(4));
        const unsigned index = index3 | (rex & 2 ? 8 : 0), base = base3 | (rex & 1 ? 8 : 0);
        if (base3 == 5 && mod == 0)
            return false;
        if (index == base && index != 4)
            return false;
        c.code.push_back(static_cast<std::uint8_t>(mod << 6 | reg | 4));
        c.code.push_back(static_cast<std::uint8_t>(scale << 6 | index3 << 3 | base3));
        displacement(d, d_bytes);
        set(base, t - d - (index == 4 ? 0 : c.in.r[index] << scale));
        return true;
    }
    void put_displacement(Case &c, std::uint64_t t, bool) {
        const auto d = static_cast<std::uint32_t>(t - (c.at + c.code.size()));
        std::memcpy(c.code.data() + displacement_at_, &d, 4);
        rip_relative_ = false;
    }

    bool implicit_memory() const {
        return f_.z.meta.category == ZYDIS_CATEGORY_STRINGOP || f_.is(ZYDIS_MNEMONIC_XLAT) ||
               f_.is(ZYDIS_MNEMONIC_MASKMOVQ) || f_.is(ZYDIS_MNEMONIC_MASKMOVDQU);
    }

    class Preparation; // prepare.hh
    void prepare(Case &c, const ZydisDecodedInstruction &z, const ZydisDecodedOperand *op);

    const NativeForm &f_;
    Values v_;
    std::uint8_t *data_ = nullptr;
    unsigned layout_ = 0;
    bool rip_relative_ = false;
    std::size_t displacement_at_ = 0;
};

} // namespace moscope::x86::native

#include "cpu/x86/native/prepare.hh"
