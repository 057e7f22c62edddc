// SPDX-License-Identifier: BSD-3-Clause
// The sixteen interrupt wires of the ISA bus. Each goes to the 8259 pair and to the IO-APIC input of the same number;
// the timer's goes to IO-APIC input 2, as the override in the MADT says. While the HPET's legacy replacement is on, its
// timers 0 and 1 drive the wires 0 and 8, and the PIT and the RTC do not (IA-PC HPET specification 1.0a, section
// 2.3.4). The HPET's checkpoint section holds the state.
#pragma once

#include <array>

#include "dev/irq.hh"

namespace moscope::dev {

class IsaInterrupts final : public IrqLine {
  public:
    static constexpr unsigned kWires = 16, kTimer = 0, kClock = 8;
    static constexpr unsigned kTimerGsi = 2; ///< IO-APIC input of the timer

    IsaInterrupts(IrqLine &pic, IrqLine &ioapic) : pic_(pic), ioapic_(ioapic) {}

    static constexpr unsigned gsi(unsigned wire) { return wire == kTimer ? kTimerGsi : wire; }

    /// Called by the device that owns the wire.
    void set_irq(unsigned wire, bool level) override {
        if (wire >= kWires)
            return;
        levels_[wire] = level;
        if (!(replaced_ && (wire == kTimer || wire == kClock)))
            drive(wire, level);
    }
    /// Called by the HPET, for the wires 0 and 8.
    void set_replacement_irq(unsigned wire, bool level) {
        if (replaced_)
            drive(wire, level);
    }
    void set_replaced(bool on) {
        if (replaced_ == on)
            return;
        replaced_ = on;
        for (const unsigned wire : {kTimer, kClock})
            drive(wire, !on && levels_[wire]);
    }
    void archive(Archive &a) { a(levels_, replaced_); }

  private:
    void drive(unsigned wire, bool level) {
        pic_.set_irq(wire, level);
        ioapic_.set_irq(gsi(wire), level);
    }
    IrqLine &pic_;
    IrqLine &ioapic_;
    std::array<bool, kWires> levels_{};
    bool replaced_ = false;
};

} // namespace moscope::dev
