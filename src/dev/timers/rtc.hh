// SPDX-License-Identifier: BSD-3-Clause
// The real-time clock with 128 bytes of battery-backed memory: Motorola MC146818A data sheet; ports 70h-71h, ISA wire
// 8, century in byte 32h as in PCs. The date at simulated time 0 is fixed at construction, so that runs are
// reproducible, and advances with simulated time. Updates take the time of a 32.768 kHz time base: UIP rises 2228 us
// before the second changes. Unlike in the real part, registers read during an update are valid. A write of the day
// of the week has no effect: the day follows the date.
#pragma once

#include <array>

#include "dev/irq.hh"
#include "dev/isa_device.hh"
#include "dev/time.hh"

namespace moscope::dev {

class Rtc final : public IsaDevice {
  public:
    static constexpr std::uint16_t kPort = 0x70;
    static constexpr unsigned kIrq = 8;
    static constexpr std::int64_t kEpoch = 1'286'150'400; ///< 2010-10-04 00:00:00 UTC, in seconds since 1970
    static constexpr unsigned kCentury = 0x32;

    Rtc(EventQueue &queue, const TimeSource &time, IrqLine &irq, unsigned input, std::int64_t epoch = kEpoch);

    /// The date that the clock shows, in seconds since 1970 if it is UTC.
    std::int64_t seconds();

    /// Power-on with a good battery: the memory and the date stay.
    void reset() override;
    void archive(Archive &) override;
    void describe(Firmware &) const override;

  private:
    std::uint8_t read8(unsigned range, Addr offset) override;
    void write8(unsigned range, Addr offset, std::uint8_t value) override;

    bool running() const;
    std::int64_t seconds_at(Tick now) const;
    Tick period() const;
    bool updating(Tick now) const;
    std::uint8_t encode(unsigned value) const;
    unsigned decode(std::uint8_t value) const;
    std::uint8_t encode_hour(unsigned hour) const;
    void show(std::int64_t date);
    std::int64_t shown() const;
    bool alarm_at(std::int64_t date) const;
    void run_to(Tick now);
    void plan();
    void update_irq();
    void write_register(unsigned index, std::uint8_t value, Tick now);

    const TimeSource &time_;
    IrqLine &irq_;
    const unsigned input_;
    Alarm alarm_;
    std::array<std::uint8_t, 128> memory_{};
    std::uint8_t index_ = 0;
    std::int64_t base_;        ///< date at base_tick_, while the clock runs
    Tick base_tick_ = 0;       ///< when a second began
    std::int64_t seen_ = 0;    ///< seconds since base_tick_ that have been acted upon
    std::int64_t periods_ = 0; ///< periods of the periodic interrupt that have been acted upon
};

} // namespace moscope::dev
