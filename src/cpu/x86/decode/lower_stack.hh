// SPDX-License-Identifier: BSD-3-Clause
// PUSH and POP of segment registers, which cpu/x86/exec/system takes over from the general forms (AMD 24594). POP ends
// its block itself if the next instruction must be looked up again (as in lower_mov.hh).
#pragma once

#include "cpu/x86/decode/lower.hh"

namespace moscope::x86 {

Exec lower_push_segment(const Insn &, Op &);
Exec lower_pop_segment(const Insn &, Op &);

} // namespace moscope::x86
