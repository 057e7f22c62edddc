// SPDX-License-Identifier: BSD-3-Clause
// What differs after an instruction ran on the host and on the model, as text that lets the case be repeated.
#pragma once

#include <cstdarg>
#include <cstdio>
#include <string>

#include "cpu/x86/native/cases.hh"
#include "cpu/x86/native/undefined_flags.hh"

namespace moscope::x86::native {

[[gnu::format(printf, 1, 2)]] inline std::string text(const char *format, ...) {
    char line[400];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    return line;
}
inline unsigned long long ull(std::uint64_t x) { return x; }

inline constexpr std::uint64_t kComparedFlags = Flags::kArithmetic | Flags::df;
inline constexpr const char *kNames[16] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi",
                                           "r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"};

/// Within the segment, of an operand in memory; `z` and `op` are of the case's own bytes.
inline std::uint64_t operand_offset(const ZydisDecodedInstruction &z, const ZydisDecodedOperand &op, const Case &c) {
    const auto value = [&](ZydisRegister r) {
        return r == ZYDIS_REGISTER_NONE                             ? 0
               : r == ZYDIS_REGISTER_RIP || r == ZYDIS_REGISTER_EIP ? c.at + c.code.size()
                                                                    : c.in.r[ZydisRegisterGetId(r) & 15];
    };
    const std::uint64_t a =
        value(op.mem.base) + value(op.mem.index) * op.mem.scale + static_cast<std::uint64_t>(op.mem.disp.value);
    return z.address_width == 64 ? a : a & ((std::uint64_t{1} << z.address_width) - 1);
}
inline std::uint64_t segment_base(const ZydisDecodedOperand &op, const Case &c) {
    return op.mem.segment == ZYDIS_REGISTER_GS ? kGsBase : kLayouts[c.layout].base;
}

/// The masked count of a shift or rotate.
inline unsigned count_of(const NativeForm &f, const Case &c) {
    ZydisDecodedInstruction z;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    decode(f.mode, c.code, z, op);
    const ZydisDecodedOperand &last = op[z.operand_count_visible - 1];
    const std::uint64_t count = last.type == ZYDIS_OPERAND_TYPE_IMMEDIATE ? last.imm.value.u : c.in.r[1];
    return static_cast<unsigned>(count & (f.z.operand_width == 64 ? 63 : 31));
}

/// Makes equal what may differ: undefined flags, what x87 remembers of its last instruction, and what some instructions
/// have done by the time of a fault. `vector`: how the execution ended on a.
inline void ignore_undefined(const NativeForm &f, const Case &c, int vector, Snapshot &a, Snapshot &b,
                             std::uint8_t *memory_a, std::uint8_t *memory_b) {
    const bool shift = f.z.meta.category == ZYDIS_CATEGORY_SHIFT || f.z.meta.category == ZYDIS_CATEGORY_ROTATE;
    const std::uint64_t undefined = undefined_of(f.z.mnemonic, shift ? count_of(f, c) : 1, f.z.operand_width);
    a.flags = (a.flags & ~undefined) | (b.flags & undefined);
    const auto skip = [&](unsigned from, unsigned bytes) {
        const std::uint64_t at = c.target + from;
        if (at >= kData && at + bytes <= kReadOnly)
            std::memcpy(memory_b + (at - kData), memory_a + (at - kData), bytes);
    };
    switch (f.z.mnemonic) {
    case ZYDIS_MNEMONIC_FXSAVE:
    case ZYDIS_MNEMONIC_FXSAVE64:
        skip(6, 18);
        skip(28, 4); // MXCSR_MASK: the family knows misaligned SSE
        break;
    case ZYDIS_MNEMONIC_FNSAVE:
    case ZYDIS_MNEMONIC_FNSTENV: f.z.operand_width == 16 ? skip(6, 8) : skip(12, 16); break;
    case ZYDIS_MNEMONIC_POPA:
    case ZYDIS_MNEMONIC_POPAD: // hosts have loaded what lay before the end of the stack's segment
        if (vector >= 0)
            for (unsigned i = 0; i < 8; ++i)
                if (i != rsp)
                    a.r[i] = b.r[i];
        break;
    case ZYDIS_MNEMONIC_MOVNTQ:
    case ZYDIS_MNEMONIC_MASKMOVQ: // hosts change the x87 stack before they check the limit
        if ((vector == exc_ss || vector == exc_gp) && f.mode != Mode::code64) {
            a.fx.status = b.fx.status;
            a.fx.valid = b.fx.valid;
            std::memcpy(a.fx.st, b.fx.st, sizeof a.fx.st);
        }
        break;
    default: break;
    }
}

