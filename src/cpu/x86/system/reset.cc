// SPDX-License-Identifier: BSD-3-Clause
// The state after RESET and INIT (AMD 24593, table 14-1).
#include "cpu/x86/system/cpuid.hh"
#include "cpu/x86/system/interrupts.hh"
#include "cpu/x86/system/msr.hh"

namespace moscope::x86 {

namespace {

void reset_segments(Core &c) {
    for (Segment &s : c.seg)
        s = {0, 0xffff, 0, 0x93};
    c.seg[cs] = {0xffff0000, 0xffff, 0xf000, 0x93};
    c.seg[seg_none] = {0, 0xffffffff, 0, 0x93};
    c.ldtr = {0, 0xffff, 0, 0x82};
    c.tr = {0, 0xffff, 0, 0x8b};
    c.gdtr = c.idtr = {0, 0xffff};
}

/// State that RESET sets and INIT leaves alone.
void power_on(Core &c) {
    const State fresh;
    c.cr0 = fresh.cr0;
    for (unsigned i = 0; i < 16; ++i)
        c.xmm[i] = fresh.xmm[i];
    c.mxcsr = fresh.mxcsr;
    c.fpu = {};
    c.fpu.control = 0x40;
    c.fpu.valid = 0xff;
    c.star = c.lstar = c.cstar = c.sfmask = c.kernel_gs_base = 0;
    c.sysenter_cs = c.sysenter_esp = c.sysenter_eip = c.tsc_aux = 0;
    c.pat = fresh.pat;
    c.tsc_offset = -static_cast<std::int64_t>(c.platform.cycles(c));
    reset_msrs(c);
    c.signals.pending = 0;
}

} // namespace

void reset(Core &c, bool init) {
    if (!init)
        power_on(c);
    for (std::uint64_t &x : c.r)
        x = 0;
    const auto signature = c.model.leaves.find({1, 0});
    c.r[rdx] = signature == c.model.leaves.end() ? 0 : signature->second.eax;
    c.flags.set_value(Flags::fixed);
    c.rip = 0xfff0;
    c.cpl = 0;
    c.cr0 = (c.cr0 & (cr0::cd | cr0::nw)) | cr0::et;
    c.cr2 = c.cr3 = c.cr4 = c.efer = 0;
    const State fresh;
    for (unsigned i = 0; i < 8; ++i)
        c.dr[i] = fresh.dr[i];
    c.struck = 0;
    c.debug_changed();
    reset_segments(c);
    c.halted = c.nmi_blocked = false;
    c.monitor = {};
    c.shadow = 0;
    // The boot processor starts, the others wait for a start-up message.
    const bool bootstrap = c.interrupts ? c.interrupts->apic_base() >> 8 & 1 : c.number == 0;
    c.wait_for_sipi = !bootstrap;
    c.flush_tlb(true);
    c.mode_changed();
}

} // namespace moscope::x86
