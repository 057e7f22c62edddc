// SPDX-License-Identifier: BSD-3-Clause
// The ports by which software resets a PC: CF9h (reset control register, as in Intel's 82371AB and AMD's SP5100), 92h
// (system control port A), and 64h (pulse commands of a keyboard controller). There is no keyboard controller: its
// ports read as ones, so drivers find none. The reset pulse works, as on boards whose chip set implements it.
#pragma once

#include "dev/byte_device.hh"
#include "dev/power.hh"

namespace moscope::dev {

class ResetControl final : public ByteDevice {
  public:
    // Ranges 0, 1 and 2, one port each.
    static constexpr Addr kResetPort = 0xCF9, kControllerPort = 0x64, kSystemPortA = 0x92;
    static constexpr std::uint8_t kReset = 6; ///< to port CF9h

    explicit ResetControl(OnPower on_power) : ByteDevice("reset"), on_power_(std::move(on_power)) {}

    void reset() override { control_ = port_a_ = 0; }
    void archive(Archive &a) override {
        a.section(name());
        a(control_, port_a_);
    }
    void describe(Firmware &) const override;

  private:
    std::uint8_t read8(unsigned range, Addr offset) override;
    void write8(unsigned range, Addr offset, std::uint8_t value) override;

    OnPower on_power_;
    std::uint8_t control_ = 0, port_a_ = 0;
};

} // namespace moscope::dev
