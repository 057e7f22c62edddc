// SPDX-License-Identifier: BSD-3-Clause
// The programmable interval timer: Intel 8254 data sheet; ports 40h-43h, and the system control port 61h of a PC (gate
// and output of channel 2, speaker enable, refresh toggle). It counts edges of a 1.193182 MHz clock, a twelfth of the
// crystal's; a written count is loaded at the next edge. The output of channel 0 is the interrupt wire; channel 1
// drives nothing.
#pragma once

#include <array>

#include "dev/irq.hh"
#include "dev/isa_device.hh"
#include "dev/time.hh"

namespace moscope::dev {

class Pit final : public IsaDevice {
  public:
    // Ranges 0 and 1.
    static constexpr std::uint16_t kPort = 0x40, kControlPort = 0x61;
    static constexpr unsigned kIrq = 0;

    Pit(EventQueue &queue, const TimeSource &time, IrqLine &irq, unsigned input);

    void reset() override;
    void archive(Archive &) override;

  private:
    std::uint8_t read8(unsigned range, Addr offset) override;
    void write8(unsigned range, Addr offset, std::uint8_t value) override;

    /// One counter. Edges are counted from tick 0; `edge` is the last one at or before now.
    struct Channel {
        std::uint8_t mode = 3, access = 3;
        bool bcd = false, gate = true;
        bool counting = false; ///< a count was loaded (or, in modes 1 and 5, triggered)
        bool write_high = false, read_high = false;
        std::uint8_t low_byte = 0; ///< first byte of a count of two
        bool latched = false, status_latched = false;
        std::uint16_t latch = 0;
        std::uint8_t status = 0;
        std::uint32_t count = 0; ///< where counting down starts: 1..65536 (10000 in BCD); 0 before the first load
        std::uint32_t next = 0;  ///< written count, loaded at the end of the period or at the trigger; 0: none
        std::int64_t start = 0;  ///< edge of loading
        std::int64_t held = -1;  ///< counts done when the gate stopped the counter; -1: runs

        bool periodic() const { return mode == 2 || mode == 3; }
        bool triggered() const { return mode == 1 || mode == 5; }
        void advance(std::int64_t edge);
        std::int64_t done(std::int64_t edge) const;
        bool out(std::int64_t edge) const;
        std::uint16_t value(std::int64_t edge) const;
        /// The first edge after `edge` at which the output changes; negative: none.
        std::int64_t next_change(std::int64_t edge) const;
        void program(std::uint8_t control);
        void load(std::uint32_t raw, std::int64_t edge);
        void set_gate(bool level, std::int64_t edge);
        std::uint8_t read_byte(std::int64_t edge);
        void write_byte(std::uint8_t value, std::int64_t edge);
        void latch_count(std::int64_t edge);
        void latch_status(std::int64_t edge);
        void archive(Archive &a) {
            a(mode, access, bcd, gate, counting, write_high, read_high, low_byte, latched, status_latched, latch,
              status, count, next, start, held);
        }
    };

    void run_to(Tick now);
    void drive(std::int64_t edge);

    const TimeSource &time_;
    IrqLine &irq_;
    const unsigned input_;
    Alarm alarm_;
    std::array<Channel, 3> channels_;
    std::uint8_t control_ = 0; ///< port 61h, bits 3:0
    Tick change_ = kNever;     ///< next change of channel 0's output
};

} // namespace moscope::dev
