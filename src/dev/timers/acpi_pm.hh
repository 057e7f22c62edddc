// SPDX-License-Identifier: BSD-3-Clause
// The fixed power-management hardware of ACPI 4.0, section 4.7.3: PM1 status, enable and control, and the 3.579545 MHz
// timer with 32 bits. There is no legacy mode: SCI_EN is always set. Sleep type 5 with SLP_EN turns the machine off,
// other types do nothing. The SCI is ISA wire 9.
#pragma once

#include "dev/byte_device.hh"
#include "dev/irq.hh"
#include "dev/power.hh"
#include "dev/time.hh"

namespace moscope::dev {

class AcpiPm final : public ByteDevice {
  public:
    static constexpr Addr kPort = 0x800, kSize = 0x10;          // the usual setting of AMD's south bridges
    static constexpr Addr kEvent = 0, kControl = 4, kTimer = 8; ///< from kPort
    static constexpr unsigned kSci = 9;
    static constexpr std::uint8_t kSleepTypeOff = 5;

    AcpiPm(EventQueue &queue, const TimeSource &time, IrqLine &irq, unsigned input, OnPower on_power);

    /// Presses the power button, which makes an operating system that enabled the event shut down.
    void press_power_button();

    void reset() override;
    void archive(Archive &) override;
    void describe(Firmware &) const override;

  private:
    std::uint8_t read8(unsigned range, Addr offset) override;
    void write8(unsigned range, Addr offset, std::uint8_t value) override;

    void run_to(Tick now);
    void update();
    void plan();

    const TimeSource &time_;
    IrqLine &irq_;
    const unsigned input_;
    OnPower on_power_;
    Alarm alarm_;
    std::uint16_t status_ = 0, enable_ = 0, control_ = 1;
    std::uint32_t latched_timer_ = 0; ///< the upper bytes of a timer read byte by byte
    std::int64_t toggles_ = 0;        ///< of the timer's top bit, seen so far
};

} // namespace moscope::dev
