// SPDX-License-Identifier: BSD-3-Clause
// PUSH and POP of segment registers, which exec_system.cc takes over from the general forms. POP leaves its block by
// itself where what follows has to be looked up again (as lower_mov.hh).
#pragma once

#include "cpu/x86/decode/lower.hh"

namespace moscope::x86 {

Exec lower_push_segment(const Insn &, Op &);
Exec lower_pop_segment(const Insn &, Op &);

} // namespace moscope::x86
