// SPDX-License-Identifier: BSD-3-Clause
// Exceptions and interrupts (AMD 24593, chapter 8): delivery through the IDT in real, protected, compatibility
// and long mode, privilege changes with TSS and IST, double and triple faults, and the core's interrupt pins (INTR,
// NMI, INIT, SIPI).
#pragma once

#include "cpu/x86/core.hh"

namespace moscope::x86 {

enum class Source : std::uint8_t { exception, external, software, nmi };

/// Enters the handler of `vector`, which will return to rip. False: a fault during delivery; it is in Core::fault.
bool enter_handler(Core &, unsigned vector, Source, bool has_error, std::uint32_t error);

/// Delivers Core::fault, whatever it leads to: handler, #DF, or shutdown (Core::exit set).
void deliver_fault(Core &);

/// Checks the pins between instructions and takes what may be taken now. True if the state changed.
bool poll_interrupts(Core &);
/// True if an interrupt would be taken now (wakes a halted core).
bool interrupt_deliverable(const Core &);
/// True if poll_interrupts would change anything: it takes an interrupt, or drops a signal that has no effect.
bool interrupts_need_poll(const Core &);

/// Sets the state after RESET, or after INIT if `init`. The boot processor then starts; the others wait for a SIPI.
void reset(Core &, bool init);

} // namespace moscope::x86
