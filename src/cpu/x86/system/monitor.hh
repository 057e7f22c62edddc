// SPDX-License-Identifier: BSD-3-Clause
// MONITOR and MWAIT (AMD 24594): a core waits until a line of memory is written or an interrupt arrives. Functional
// mode compares the line's content, so a write that does not change it does not end the wait. In detailed mode the wait
// ends when the core loses the line (cpu/x86/timed), as after any write; the manual allows it to end at any time.
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86 {

/// MONITOR of an address that was read just now.
void arm_monitor(Core &, Addr va);
/// MWAIT: true: the core is halted; false: the line was written since, or none is monitored. `masked_interrupts` end
/// the wait as well, without being taken.
bool begin_monitor_wait(Core &, bool masked_interrupts);
/// Wakes a waiting core if its line was written or an interrupt is pending.
void poll_monitor(Core &);
/// Ends a wait without an event of the guest, which the manual allows.
void end_monitor_wait(Core &);

} // namespace moscope::x86
