// SPDX-License-Identifier: BSD-3-Clause
// The sixteen interrupt wires of the ISA bus: each goes to the 8259 pair and to the IO-APIC, input for input, but for
// the timer, which is at IO-APIC input 2 (what the MADT's override says). When the HPET's legacy replacement is on, its
// timers 0 and 1 have the wires 0 and 8 and what the PIT and the RTC do is not seen (IA-PC HPET specification 1.0a,
// section 2.3.4). Its state is kept with the HPET's.
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

    /// From the device that owns the wire.
    void set_irq(unsigned wire, bool level) override {
        if (wire >= kWires)
            return;
        levels_[wire] = level;
        if (!(replaced_ && (wire == kTimer || wire == kClock)))
            drive(wire, level);
    }
    /// From the HPET, for the wires 0 and 8.
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
