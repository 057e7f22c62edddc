// SPDX-License-Identifier: BSD-3-Clause
// Writes of the control registers and EFER, with their checks and everything that follows from them (AMD 24593,
// sections 3.1, 13.1 and 14.6). All functions return false on a fault.
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86 {

/// The instruction runs at CPL 0; otherwise #GP(0) is raised.
inline bool privileged(Core &c) { return c.cpl == 0 || c.raise(exc_gp, 0); }

bool write_cr0(Core &, std::uint64_t);
bool write_cr3(Core &, std::uint64_t);
bool write_cr4(Core &, std::uint64_t);
bool write_efer(Core &, std::uint64_t);

} // namespace moscope::x86
