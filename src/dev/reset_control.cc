// SPDX-License-Identifier: BSD-3-Clause
#include "dev/reset_control.hh"

#include "dev/devices.hh"
#include "dev/firmware/firmware.hh"

namespace moscope::dev {

void ResetControl::describe(Firmware &f) const {
    f.power.reset_port = kResetPort;
    f.power.reset_value = kReset;
    f.power.has_8042 = false;
}

std::uint8_t ResetControl::read8(unsigned range, Addr offset) {
    if (offset != 0)
        return 0xFF;
    return range == 0 ? control_ : range == 2 ? port_a_ : 0xFF;
}

void ResetControl::write8(unsigned range, Addr offset, std::uint8_t value) {
    if (offset != 0)
        return;
    bool pulse = false;
    if (range == 0) { // reset on the rising edge of bit 2
        pulse = (value & 4) && !(control_ & 4);
        control_ = value & 0xA;
    } else if (range == 1) { // commands F0h-FFh pulse output bits that are 0; bit 0 is the reset
        pulse = (value & 0xF1) == 0xF0;
    } else if (range == 2) {
        pulse = (value & 1) && !(port_a_ & 1);
        port_a_ = value & 3;
    }
    if (pulse && on_power_)
        on_power_(PowerEvent::reset);
}

namespace {

/// The PCI host bridge owns the ports around CF9h and passes that one on.
const RegisteredDevice registered(80, "reset", [](Devices &d) {
    auto &reset = d.add<ResetControl>(d.on_power);
    d.ports.map(ResetControl::kControllerPort, 1, reset, 1);
    d.ports.map(ResetControl::kSystemPortA, 1, reset, 2);
});

} // namespace

} // namespace moscope::dev
