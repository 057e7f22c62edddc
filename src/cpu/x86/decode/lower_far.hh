// SPDX-License-Identifier: BSD-3-Clause
// The far forms of JMP, CALL and RET (AMD 24594). The group of near branches passes them on to
// cpu/x86/exec/system/control.cc.
#pragma once

#include "cpu/x86/decode/lower.hh"

namespace moscope::x86 {

Exec lower_jmp_far(const Insn &, Op &);
Exec lower_call_far(const Insn &, Op &);
Exec lower_ret_far(const Insn &, Op &);

} // namespace moscope::x86
