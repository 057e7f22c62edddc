// SPDX-License-Identifier: BSD-3-Clause
// The architectural state of one x86-64 core as the AMD64 Architecture Programmer's Manual (24593, 24592)
// defines it: registers, segments, control and model-specific registers, x87 and SSE state. A checkpoint of a core
// holds this state, the core's counters and its remembered translations (translations.hh).
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/types.hh"
#include "cpu/x86/exec/integer/flags.hh"
#include "sim/archive.hh"

namespace moscope::x86 {

/// Indices into State::r. Besides the sixteen general registers, the file holds two that only address computation uses:
/// one that is always zero, and the address of the running block.
enum Reg : unsigned {
    rax,
    rcx,
    rdx,
    rbx,
    rsp,
    rbp,
    rsi,
    rdi,
    r8,
    r9,
    r10,
    r11,
    r12,
    r13,
    r14,
    r15,
    reg_zero,
    reg_block,
    kRegs
};

enum Seg : unsigned { es, cs, ss, ds, fs, gs, kSegs, seg_none = kSegs };

enum Vector : unsigned {
    exc_de = 0,
    exc_db = 1,
    exc_nmi = 2,
    exc_bp = 3,
    exc_of = 4,
    exc_br = 5,
    exc_ud = 6,
    exc_nm = 7,
    exc_df = 8,
    exc_ts = 10,
    exc_np = 11,
    exc_ss = 12,
    exc_gp = 13,
    exc_pf = 14,
    exc_mf = 16,
    exc_ac = 17,
    exc_mc = 18,
    exc_xf = 19
};

namespace cr0 {
inline constexpr std::uint64_t pe = 1, mp = 2, em = 4, ts = 8, et = 16, ne = 32, wp = 1 << 16, am = 1 << 18,
                               nw = 1 << 29, cd = 1 << 30, pg = 1u << 31;
}
namespace cr4 {
inline constexpr std::uint64_t vme = 1, pvi = 2, tsd = 4, de = 8, pse = 16, pae = 32, mce = 64, pge = 128, pce = 256,
                               osfxsr = 512, osxmmexcpt = 1024;
}
namespace efer {
inline constexpr std::uint64_t sce = 1, lme = 1 << 8, lma = 1 << 10, nxe = 1 << 11, svme = 1 << 12, ffxsr = 1 << 14;
}

/// A segment register with its hidden part. `attr` is the descriptor's bits 55:40 without the limit: type (3:0),
/// S (4), DPL (6:5), P (7), AVL (12), L (13), D/B (14), G (15).
struct Segment {
    std::uint64_t base = 0;
    std::uint32_t limit = 0xffff; ///< in bytes, inclusive
    std::uint16_t selector = 0;
    std::uint16_t attr = 0;

    static constexpr std::uint16_t kPresent = 0x80, kCodeOrData = 0x10, kLong = 0x2000, kBig = 0x4000,
                                   kGranular = 0x8000;
    unsigned type() const { return attr & 15; }
    unsigned dpl() const { return attr >> 5 & 3; }
    bool present() const { return attr & kPresent; }
    bool long_mode() const { return attr & kLong; }
    bool big() const { return attr & kBig; }
    bool code() const { return (attr & 0x18) == 0x18; }
    bool expand_down() const { return (attr & 0x1c) == 0x14; }
    void archive(Archive &a) { a(base, limit, selector, attr); }
};

struct TableRegister {
    std::uint64_t base = 0;
    std::uint16_t limit = 0xffff;
    void archive(Archive &a) { a(base, limit); }
};

/// A 128-bit register, seen in any lane width.
union alignas(16) Xmm {
    std::uint64_t u64[2];
    std::int64_t s64[2];
    std::uint32_t u32[4];
    std::int32_t s32[4];
    std::uint16_t u16[8];
    std::int16_t s16[8];
    std::uint8_t u8[16];
    std::int8_t s8[16];
    float f32[4];
    double f64[2];
};

/// x87: registers by physical number (ST(i) is `st[(top + i) & 7]`), MMX registers are their 64-bit significands.
struct X87 {
    struct Reg {
        std::uint64_t significand = 0;
        std::uint16_t sign_exponent = 0;
    };
    std::array<Reg, 8> st{};
    std::uint16_t control = 0x037f;
    std::uint16_t status = 0; ///< TOP (13:11) included
    std::uint8_t valid = 0;   ///< abridged tag word: bit i set: physical register i is not empty
    std::uint16_t opcode = 0; ///< of the last instruction; below: its address and its operand's
    std::uint64_t instruction = 0, operand = 0;
    std::uint16_t instruction_cs = 0, operand_ds = 0;

