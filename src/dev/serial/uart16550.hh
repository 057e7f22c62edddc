// SPDX-License-Identifier: BSD-3-Clause
// A 16550A serial port: National Semiconductor PC16550D data sheet; ports as COM1 of a PC (3F8h, IRQ 4). A character
// takes a fixed simulated time, a parameter: at the true 115200 baud, a boot log would take seconds. If the parameter
// is 0, divisor and line control give the time. A written byte reaches the output at once; the transmitter's registers
// and interrupt change at the character's end. The shift register and the FIFO are modelled as one buffer. As on a PC,
// the interrupt wire is driven only while OUT2 is set.
#pragma once

#include <deque>
#include <functional>
#include <string_view>

#include "dev/irq.hh"
#include "dev/isa_device.hh"
#include "dev/time.hh"

namespace moscope::dev {

class Uart16550 final : public IsaDevice {
  public:
    static constexpr std::uint16_t kPort = 0x3F8;
    static constexpr unsigned kIrq = 4;

    struct Config {
        Tick character_time = 1000 * kTicksPerNs; ///< 0: from divisor and line control
        bool flow_control = true;                 ///< the sender waits for room in the FIFO; false: the FIFO overruns
    };
    using Output = std::function<void(std::uint8_t)>;

    Uart16550(EventQueue &queue, const TimeSource &time, IrqLine &irq, unsigned input, Output output, Config config);
    Uart16550(EventQueue &queue, const TimeSource &time, IrqLine &irq, unsigned input, Output output);

    /// Sends characters to the port, one per character time from now on. At most 1 MiB waits; the rest is dropped.
    void push(std::string_view bytes);
    /// Number of pushed characters that have not reached the FIFO.
    std::size_t waiting() const { return line_.size(); }

    void reset() override;
    void archive(Archive &) override;

  private:
    std::uint8_t read8(unsigned range, Addr offset) override;
    void write8(unsigned range, Addr offset, std::uint8_t value) override;

    static constexpr unsigned kFifo = 16;

    Tick character_time() const;
    unsigned capacity() const { return fifo_enabled_ ? kFifo : 1; }
    unsigned trigger() const;
    void run_to(Tick now);
    void plan();
    void ring(Tick now);
    void receive(std::uint8_t byte, Tick now);
    void transmit(std::uint8_t byte, Tick now);
    std::uint8_t line_status() const;
    std::uint8_t modem_lines() const;
    void modem_changed(std::uint8_t before);
    unsigned interrupt_id() const;
    void update_irq();

    const TimeSource &time_;
    IrqLine &irq_;
    const unsigned input_;
    Output output_;
    const Config config_;
    Alarm alarm_;

    std::uint8_t ier_ = 0, lcr_ = 0, mcr_ = 0, scratch_ = 0, errors_ = 0, modem_delta_ = 0, trigger_code_ = 0;
    std::uint16_t divisor_ = 1;
    bool fifo_enabled_ = false;
    bool empty_pending_ = false;   ///< transmitter-empty interrupt
    bool timeout_pending_ = false; ///< received characters lie below the trigger level for four character times
    std::deque<std::uint8_t> received_;
    std::uint32_t sending_ = 0; ///< characters in the transmitter
    Tick sent_ = kNever;        ///< when the character being sent has left
    Tick arrival_ = kNever;     ///< when the next character from the line has arrived
    Tick timeout_ = kNever;
    std::deque<std::uint8_t> line_;
};

} // namespace moscope::dev
