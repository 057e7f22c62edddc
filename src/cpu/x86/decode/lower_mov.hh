// SPDX-License-Identifier: BSD-3-Clause
// The forms of MOV that the system instructions take over from the general ones (one mnemonic, three groups).
// They end their block by themselves: they return Core::leave_after with Exit::restart where what follows has to
// be looked up again.
#pragma once

#include "cpu/x86/decode/lower.hh"

namespace moscope::x86 {

Exec lower_mov_segment(const Insn &, Op &);
Exec lower_mov_control(const Insn &, Op &);

} // namespace moscope::x86
