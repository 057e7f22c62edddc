// SPDX-License-Identifier: BSD-3-Clause
// Far control transfers (AMD 24593, sections 4.9 and 8.9; 24594 on CALL, JMP, RET and IRET): direct ones, through
// call gates, returns to the same and to outer privilege levels, in real, virtual-8086, protected, compatibility and
// long mode. Each checks everything first and changes the core's registers only when nothing can fault any more.
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86 {

/// Operand sizes `bytes` are 2, 4 or 8; `next` is the address after the instruction, where a call returns to and where
/// a task that is left goes on. On success State::rip is set. False: fault.
bool far_jump(Core &, std::uint16_t selector, std::uint64_t offset, unsigned bytes, std::uint64_t next);
bool far_call(Core &, std::uint16_t selector, std::uint64_t offset, unsigned bytes, std::uint64_t next);
/// `drop`: bytes of arguments taken off the stack.
bool far_return(Core &, unsigned bytes, unsigned drop);
/// IRET, IRETD, IRETQ; unblocks NMI.
bool interrupt_return(Core &, unsigned bytes, std::uint64_t next);

/// Whether instructions may be fetched from `offset` in `code`. False: #GP(0).
bool check_target(Core &, const Segment &code, std::uint64_t offset);

/// RFLAGS bits that POPF and IRET of this operand size may change at the current privilege level.
std::uint64_t changeable_flags(const Core &, unsigned bytes);
/// Changes the bits in `mask` to those of `value`.
void write_flags(Core &, std::uint64_t value, std::uint64_t mask);

} // namespace moscope::x86
