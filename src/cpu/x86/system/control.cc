// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/system/control.hh"

namespace moscope::x86 {

bool write_cr0(Core &c, std::uint64_t v) {
    constexpr std::uint64_t known =
        cr0::pe | cr0::mp | cr0::em | cr0::ts | cr0::ne | cr0::wp | cr0::am | cr0::nw | cr0::cd | cr0::pg;
    const std::uint64_t old = c.cr0;
    const bool nonsense = v >> 32 || ((v & cr0::pg) && !(v & cr0::pe)) || ((v & cr0::nw) && !(v & cr0::cd));
    if (nonsense)
        return c.raise(exc_gp, 0);
    const bool on = (v & ~old) & cr0::pg, off = (old & ~v) & cr0::pg;
    if (on && (c.efer & efer::lme) && (!(c.cr4 & cr4::pae) || c.seg[cs].long_mode()))
        return c.raise(exc_gp, 0);
    if (off && c.code64())
        return c.raise(exc_gp, 0);
    c.cr0 = (v & known) | cr0::et;
    if (on && (c.efer & efer::lme))
        c.efer |= efer::lma;
    if (off)
        c.efer &= ~efer::lma;
    if ((old ^ v) & (cr0::pg | cr0::wp | cr0::pe))
        c.flush_tlb(true);
    c.mode_changed();
    return true;
}

bool write_cr3(Core &c, std::uint64_t v) {
    if (c.long_mode() && v >> 48) // bits above the family's physical addresses must be zero
        return c.raise(exc_gp, 0);
    c.cr3 = v;
    c.flush_tlb(false);
    return true;
}

bool write_cr4(Core &c, std::uint64_t v) {
    constexpr std::uint64_t known = cr4::vme | cr4::pvi | cr4::tsd | cr4::de | cr4::pse | cr4::pae | cr4::mce |
                                    cr4::pge | cr4::pce | cr4::osfxsr | cr4::osxmmexcpt;
    if ((v & ~known) || (c.long_mode() && !(v & cr4::pae)))
        return c.raise(exc_gp, 0);
    const std::uint64_t changed = c.cr4 ^ v;
    c.cr4 = v;
    if (changed & (cr4::pse | cr4::pae | cr4::pge))
        c.flush_tlb(true);
    c.mode_changed();
    return true;
}

bool write_efer(Core &c, std::uint64_t v) {
    constexpr std::uint64_t known = efer::sce | efer::lme | efer::lma | efer::nxe | efer::ffxsr;
    if ((v & ~known) || (((c.efer ^ v) & efer::lme) && c.paging()))
        return c.raise(exc_gp, 0);
    const std::uint64_t changed = c.efer ^ v;
    c.efer = (v & ~efer::lma) | (c.efer & efer::lma);
    if (changed & efer::nxe)
        c.flush_tlb(true);
    c.mode_changed();
    return true;
}

} // namespace moscope::x86
