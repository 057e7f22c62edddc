// SPDX-License-Identifier: BSD-3-Clause
// Lets the 64-bit integer core link before segmentation, interrupts and far transfers are there; this file goes
// when segment.cc, interrupts.cc and exec_control.cc come. Any fault is a shutdown here.
#include "cpu/x86/interrupts.hh"
#include "cpu/x86/lower_far.hh"
#include "cpu/x86/lower_mov.hh"
#include "cpu/x86/lower_stack.hh"
#include "cpu/x86/stack.hh"

namespace moscope::x86 {

bool legacy_address(Core &c, const Op *, unsigned, bool, Addr &) { return c.raise(exc_gp, 0); }
bool stack_address(Core &c, std::uint64_t, unsigned, bool, Addr &) { return c.raise(exc_ss, 0); }
void deliver_fault(Core &c) { c.exit = Exit::shutdown; }
bool poll_interrupts(Core &) { return false; }
Exec lower_mov_segment(const Insn &, Op &) { return nullptr; }
Exec lower_mov_control(const Insn &, Op &) { return nullptr; }
Exec lower_push_segment(const Insn &, Op &) { return nullptr; }
Exec lower_pop_segment(const Insn &, Op &) { return nullptr; }
Exec lower_jmp_far(const Insn &, Op &) { return nullptr; }
Exec lower_call_far(const Insn &, Op &) { return nullptr; }
Exec lower_ret_far(const Insn &, Op &) { return nullptr; }

} // namespace moscope::x86
