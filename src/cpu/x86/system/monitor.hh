// SPDX-License-Identifier: BSD-3-Clause
// MONITOR and MWAIT (AMD 24594): a core that waits until a line of memory is written, or an interrupt arrives. In functional
// mode whether the line was written is seen by its content: a write of what was there already wakes nobody. In detailed mode
// the wait ends when the core loses the line (cpu/x86/timed), as any write makes it do; the manual lets it end at any time.
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86 {

/// MONITOR of an address that was read just now.
void arm_monitor(Core &, Addr va);
/// MWAIT: true: the core is halted; false: the line was written since, or none is monitored. `masked_interrupts` end the
/// wait as well, without being taken.
bool begin_monitor_wait(Core &, bool masked_interrupts);
/// Wakes a core that waits if there is reason to.
void poll_monitor(Core &);
/// Ends a wait for no reason of the guest's.
void end_monitor_wait(Core &);

} // namespace moscope::x86
