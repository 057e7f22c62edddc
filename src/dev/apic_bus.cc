// SPDX-License-Identifier: BSD-3-Clause
#include "dev/apic_bus.hh"

#include "dev/lapic.hh"

namespace moscope::dev {

bool ApicBus::deliver(const ApicMessage &message, const LocalApic *but) {
    if (message.mode == Delivery::lowest_priority) {
        // One of those addressed takes it: the one with the lowest arbitration priority, of equals the first.
        LocalApic *best = nullptr;
        for (LocalApic *a : apics_)
            if (a != but && a->addressed_by(message) && a->enabled() &&
                (!best || a->arbitration_priority() < best->arbitration_priority()))
                best = a;
        return best && best->accept(message);
    }
    bool taken = false;
    for (LocalApic *a : apics_)
        if (a != but && a->addressed_by(message))
            taken |= a->accept(message);
    return taken;
}

void ApicBus::msi(std::uint64_t address, std::uint32_t data) {
    ApicMessage m;
    m.destination = static_cast<std::uint8_t>(address >> 12);
    m.logical = address & 4;
    m.mode = static_cast<Delivery>((data >> 8) & 7);
    m.vector = static_cast<std::uint8_t>(data);
    m.level = data & 0x8000;
    m.assert_ = !m.level || (data & 0x4000);
    if (m.mode != Delivery::startup && m.mode != Delivery::reserved) // no such messages from devices
        deliver(m);
}

} // namespace moscope::dev
