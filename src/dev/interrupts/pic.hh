// SPDX-License-Identifier: BSD-3-Clause
// The two cascaded 8259A interrupt controllers of a PC (Intel 8259A data sheet; ports 20h, A0h) and the edge/level
// registers (ELCR, ports 4D0h-4D1h, as in Intel's 82371AB). They serve interrupts in virtual-wire mode until the
// operating system enables the IO-APIC: their output is a wire to LINT0 of the bootstrap core. A latched edge stays
// until it is acknowledged, even if the wire has been lowered since. The cascade input follows the slave's output.
#pragma once

#include <array>

#include "dev/interrupts/apic_bus.hh"
#include "dev/isa_device.hh"

namespace moscope::dev {

class PicPair final : public IsaDevice, public IrqLine, public ExtIntController {
  public:
    // Ranges 0, 1 and 2.
    static constexpr std::uint16_t kMasterPort = 0x20, kSlavePort = 0xA0, kElcrPort = 0x4D0;
    static constexpr std::uint8_t kSize = 2; ///< of each
    static constexpr unsigned kInputs = 16, kCascade = 2;

    PicPair(IrqLine &output, unsigned output_input);

    void set_irq(unsigned input, bool level) override;
    std::uint8_t acknowledge_ext_int() override;

    void reset() override;
    void archive(Archive &) override;

  private:
    std::uint8_t read8(unsigned range, Addr offset) override;
    void write8(unsigned range, Addr offset, std::uint8_t value) override;

    struct Chip {
        std::uint8_t requests = 0, mask = 0, in_service = 0, wires = 0;
        std::uint8_t level_inputs = 0; ///< ELCR
        std::uint8_t vector_base = 0;
        std::uint8_t lowest = 7;    ///< input with the lowest priority
        std::uint8_t init_step = 0; ///< which ICW comes next; 0: initialised
        bool level_mode = false, single = false, needs_icw4 = false;
        bool auto_eoi = false, rotate_on_auto_eoi = false, special_mask = false, special_nested = false;
        bool read_in_service = false, poll = false;

        bool level(unsigned input) const { return level_mode || (level_inputs >> input & 1); }
        void set_wire(unsigned input, bool level);
        void follow_levels();
        int highest(std::uint8_t bits) const;
        int pending(bool is_master) const;
        std::uint8_t acknowledge(int input);
        void end(int input);
        void archive(Archive &a) {
            a(requests, mask, in_service, wires, level_inputs, vector_base, lowest, init_step, level_mode, single,
              needs_icw4, auto_eoi, rotate_on_auto_eoi, special_mask, special_nested, read_in_service, poll);
        }
    };

    void update();
    void command(Chip &, std::uint8_t value);
    void data(Chip &, std::uint8_t value);
    std::uint8_t poll(Chip &);

    IrqLine &output_;
    const unsigned output_input_;
    std::array<Chip, 2> chips_;
};

} // namespace moscope::dev
