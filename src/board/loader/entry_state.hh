// SPDX-License-Identifier: BSD-3-Clause
// What the boot processor's registers hold when a loaded kernel starts, in the two forms that the boot protocols
// ask for: 64-bit mode on identity-mapped page tables (Linux x86 boot protocol, section 1.14) and flat 32-bit
// protected mode without paging (its section 1.15, the Xen PVH start of day, Multiboot 0.6.96 section 3.2).
#pragma once

#include "cpu/x86/state.hh"

namespace moscope::loader {

struct EntryState {
    std::uint64_t rip = 0, rsp = 0, rax = 0, rbx = 0, rsi = 0;
    std::uint64_t cr0 = 0, cr3 = 0, cr4 = 0, efer = 0;
    x86::TableRegister gdtr{}, idtr{0, 0};
    x86::Segment code, data, tr; ///< `data` goes into DS, ES, SS, FS and GS
};

/// Descriptor attributes as x86::Segment keeps them.
inline constexpr std::uint16_t kAttrCode64 = 0xa09b; ///< G, L, present, execute/read, accessed
inline constexpr std::uint16_t kAttrCode32 = 0xc09b; ///< G, D, present, execute/read, accessed
inline constexpr std::uint16_t kAttrData = 0xc093;   ///< G, B, present, read/write, accessed
inline constexpr std::uint16_t kAttrTss = 0x008b;    ///< present, busy TSS

/// Puts a core, fresh from reset, at the kernel's first instruction; interrupts are off.
inline void apply(const EntryState &e, x86::State &s) {
    s.rip = e.rip;
    for (std::uint64_t &r : s.r)
        r = 0;
    s.r[x86::rsp] = e.rsp;
    s.r[x86::rax] = e.rax;
    s.r[x86::rbx] = e.rbx;
    s.r[x86::rsi] = e.rsi;
    s.cr0 = e.cr0;
    s.cr3 = e.cr3;
    s.cr4 = e.cr4;
    s.efer = e.efer;
    s.gdtr = e.gdtr;
    s.idtr = e.idtr;
    s.seg[x86::cs] = e.code;
    for (const x86::Seg n : {x86::es, x86::ss, x86::ds, x86::fs, x86::gs})
        s.seg[n] = e.data;
    s.tr = e.tr;
    s.ldtr = {};
    s.cpl = 0;
    s.halted = s.wait_for_sipi = false;
}

} // namespace moscope::loader
