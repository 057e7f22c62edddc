// SPDX-License-Identifier: BSD-3-Clause
// Where interrupts cross between devices and cores. A core owns its CoreSignals, which its local APIC raises; a
// core takes the vector from its InterruptSource (the local APIC) and tells it about CR8 and IA32_APIC_BASE.
// Neither side knows the other's type.
#pragma once

#include <cstdint>

#include "sim/archive.hh"

namespace moscope::dev {

/// What is pending at a core's pins.
struct CoreSignals {
    enum Bit : std::uint32_t { intr = 1, nmi = 2, init = 4, sipi = 8, smi = 16, stop = 32 };
    std::uint32_t pending = 0;
    std::uint8_t sipi_vector = 0;

    void raise(Bit b) { pending |= b; }
    void lower(Bit b) { pending &= ~static_cast<std::uint32_t>(b); }
    void archive(Archive &a) { a(pending, sipi_vector); }
};

/// The core's view of what delivers its maskable interrupts.
class InterruptSource {
  public:
    virtual ~InterruptSource() = default;
    /// The vector of the interrupt to be taken now, which thereby becomes in service (for an ExtINT, the 8259's
    /// answer); the source raises or lowers `intr` in the core's signals to match what is left. -1: none.
    virtual int acknowledge() = 0;
    /// CR8, the task-priority class (bits 3:0).
    virtual std::uint8_t cr8() const = 0;
    virtual void set_cr8(std::uint8_t) = 0;
    /// IA32_APIC_BASE (MSR 1Bh). set returns false where the value must fault.
    virtual std::uint64_t apic_base() const = 0;
    virtual bool set_apic_base(std::uint64_t) = 0;
    /// INIT arrived at the core: the local APIC resets all but its identifier.
    virtual void init_reset() = 0;
};

/// A wire to an interrupt input, level or edge as the input is programmed.
class IrqLine {
  public:
    virtual ~IrqLine() = default;
    virtual void set_irq(unsigned input, bool level) = 0;
};

/// Where message-signalled interrupts go: a write of `data` to `address` in FEEx_xxxxh.
class MsiTarget {
  public:
    virtual ~MsiTarget() = default;
    virtual void msi(std::uint64_t address, std::uint32_t data) = 0;
};

} // namespace moscope::dev
