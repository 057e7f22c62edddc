// SPDX-License-Identifier: BSD-3-Clause
// The IO-APIC: Intel 82093AA data sheet, with the end-of-interrupt register of its successors (version 21h, as the
// AMD SP5100 register reference, 44413, has it; version 11h lacks it). An input is asserted or not: the polarity bit is
// stored but has no effect, because board and firmware tables agree on the polarity of each wire. An edge at a masked
// input is lost, as the data sheet says.
#pragma once

#include <array>

#include "dev/device.hh"
#include "dev/interrupts/apic_bus.hh"

namespace moscope::dev {

class IoApic final : public Device, public IrqLine, public EoiListener {
  public:
    static constexpr Addr kBase = 0xFEC0'0000;
    static constexpr Addr kSize = 0x1000;
    static constexpr unsigned kInputs = 24;

    IoApic(ApicBus &bus, std::uint8_t id, std::uint8_t version = 0x21);

    void set_irq(unsigned input, bool level) override;
    void end_of_interrupt(std::uint8_t vector) override;

    std::uint64_t read(Requester, unsigned range, Addr offset, unsigned size) override;
    void write(Requester, unsigned range, Addr offset, std::uint64_t value, unsigned size) override;
    void reset() override;
    void archive(Archive &) override;
    void describe(Firmware &) const override;

    std::uint8_t id() const { return static_cast<std::uint8_t>(id_ >> 24); }

  private:
    std::uint32_t read_register() const;
    void write_register(std::uint32_t value);
    void service(unsigned input, bool rose);
    bool has_eoi_register() const { return version_ >= 0x20; }

    ApicBus &bus_;
    const std::uint8_t reset_id_, version_;
    std::uint32_t id_ = 0;
    std::uint8_t select_ = 0;
    std::array<std::uint64_t, kInputs> table_{};
    std::array<bool, kInputs> asserted_{};
};

} // namespace moscope::dev