    /// In `status`: an unmasked exception is pending (ES); busy (B), which always equals ES.
    static constexpr std::uint16_t kSummary = 0x80, kBusy = 0x8000;

    unsigned top() const { return status >> 11 & 7; }
    void set_top(unsigned t) { status = static_cast<std::uint16_t>((status & ~0x3800) | (t & 7) << 11); }
    void archive(Archive &a) {
        for (Reg &x : st)
            a(x.significand, x.sign_exponent);
        a(control, status, valid, opcode, instruction, operand, instruction_cs, operand_ds);
    }
};

/// A model-specific register that only remembers what is written to it.
struct RememberedMsr {
    std::uint32_t number = 0;
    std::uint64_t value = 0;
    void archive(Archive &a) { a(number, value); }
};

/// What MONITOR has set up (cpu/x86/system/monitor.hh).
struct Monitor {
    bool armed = false;
    bool waiting = false;           ///< MWAIT: State::halted is set as well
    bool masked_interrupts = false; ///< masked interrupts also end the wait
    std::uint64_t line = 0;         ///< physical address
    std::uint64_t content[8] = {};  ///< when MONITOR ran
    void archive(Archive &a) { a(armed, waiting, masked_interrupts, line, content); }
};

/// How instructions are decoded and addresses formed; part of a decoded block's identity.
enum class Mode : std::uint8_t { code16, code32, code64 };

/// Conditions other than interrupts and RFLAGS that keep a core from going straight on to the next instruction.
struct Attention {
    bool halted = false;        ///< HLT and MWAIT: until an interrupt
    bool wait_for_sipi = false; ///< after INIT
    std::uint8_t shadow = 0;    ///< interrupts are held off for the next instruction (STI; kShadowDebug)
    std::uint8_t watched = 0;   ///< kinds of breakpoints that DR7 enables (Core::kWatchFetch...)

    /// Not 0: at least one of the conditions holds.
    std::uint32_t attention() const { return std::bit_cast<std::uint32_t>(*this); }
};

struct State : Attention {
    std::uint64_t r[kRegs] = {};
    Flags flags;
    std::uint64_t rip = 0; ///< up to date between blocks
    alignas(16) Xmm xmm[16] = {};
    std::uint32_t mxcsr = 0x1f80;
    X87 fpu;

    Segment seg[kSegs + 1]; ///< the last one, seg_none, is never loaded: base 0
    Segment ldtr, tr;
    TableRegister gdtr, idtr;
    unsigned cpl = 0;

    std::uint64_t cr0 = 0x60000010, cr2 = 0, cr3 = 0, cr4 = 0, efer = 0;
    std::uint64_t dr[8] = {0, 0, 0, 0, 0, 0, 0xffff0ff0, 0x400};

    // Model-specific registers that instructions use.
    std::uint64_t star = 0, lstar = 0, cstar = 0, sfmask = 0, kernel_gs_base = 0;
    std::uint64_t sysenter_cs = 0, sysenter_esp = 0, sysenter_eip = 0;
    std::uint64_t tsc_aux = 0;
    std::int64_t tsc_offset = 0; ///< the time-stamp counter minus the machine's clock, in core cycles
    std::uint64_t pat = 0x0007040600070406;
    std::vector<RememberedMsr> msrs; ///< the others, by number

    Monitor monitor;
    bool nmi_blocked = false;                       ///< until IRET
    static constexpr std::uint8_t kShadowDebug = 2; ///< after MOV SS and POP SS: debug exceptions are held off as well

    bool protected_mode() const { return cr0 & cr0::pe; }
    bool paging() const { return cr0 & cr0::pg; }
    bool long_mode() const { return efer & efer::lma; }
    bool virtual_8086() const { return flags.system & Flags::vm; }
    /// Real or virtual-8086 mode: a selector is an address.
    bool real_mode() const { return !protected_mode() || virtual_8086(); }
    bool code64() const { return long_mode() && seg[cs].long_mode(); }
    Mode mode() const { return code64() ? Mode::code64 : seg[cs].big() ? Mode::code32 : Mode::code16; }
    /// Bytes of the stack pointer.
    unsigned stack_bytes() const { return code64() ? 8 : seg[ss].big() ? 4 : 2; }

    void archive(Archive &a);
};

} // namespace moscope::x86
