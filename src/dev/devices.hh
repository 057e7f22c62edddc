// SPDX-License-Identifier: BSD-3-Clause
// The devices of a machine and what connects them: time, address spaces, interrupts, DMA, facts about the machine.
//
// Each device registers itself in its own source file:
//
//   const RegisteredDevice registered(90, "uart16550", [](Devices &d) {
//       auto &uart = d.add<Uart16550>(d.queue, d.time, d.isa(), Uart16550::kIrq, d.console_output);
//       uart.map(d.ports);
//   });
//
// `make_all` makes the registered devices in ascending order, and by name within one order; the order of linking does
// not matter. The order decides three things: which connections exist already (a device that provides one has a lower
// order than its users), the place of the device's section in a checkpoint and of its entries in the firmware tables,
// and which of two devices that are due at the same tick acts first. Orders in use: 10 to 30 interrupt controllers, 40
// to 110 ISA devices, 120 the PCI host bridge, 130 to 160 PCI functions. A new device takes 200 or more.
// docs/extending/device.md shows a whole device.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hh"
#include "dev/bus.hh"
#include "dev/device.hh"
#include "dev/dma.hh"
#include "dev/firmware/firmware.hh"
#include "dev/interrupts/apic_bus.hh"
#include "dev/interrupts/isa_interrupts.hh"
#include "dev/nic/nic_settings.hh"
#include "dev/pci/pci_host.hh"
#include "dev/power.hh"
#include "dev/time.hh"

namespace moscope::dev {

/// What devices know about the machine that they are in.
struct MachineFacts {
    struct Core {
        CoreSignals *signals = nullptr;
        std::uint8_t apic_id = 0;
    };
    std::vector<Core> cores; ///< enabled ones; the first is the bootstrap processor
    unsigned chips = 1;
    unsigned cores_per_chip = 1;
    std::vector<Firmware::Memory> memory;    ///< DRAM as cores address it
    Addr hole = Addr{1} << 32;               ///< start of the hole below 4 GiB (mem/phys_map.hh)
    std::vector<std::vector<unsigned>> hops; ///< from chip (row) to chip (column)
    std::uint64_t seed = 1;
    std::string disk; ///< image file; empty: no disk
    bool disk_read_only = false;
    std::optional<NicSettings> nic; ///< none: no network card
};

class Devices {
  public:
    Devices(EventQueue &q, const TimeSource &t, AddressSpace &mmio, AddressSpace &io, ApicBus &bus, MachineFacts facts)
        : queue(q), time(t), memory(mmio), ports(io), apic_bus(bus), machine(std::move(facts)) {}
    ~Devices();
    Devices(const Devices &) = delete;
    Devices &operator=(const Devices &) = delete;

    // --- given by the board ------------------------------------------------------------------------------------------
    EventQueue &queue;
    const TimeSource &time;
    AddressSpace &memory, &ports;
    ApicBus &apic_bus; ///< also the target of message-signalled interrupts
    const MachineFacts machine;
    std::function<Dma &()> dma; ///< the engine that all devices share; made when the first device asks for it
    OnPower on_power;
    std::function<void(std::uint8_t)> console_output;
    std::function<void(std::uint32_t)> on_exit; ///< ends the run with a status
    std::function<void(std::uint64_t)> on_operations = [](std::uint64_t) {
    }; ///< called with the number of operations that the guest has just completed for its clients

    // --- provided by devices to devices of a higher order and to the board -------------------------------------------
    IrqLine &gsi() const { return need(gsi_, "global system interrupts"); } ///< inputs of the I/O APIC
    IsaInterrupts &isa() const { return need(isa_, "ISA interrupts"); }
    PciHost &pci() const { return need(pci_, "PCI"); }
    void provide_gsi(IrqLine &line) { gsi_ = &line; }
    void provide_isa(IsaInterrupts &isa) { isa_ = &isa; }
    void provide_pci(PciHost &host) { pci_ = &host; }
    std::function<NetworkReport()> network;              ///< the network card's report; empty: no card
    std::function<void(std::string_view)> console_input; ///< characters that arrive at the console's serial port

    // --- the devices -------------------------------------------------------------------------------------------------
    /// Makes every registered device, then resets all of them. UserError if two have the same name.
    void make_all();
    /// Makes a device, which has a section in checkpoints and may have entries in the firmware tables.
    template <class D, class... A> D &add(A &&...arguments) {
        D &made = own<D>(std::forward<A>(arguments)...);
        all_.push_back(&made);
        return made;
    }
    /// Makes something that lives as long as the devices: a PCI function, a disk image.
    template <class T, class... A> T &own(A &&...arguments) {
        auto made = std::make_shared<T>(std::forward<A>(arguments)...);
        T &reference = *made;
        owned_.push_back(std::move(made));
        return reference;
    }
    const std::vector<Device *> &all() const { return all_; }
    /// The device of this name, or null.
    Device *find(std::string_view name) const;
    /// Saves or loads the checkpoint sections of all devices.
    void archive(Archive &a);

  private:
    template <class T> static T &need(T *provided, const char *what) {
        if (!provided)
            throw UserError(std::string("devices: no ") + what +
                            ": expected a device of a lower order that provides it");
        return *provided;
    }
    IrqLine *gsi_ = nullptr;
    IsaInterrupts *isa_ = nullptr;
    PciHost *pci_ = nullptr;
    std::vector<std::shared_ptr<void>> owned_; ///< in the order in which they were made; destroyed in reverse
    std::vector<Device *> all_;
};

/// An entry of the registry: a static object in the source file of the device.
class RegisteredDevice {
  public:
    using Make = void (*)(Devices &);
    /// `name` is a literal.
    RegisteredDevice(int order, std::string_view name, Make make);
};

struct Registration {
    int order;
    std::string_view name;
    RegisteredDevice::Make make;
};
/// All registrations by order, then by name.
std::vector<Registration> registered_devices();

} // namespace moscope::dev
