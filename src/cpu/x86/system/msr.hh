// SPDX-License-Identifier: BSD-3-Clause
// Model-specific registers (AMD 24593, appendix A; 31116, section 2.14): those with an effect on instructions, those of
// the machine (Platform), and those that only hold a value (CpuModel::msrs).
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86 {

namespace msr {
inline constexpr std::uint32_t tsc = 0x10, apic_base = 0x1b, sysenter_cs = 0x174, sysenter_esp = 0x175,
                               sysenter_eip = 0x176, debug_control = 0x1d9, pat = 0x277, mtrr_def_type = 0x2ff,
                               mtrr_phys_base0 = 0x200, efer = 0xc0000080, star = 0xc0000081, lstar = 0xc0000082,
                               cstar = 0xc0000083, sfmask = 0xc0000084, fs_base = 0xc0000100, gs_base = 0xc0000101,
                               kernel_gs_base = 0xc0000102, tsc_aux = 0xc0000103, perf_ctr0 = 0xc0010004,
                               syscfg = 0xc0010010, top_mem = 0xc001001a, top_mem2 = 0xc001001d,
                               pstate_control = 0xc0010062, pstate_status = 0xc0010063;
/// DEBUGCTL.BTF: RFLAGS.TF steps control transfers only.
inline constexpr std::uint64_t kBranchStep = 2;
} // namespace msr

/// False: #GP (the register is unknown, read-only, or the value is refused).
bool read_msr(Core &, std::uint32_t number, std::uint64_t &value);
bool write_msr(Core &, std::uint32_t number, std::uint64_t value);

/// The remembered register of this number; null: there is none.
RememberedMsr *find_msr(Core &, std::uint32_t number);

/// After RESET: the model's values, and the memory layout as the firmware would have left it (TOP_MEM, MTRRs).
void reset_msrs(Core &);

/// The time-stamp counter.
std::uint64_t time_stamp(Core &);

} // namespace moscope::x86
