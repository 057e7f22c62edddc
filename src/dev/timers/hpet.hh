// SPDX-License-Identifier: BSD-3-Clause
// The high-precision event timer: IA-PC HPET specification 1.0a, as AMD's south bridges have it (SP5100 register
// reference, 44413): vendor 1022h, three timers at 14.318180 MHz, timer 0 periodic, routing to IO-APIC inputs 22 and 23
// or legacy replacement, no FSB interrupts. The counter has 64 bits here, 32 in that part.
#pragma once

#include <array>

#include "dev/device.hh"
#include "dev/interrupts/isa_interrupts.hh"
#include "dev/time.hh"

namespace moscope::dev {

class Hpet final : public Device {
  public:
    static constexpr Addr kBase = 0xFED0'0000;
    static constexpr Addr kSize = 0x400;
    static constexpr unsigned kTimers = 3;
    static constexpr std::uint32_t kRoutes = 0x00C0'0000; ///< IO-APIC inputs to which a timer can be routed
    static constexpr std::uint32_t kPeriod = 69'841'279;  ///< of the counter, fs
    static constexpr std::uint32_t kIdLow = 0x1022'A201;  ///< vendor, legacy routing, 64 bits, 3 timers, revision 1

    /// `gsi`: the IO-APIC's inputs, for timers that are not routed to the ISA wires.
    Hpet(EventQueue &queue, const TimeSource &time, IsaInterrupts &isa, IrqLine &gsi);

    std::uint64_t read(Requester, unsigned range, Addr offset, unsigned size) override;
    void write(Requester, unsigned range, Addr offset, std::uint64_t value, unsigned size) override;
    void reset() override;
    void archive(Archive &) override;
    void describe(Firmware &) const override;

  private:
    struct Timer {
        std::uint64_t config = 0;
        std::uint64_t comparator = ~0ull;
        std::uint64_t period = 0;
        std::int64_t match = -1; ///< edge of the next match; -1: none that can be reached
        bool line = false;       ///< level of its wire
        void archive(Archive &a) { a(config, comparator, period, match, line); }
    };

    bool enabled() const;
    bool legacy() const;
    std::uint64_t counter(std::int64_t edge) const;
    std::uint64_t read_register(Addr offset, std::int64_t edge) const;
    void write_register(Addr offset, std::uint64_t value, std::uint64_t mask, std::int64_t edge);
    void write_config(Timer &, std::uint64_t value);
    void find_match(Timer &, std::int64_t edge);
    void run_to(Tick now);
    void plan();
    void fire(unsigned n);
    void drive(unsigned n, bool level);
    void drive_levels();

    const TimeSource &time_;
    IsaInterrupts &isa_;
    IrqLine &gsi_;
    Alarm alarm_;
    std::uint64_t config_ = 0, status_ = 0;
    std::uint64_t base_ = 0; ///< counter at edge start_, or now if it is stopped
    std::int64_t start_ = 0;
    std::array<Timer, kTimers> timers_;
};

} // namespace moscope::dev
