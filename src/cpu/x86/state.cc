// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/state.hh"

namespace moscope::x86 {

void State::archive(Archive &a) {
    a(r, flags, rip);
    for (Xmm &x : xmm)
        a(x.u64[0], x.u64[1]);
    a(mxcsr, fpu);
    for (Segment &s : seg)
        a(s);
    a(ldtr, tr, gdtr, idtr, cpl);
    a(cr0, cr2, cr3, cr4, efer, dr);
    a(star, lstar, cstar, sfmask, kernel_gs_base, sysenter_cs, sysenter_esp, sysenter_eip, tsc_aux, tsc_offset, pat,
      msrs);
    a(halted, monitor, wait_for_sipi, nmi_blocked, shadow);
}

} // namespace moscope::x86
