// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/system/monitor.hh"

#include <cstring>

#include "cpu/x86/mmu/paging.hh"

namespace moscope::x86 {

namespace {

bool written(const Core &c) {
    const std::byte *bytes = c.phys.host(PhysAddr(c.monitor.line));
    return !bytes || std::memcmp(bytes, c.monitor.content, sizeof c.monitor.content) != 0;
}

} // namespace

void arm_monitor(Core &c, Addr va) {
    c.monitor = {};
    PhysAddr at;
    if (!peek_translation(c, va, at))
        return;
    const Addr line = at.value & ~Addr{sizeof c.monitor.content - 1};
    const std::byte *bytes = c.phys.host(PhysAddr(line));
    if (!bytes) // device registers are not monitored
        return;
    c.monitor.armed = true;
    c.monitor.line = line;
    std::memcpy(c.monitor.content, bytes, sizeof c.monitor.content);
}

bool begin_monitor_wait(Core &c, bool masked_interrupts) {
    if (!c.monitor.armed || written(c)) {
        c.monitor.armed = false;
        return false;
    }
    c.monitor.armed = false;
    c.monitor.waiting = true;
    c.monitor.masked_interrupts = masked_interrupts;
    c.halted = true;
    return true;
}

void poll_monitor(Core &c) {
    if (!c.monitor.waiting)
        return;
    const bool interrupt = c.monitor.masked_interrupts && (c.signals.pending & dev::CoreSignals::intr);
    if (!c.halted || interrupt || written(c)) // not halted: an interrupt has ended the wait
        end_monitor_wait(c);
}

void end_monitor_wait(Core &c) {
    if (!c.monitor.waiting)
        return;
    c.monitor = {};
    c.halted = false;
}

} // namespace moscope::x86
