// SPDX-License-Identifier: BSD-3-Clause
// PUSH and POP of segment registers (AMD 24594). The group of general pushes and pops passes them on to
// cpu/x86/exec/system. POP ends its block itself if the next instruction must be looked up again (as in lower_mov.hh).
#pragma once

#include "cpu/x86/decode/lower.hh"

namespace moscope::x86 {

Exec lower_push_segment(const Insn &, Op &);
Exec lower_pop_segment(const Insn &, Op &);

} // namespace moscope::x86