inline std::string describe(const NativeForm &f, const Case &c, std::uint64_t n, std::uint64_t seed) {
    ZydisDecodedInstruction z;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
    decode(f.mode, c.code, z, op);
    ZydisFormatter formatter;
    ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    char assembly[200];
    ZydisFormatterFormatInstruction(&formatter, &z, op, z.operand_count_visible, assembly, sizeof assembly, c.at,
                                    nullptr);
    std::string s = "  case " + std::to_string(n) + text(" (seed %llx): ", ull(seed));
    for (std::uint8_t b : c.code)
        s += text("%02x ", b);
    s += std::string(" ") + assembly + text(" at %llx, flags %llx", ull(c.at), ull(c.in.flags));
    if (c.layout)
        s += text(", segments %u, sp %llx", c.layout, ull(c.in.r[4] & 0xffffffff));
    if (f.z.meta.isa_ext == ZYDIS_ISA_EXT_X87)
        s += text(", control %x, status %x, valid %x", c.in.fx.control, c.in.fx.status, c.in.fx.valid);
    return s + text(", mxcsr %x\n", c.in.fx.mxcsr);
}

/// Empty: none.
inline std::string differences(Mode mode, const Case &c, const Outcome &expected, const Snapshot &a, const Outcome &got,
                               const Snapshot &b, const std::uint8_t *memory_a, const std::uint8_t *memory_b) {
    std::string s;
    const auto differ = [&](const std::string &what, std::uint64_t in, std::uint64_t host, std::uint64_t model) {
        if (host != model)
            s += "    " + what + text(": %llx, host %llx, model %llx\n", ull(in), ull(host), ull(model));
    };
    if (got.lacking)
        s += "    the model lacks it\n";
    if (expected.vector != got.vector)
        s += text("    host ends with vector %d (address %llx), model with %d (%llx)\n", expected.vector,
                  ull(expected.address), got.vector, ull(got.address));
    else {
        // The host's process and kernel have pages where the model has none.
        const bool ours = expected.address - kCode < 0x10000 || expected.address - kData < 0x10000;
        const std::uint32_t compared_bits = expected.vector == 14 && !ours ? ~1u : ~0u;
        differ("error code", 0, expected.error & compared_bits, got.error & compared_bits);
        differ("faulting address", 0, expected.address, got.address);
    }
    // Compatibility mode shows the lower halves of eight registers; what becomes of the rest is not defined.
    const bool wide = mode == Mode::code64;
    for (unsigned i = 0; i < (wide ? 16 : 8); ++i)
        differ(kNames[i], c.in.r[i], wide ? a.r[i] : a.r[i] & 0xffffffff, wide ? b.r[i] : b.r[i] & 0xffffffff);
    differ("flags", c.in.flags, a.flags & kComparedFlags, b.flags & kComparedFlags);
    differ("rip", c.at, a.rip, b.rip);
    differ("mxcsr", c.in.fx.mxcsr, a.fx.mxcsr, b.fx.mxcsr);
    for (unsigned i = 0; i < 16; ++i) {
        if (a.fx.xmm[i][0] != b.fx.xmm[i][0] || a.fx.xmm[i][1] != b.fx.xmm[i][1])
            s += "    xmm" + std::to_string(i) +
                 text(": %016llx'%016llx, host %016llx'%016llx, model %016llx'%016llx\n", ull(c.in.fx.xmm[i][1]),
                      ull(c.in.fx.xmm[i][0]), ull(a.fx.xmm[i][1]), ull(a.fx.xmm[i][0]), ull(b.fx.xmm[i][1]),
                      ull(b.fx.xmm[i][0]));
    }
    differ("x87 control", c.in.fx.control, a.fx.control, b.fx.control);
    differ("x87 status", c.in.fx.status, a.fx.status, b.fx.status);
    differ("x87 valid", c.in.fx.valid, a.fx.valid, b.fx.valid);
    for (unsigned i = 0; i < 8; ++i)
        if (a.fx.st[i].significand != b.fx.st[i].significand || a.fx.st[i].sign_exponent != b.fx.st[i].sign_exponent)
            s += "    st" + std::to_string(i) +
                 text(": %04x'%016llx, host %04x'%016llx, model %04x'%016llx\n", c.in.fx.st[i].sign_exponent,
                      ull(c.in.fx.st[i].significand), a.fx.st[i].sign_exponent, ull(a.fx.st[i].significand),
                      b.fx.st[i].sign_exponent, ull(b.fx.st[i].significand));
    if (std::memcmp(memory_a, memory_b, kDataBytes) != 0) {
        unsigned shown = 0;
        for (std::uint64_t i = 0; i < kDataBytes && shown < 4; i += 8)
            if (std::memcmp(memory_a + i, memory_b + i, 8) != 0) {
                std::uint64_t x, y;
                std::memcpy(&x, memory_a + i, 8);
                std::memcpy(&y, memory_b + i, 8);
                s += text("    memory at %llx (operand at %llx): host %016llx, model %016llx\n", ull(kData + i),
                          ull(c.target), ull(x), ull(y));
                ++shown;
            }
    }
    return s;
}

} // namespace moscope::x86::native
