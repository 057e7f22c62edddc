// SPDX-License-Identifier: BSD-3-Clause
// The registry of devices: their order does not depend on linking, each has one section in checkpoints, and connections
// exist before a device asks for them.
#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "dev/isa_device.hh"
#include "dev/test_machine.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

int made_late = 0, made_early = 0, sequence = 0;

// Registered in reverse order.
const RegisteredDevice late(1001, "test-late", [](Devices &) { made_late = ++sequence; });
const RegisteredDevice early(1000, "test-early", [](Devices &) { made_early = ++sequence; });

TEST(Devices, AreMadeInTheirOrderAndNotInThatOfRegistration) {
    TestMachine m;
    EXPECT_EQ(made_early + 1, made_late);
    const auto all = registered_devices();
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](const Registration &a, const Registration &b) {
        return std::tie(a.order, a.name) < std::tie(b.order, b.name);
    }));
}

TEST(Devices, KeepTheOrderOfCheckpointSections) {
    TestMachine m;
    std::vector<std::string> names;
    for (const Device *d : m.devices.all())
        names.push_back(d->name());
    const std::vector<std::string> wanted = {"lapic",   "ioapic", "pic",       "pit",  "hpet",          "rtc",
                                             "acpi-pm", "reset",  "uart16550", "exit", "debug-console", "pci"};
    EXPECT_EQ(std::vector(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(wanted.size())), wanted);
}

TEST(Devices, AConnectionThatNoDeviceHasMadeYetIsReported) {
    EventQueue queue;
    QueueTime time(queue);
    AddressSpace memory, ports;
    ApicBus bus;
    const Devices none(queue, time, memory, ports, bus, {});
    EXPECT_THROW(none.isa(), UserError);
    EXPECT_THROW(none.gsi(), UserError);
    EXPECT_THROW(none.pci(), UserError);
    EXPECT_EQ(none.find("uart16550"), nullptr);
}

TEST(Devices, TheConsolesInputReachesTheSerialPort) {
    TestMachine m;
    m.devices.console_input("k");
    m.time.by(kTicksPerSecond / 1000);
    EXPECT_EQ(m.ports.read(0, 0x3F8, 1), 'k');
    m.ports.write(0, 0x3F8, 'o', 1);
    EXPECT_EQ(m.printed, "o");
}

TEST(Devices, PortCf9ResetsTheMachineThroughTheHostBridge) {
    TestMachine m;
    m.ports.write(0, 0xCF9, 6, 1);
    EXPECT_EQ(m.power, std::vector<PowerEvent>{PowerEvent::reset});
}

class WithoutInterrupt final : public IsaDevice {
  public:
    WithoutInterrupt() : IsaDevice("quiet", {.object = "QUIE", .id = "PNP0C02", .ports = {{0x300, 4}}}) {}
    void archive(Archive &) override {}

  private:
    std::uint8_t read8(unsigned, Addr) override { return 0; }
    void write8(unsigned, Addr, std::uint8_t) override {}
};

TEST(IsaDevices, OneWithoutAnInterruptDescribesItsPortsOnly) {
    Firmware tables;
    WithoutInterrupt().describe(tables);
    const auto ports_only = aml::name("_CRS", aml::Resources().io(0x300, 4).bytes());
    ASSERT_EQ(tables.devices.size(), 1u);
    EXPECT_EQ(tables.devices[0], aml::device("QUIE", {aml::name("_HID", aml::eisa_id("PNP0C02")), ports_only}));
}

} // namespace
