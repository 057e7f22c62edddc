// SPDX-License-Identifier: BSD-3-Clause
// The forms of MOV to and from segment, control and debug registers (AMD 24594). The group of general moves passes them
// on to cpu/x86/exec/system. A form after which the next instruction must be looked up again ends its block itself: it
// returns Core::leave_after with Exit::restart.
#pragma once

#include "cpu/x86/decode/lower.hh"

namespace moscope::x86 {

Exec lower_mov_segment(const Insn &, Op &);
Exec lower_mov_control(const Insn &, Op &);

} // namespace moscope::x86
