// SPDX-License-Identifier: BSD-3-Clause
// Hardware task switches of legacy protected mode (AMD 24593, chapter 12): the state goes to the old task-state
// segment and comes from the new one. Long mode has none.
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86 {

enum class TaskSwitch : std::uint8_t { jump, call, interrupt, iret };

/// `next`: the instruction pointer that the old task goes on with; `error`: pushed onto the new task's stack. False:
/// fault. A fault in the new task, and the trap of its T bit, have been delivered on return.
bool task_switch(Core &, std::uint16_t selector, TaskSwitch, std::uint64_t next, const std::uint32_t *error = nullptr);
/// IRET with RFLAGS.NT: to the task in the link field of the current TSS.
bool task_return(Core &, std::uint64_t next);

} // namespace moscope::x86
