// SPDX-License-Identifier: BSD-3-Clause
// The interface between devices and cores for interrupts. A core owns its CoreSignals, and its local APIC raises them.
// The core takes the vector from its InterruptSource (the local APIC) and passes writes of CR8 and IA32_APIC_BASE to
// it. Neither side knows the other's type.
#pragma once

#include <cstdint>

#include "sim/archive.hh"

namespace moscope::dev {

/// Signals that are pending at a core's pins.
struct CoreSignals {
    enum Bit : std::uint32_t { intr = 1, nmi = 2, init = 4, sipi = 8, smi = 16, stop = 32 };
    std::uint32_t pending = 0;
    std::uint8_t sipi_vector = 0;

    void raise(Bit b) { pending |= b; }
    void lower(Bit b) { pending &= ~static_cast<std::uint32_t>(b); }
    void archive(Archive &a) { a(pending, sipi_vector); }
};

/// The source of a core's maskable interrupts, as the core sees it.
class InterruptSource {
  public:
    /// Fields of IA32_APIC_BASE, and the address of the source's registers at reset.
    static constexpr std::uint64_t kBaseEnable = 1u << 11, kBaseAddress = 0x0000'FFFF'FFFF'F000;
    static constexpr std::uint64_t kRegisters = 0xFEE0'0000;

    virtual ~InterruptSource() = default;
    /// Takes the next interrupt: it becomes in service, and its vector is returned (for an ExtINT, the 8259's answer);
    /// -1: none. The source then sets `intr` of the core's signals to whether more interrupts are pending.
    virtual int acknowledge() = 0;
    /// CR8, the task-priority class (bits 3:0).
    virtual std::uint8_t cr8() const = 0;
    virtual void set_cr8(std::uint8_t) = 0;
    /// IA32_APIC_BASE (MSR 1Bh). set_apic_base returns false if writing the value must fault.
    virtual std::uint64_t apic_base() const = 0;
    virtual bool set_apic_base(std::uint64_t) = 0;
    /// The core received INIT: the local APIC resets everything but its identifier.
    virtual void init_reset() = 0;
};

/// Wires to interrupt inputs. Each input is programmed for levels or edges.
class IrqLine {
  public:
    virtual ~IrqLine() = default;
    virtual void set_irq(unsigned input, bool level) = 0;
};

/// The target of message-signalled interrupts, which are writes of `data` to `address` in FEEx_xxxxh.
class MsiTarget {
  public:
    virtual ~MsiTarget() = default;
    virtual void msi(std::uint64_t address, std::uint32_t data) = 0;
};

} // namespace moscope::dev
