// SPDX-License-Identifier: BSD-3-Clause
// The PCI host bridge: configuration mechanism #1 at ports CF8h and CFCh (PCI local bus specification 3.0, section
// 3.2.2.3.2; with AMD's extension of the register number to 12 bits by bits 27:24, AMD 31116 section 2.11), enhanced
// configuration access (PCI Express base specification, section 7.2.2), the windows of memory that bus 0 decodes, and
// INTA to INTD of its devices swizzled to four inputs of the I/O APIC. It is itself function 00:00.0.
//
// A guest may program overlapping or stray base addresses. If several functions decode an address, the one that was
// added first responds; an address that no function decodes reads as ones.
#pragma once

#include <array>
#include <vector>

#include "dev/bus.hh"
#include "dev/device.hh"
#include "dev/irq.hh"
#include "dev/pci/pci.hh"

namespace moscope::dev {

class PciHost final : public Device, private PciUpstream {
  public:
    struct Parameters {
        Addr ecam = 0xe0000000;     ///< 1 MiB for each bus
        std::uint8_t last_bus = 63; ///< last bus that ECAM reaches; all functions are on bus 0
        Addr window = 0xd0000000;   ///< memory for base address registers, below 4 GiB
        std::uint64_t window_size = 0x10000000;
        Addr high_window = 0; ///< memory above 4 GiB for 64-bit ones; 0: none
        std::uint64_t high_window_size = 0;
        unsigned first_gsi = 16; ///< of four
    };
    enum Range : unsigned { kPorts, kEcam, kWindow, kHighWindow };

    /// `interrupts` takes the four lines; a raised line is an asserted (electrically low) one.
    PciHost(std::string name, const Parameters &, IrqLine &interrupts);

    /// Puts the bridge's own ranges in the address spaces: ports CF8h to CFFh, ECAM, windows.
    void map(AddressSpace &ports, AddressSpace &memory);
    /// Port CF9h, the reset control register, lies amid the bridge's ports: byte accesses go to `range` of `device`.
    void route_cf9(Device &device, unsigned range) {
        cf9_ = &device;
        cf9_range_ = range;
    }
    /// Adds function `function` of device `device` (0 to 31) on bus 0; UserError if it is taken. The caller owns it.
    void add(unsigned device, unsigned function, PciFunction &);
    /// Firmware's set-up: base addresses, memory space on, interrupt lines. reset() calls it.
    void assign();
    /// The rings of all functions.
    std::vector<RingArea> rings() const;
    const Parameters &parameters() const { return p_; }
    /// Global system interrupt of a device's pin (1 is INTA).
    unsigned gsi(unsigned device, unsigned pin) const { return p_.first_gsi + (device + pin - 1) % 4; }

    std::uint64_t read(Requester, unsigned range, Addr offset, unsigned size) override;
    void write(Requester, unsigned range, Addr offset, std::uint64_t value, unsigned size) override;
    /// Resets all functions, too, and then calls assign().
    void reset() override;
    void archive(Archive &) override;
    /// ECAM in the MCFG table, the root bridge PCI0 with windows and _PRT in the DSDT, and all functions.
    void describe(Firmware &) const override;

  private:
    struct Slot {
        unsigned device, function;
        PciFunction *what;
    };
    struct Decoded {
        Addr base;
        std::uint64_t size;
        PciFunction *what;
        unsigned bar;
    };
    void decode_changed() override;
    void intx_changed() override;
    PciFunction *at(unsigned bus, unsigned device, unsigned function) const;
    const Decoded *find(Addr address, unsigned size) const;
    Addr window_base(unsigned range) const { return range == kWindow ? p_.window : p_.high_window; }

    Parameters p_;
    IrqLine &interrupts_;
    std::array<PciFunction *, 256> functions_{}; ///< by device * 8 + function
    std::vector<Slot> slots_;                    ///< in the order in which they were added
    std::vector<Decoded> decoded_;
    std::array<bool, 4> levels_{};
    std::uint32_t address_ = 0; ///< CF8h
    Device *cf9_ = nullptr;
    unsigned cf9_range_ = 0;
    PciFunction bridge_;
};

} // namespace moscope::dev
