// SPDX-License-Identifier: BSD-3-Clause
// The platform as firmware describes it to an operating system: one record that the board and every device
// (`Device::describe`) fill in. The ACPI tables (dev/firmware/acpi.hh) and the memory map are built from it. Each
// device describes itself, so tables and hardware cannot drift apart. Addresses are guest-physical, sizes bytes.
//
// Examples of what a device writes:
//
//   void Uart::describe(Firmware &f) const {            // a Device object under \_SB (dev/isa_device.hh does this)
//       f.devices.push_back(aml::device("COM1", {aml::name("_HID", aml::eisa_id("PNP0501")),
//                                                aml::name("_UID", aml::integer(1)),
//                                                aml::name("_CRS", aml::Resources().io(0x3f8, 8).irq(4).bytes())}));
//   }
//   void IoApic::describe(Firmware &f) const {          // an entry of the MADT, and its registers in the memory map
//       f.io_apics.push_back({.id = id_, .address = 0xfec00000, .first_gsi = 0});
//       f.overrides.push_back({.isa_irq = 0, .gsi = 2});
//       f.reserve(0xfec00000, 0x1000);
//   }
//   void Hpet::describe(Firmware &f) const {
//       f.hpet = Firmware::Hpet{.address = 0xfed00000, .event_timer_block = id_register_low, .minimum_tick = 100};
//       f.reserve(0xfed00000, 0x1000);
//   }
//   void PowerManagement::describe(Firmware &f) const { // fields of the FADT
//       f.power.sci_irq = 9; f.power.pm1_event = 0x800; f.power.pm1_control = 0x804; f.power.pm_timer = 0x808;
//       f.power.reset_port = 0xcf9; f.power.reset_value = 6; f.power.sleep_type_s5 = 5;
//       f.overrides.push_back({.isa_irq = 9, .gsi = 9, .trigger = Firmware::Trigger::level});  // how the SCI is wired
//   }
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/types.hh"
#include "dev/firmware/aml.hh"

namespace moscope::dev {

struct Firmware {
    // --- processors and nodes (MADT, SRAT, SLIT): the board fills these in ------------------------------------------
    struct Processor {
        std::uint8_t apic_id = 0;
        unsigned node = 0;
    };
    std::vector<Processor> processors; ///< in the order of the cores; the first is the boot processor
    struct Memory {
        unsigned node = 0;
        Addr base = 0;
        std::uint64_t size = 0;
    };
    std::vector<Memory> memory; ///< DRAM as the cores address it; a node that the hole cuts has a range on each side
    /// Link hops from node (row) to node (column). Empty: no SRAT, no SLIT.
    std::vector<std::vector<unsigned>> hops;
    /// SLIT distance = 10 + this x hops.
    unsigned distance_per_hop = 6;

    // --- interrupt controllers (MADT) -------------------------------------------------------------------------------
    Addr local_apic_address = 0xfee00000;
    bool has_8259 = true;
    enum class Polarity : std::uint8_t { bus = 0, high = 1, low = 3 };
    enum class Trigger : std::uint8_t { bus = 0, edge = 1, level = 3 };
    struct IoApic {
        std::uint8_t id = 0;
        std::uint32_t address = 0;
        std::uint32_t first_gsi = 0;
    };
    std::vector<IoApic> io_apics;
    /// An ISA interrupt that is not wired to the I/O APIC input of its number, or is not edge-triggered, active high.
    struct Override {
        std::uint8_t isa_irq = 0;
        std::uint32_t gsi = 0;
        Polarity polarity = Polarity::bus;
        Trigger trigger = Trigger::bus;
    };
    std::vector<Override> overrides;
    /// The LINT input to which NMI is wired, on every local APIC.
    struct LocalNmi {
        std::uint8_t lint = 1;
        Polarity polarity = Polarity::high;
        Trigger trigger = Trigger::edge;
    };
    std::vector<LocalNmi> local_nmis;

    // --- power management and fixed hardware (FADT); a port of 0: absent ---------------------------------------------
    struct Power {
        std::uint8_t sci_irq = 9;
        std::uint16_t pm1_event = 0;   ///< 4 bytes: status, enable
        std::uint16_t pm1_control = 0; ///< 2 bytes
        std::uint16_t pm_timer = 0;    ///< 4 bytes
        bool pm_timer_32bit = true;
        std::uint16_t gpe0 = 0; ///< `gpe0_bytes` bytes, half status, half enable
        std::uint8_t gpe0_bytes = 0;
        std::uint16_t reset_port = 0;
        std::uint8_t reset_value = 0;
        std::optional<std::uint8_t> sleep_type_s5; ///< SLP_TYP that powers the machine off
        std::uint8_t cmos_century = 0;             ///< index of the century in the RTC's memory
        bool has_rtc = true;                       ///< ports 70h and 71h
        bool has_8042 = false;                     ///< a keyboard controller at ports 60h and 64h
    };
    Power power;

    struct Hpet {
        Addr address = 0;
        std::uint32_t event_timer_block = 0; ///< low half of its general capabilities register
        std::uint8_t number = 0;
        std::uint16_t minimum_tick = 0; ///< main counter ticks, smallest period without lost interrupts
    };
    std::optional<Hpet> hpet;

    // --- PCI (MCFG; the host bridge adds both this and its Device object) -----------------------------------
    struct Ecam {
        Addr base = 0; ///< of bus 0
        std::uint8_t first_bus = 0;
        std::uint8_t last_bus = 0;
    };
    std::vector<Ecam> ecam;

    // --- definition block (DSDT) -------------------------------------------------------------------------------------
    aml::Terms devices; ///< go under \_SB
    aml::Terms root;    ///< go under the root, after \_SB

    // --- memory map --------------------------------------------------------------------------------------------------
    struct Range {
        Addr base = 0;
        std::uint64_t size = 0;
        std::uint32_t type = kReserved;
    };
    enum : std::uint32_t { kRam = 1, kReserved = 2, kAcpiTables = 3 }; ///< types of E820 (ACPI 4.0, table 14-1)
    std::vector<Range> reserved;                                       ///< cut out of RAM where they overlap

    void reserve(Addr base, std::uint64_t size, std::uint32_t type = kReserved) {
        reserved.push_back({base, size, type});
    }

    /// The map as E820 reports it: `memory` and `reserved`, where reserved ranges replace the RAM that they overlap;
    /// sorted, without overlaps, and with adjacent ranges of one type merged.
    std::vector<Range> memory_map() const;
};

} // namespace moscope::dev
