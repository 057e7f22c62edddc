// SPDX-License-Identifier: BSD-3-Clause
// Firmware tables: byte layout against the specification's offsets, sums, and ACPICA's own disassembler and compiler
// where they are installed.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.hh"
#include "dev/firmware/acpi.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint64_t le(const Bytes &b, std::size_t at, unsigned size) {
    std::uint64_t v = 0;
    for (unsigned i = 0; i < size; ++i)
        v |= std::uint64_t{b.at(at + i)} << (8 * i);
    return v;
}

Firmware two_nodes() {
    Firmware f;
    for (unsigned c = 0; c < 12; ++c)
        f.processors.push_back({.apic_id = static_cast<std::uint8_t>(c / 6 * 8 + c % 6), .node = c / 6});
    f.memory = {{0, 0, 0xc0000000}, {0, 0x100000000, 0x40000000}, {1, 0x140000000, 0x100000000}};
    f.hops = {{0, 1}, {1, 0}};
    f.io_apics.push_back({.id = 2, .address = 0xfec00000, .first_gsi = 0});
    f.overrides.push_back({.isa_irq = 0, .gsi = 2});
    f.overrides.push_back(
        {.isa_irq = 9, .gsi = 9, .polarity = Firmware::Polarity::low, .trigger = Firmware::Trigger::level});
    f.local_nmis.push_back({});
    f.power.pm1_event = 0x800;
    f.power.pm1_control = 0x804;
    f.power.pm_timer = 0x808;
    f.power.reset_port = 0xcf9;
    f.power.reset_value = 6;
    f.power.sleep_type_s5 = 5;
    f.hpet = Firmware::Hpet{.address = 0xfed00000, .event_timer_block = 0x43538301};
    f.ecam.push_back({.base = 0xe0000000, .first_bus = 0, .last_bus = 255});
    f.devices.push_back(
        aml::device("COM1", {aml::name("_HID", aml::eisa_id("PNP0501")), aml::name("_UID", aml::integer(1)),
                             aml::name("_CRS", aml::Resources().io(0x3f8, 8).irq(4).bytes())}));
    aml::Resources windows;
    windows.bus_numbers(0, 255).port_window(0, 0xcf7);
    windows.memory_window(0xd0000000, 0x10000000).memory_window(0x10000000000, 0x1000000000);
    f.devices.push_back(
        aml::device("PCI0", {aml::name("_HID", aml::eisa_id("PNP0A03")), aml::name("_CRS", windows.bytes()),
                             aml::method("_STA", 0, {aml::return_value(aml::integer(15))})}));
    f.reserve(0xf0000, 0x10000);
    return f;
}

// Table by signature, found as an operating system finds them.
std::map<std::string, Bytes> tables_of(const AcpiImage &image) {
    std::map<std::string, Bytes> found;
    const auto at = [&](std::uint64_t address) {
        const std::size_t o = address - image.address;
        const auto first = image.bytes.begin() + static_cast<long>(o);
        return Bytes(first, first + static_cast<long>(le(image.bytes, o + 4, 4)));
    };
    const Bytes xsdt = at(le(image.bytes, 24, 8));
    found["XSDT"] = xsdt;
    for (std::size_t i = 36; i < xsdt.size(); i += 8) {
        const Bytes t = at(le(xsdt, i, 8));
        found[std::string(t.begin(), t.begin() + 4)] = t;
    }
    found["DSDT"] = at(le(found.at("FACP"), 140, 8));
    found["FACS"] = at(le(found.at("FACP"), 132, 8));
    return found;
}

} // namespace

TEST(Acpi, AllTablesSumToZeroAndStateTheirLength) {
    const AcpiImage image = build_acpi(two_nodes(), 0xf0000);
    EXPECT_EQ(std::string(image.bytes.begin(), image.bytes.begin() + 8), "RSD PTR ");
    EXPECT_EQ(acpi_sum(image.bytes.data(), 20), 0);
    EXPECT_EQ(acpi_sum(image.bytes.data(), 36), 0);
    const auto tables = tables_of(image);
    for (const char *name : {"XSDT", "FACP", "DSDT", "APIC", "SRAT", "SLIT", "HPET", "MCFG"}) {
        ASSERT_TRUE(tables.count(name)) << name;
        EXPECT_EQ(acpi_sum(tables.at(name).data(), tables.at(name).size()), 0) << name;
    }
    EXPECT_EQ(tables.at("FACP").size(), 244u);
    EXPECT_EQ(tables.at("HPET").size(), 56u);
    EXPECT_EQ(tables.at("FACS").size(), 64u);
}

TEST(Acpi, MadtNamesProcessorsInOrderOfCores) {
    const Bytes t = tables_of(build_acpi(two_nodes(), 0xf0000)).at("APIC");
    EXPECT_EQ(le(t, 36, 4), 0xfee00000u);
    for (unsigned c = 0; c < 12; ++c) {
        EXPECT_EQ(le(t, 44 + 8 * c, 2), 0x0800u);
        EXPECT_EQ(t[44 + 8 * c + 3], c / 6 * 8 + c % 6);
    }
    const std::size_t after = 44 + 96;
    EXPECT_EQ(le(t, after, 2), 0x0c01u);
    EXPECT_EQ(le(t, after + 12 + 10 + 8, 2), 0x000fu); // SCI: level, active low
    EXPECT_EQ(t.size(), after + 12 + 10 + 10 + 6);
}

TEST(Acpi, SlitFollowsHops) {
    const auto tables = tables_of(build_acpi(two_nodes(), 0xf0000));
    const Bytes &t = tables.at("SLIT");
    EXPECT_EQ(le(t, 36, 8), 2u);
    EXPECT_EQ((Bytes{t[44], t[45], t[46], t[47]}), (Bytes{10, 16, 16, 10}));
    EXPECT_EQ(tables.at("SRAT").size(), 48u + 12 * 16 + 3 * 40);
}

TEST(Acpi, PhysicalDestinationsAreAskedForOnlyAboveIdentifierSeven) {
    Firmware f = two_nodes();
    EXPECT_TRUE(le(tables_of(build_acpi(f, 0xf0000)).at("FACP"), 112, 4) & 1u << 19);
    f.processors.resize(6);
    EXPECT_FALSE(le(tables_of(build_acpi(f, 0xf0000)).at("FACP"), 112, 4) & 1u << 19);
}

TEST(Acpi, RaggedHopTableIsAUserError) {
    Firmware f = two_nodes();
    f.hops = {{0, 1}, {1}};
    EXPECT_THROW(build_acpi(f, 0xf0000), UserError);
}

TEST(MemoryMap, ReservedRangesAreCutOutOfRam) {
    const auto map = two_nodes().memory_map();
    ASSERT_EQ(map.size(), 4u);
    EXPECT_EQ(map[0].size, 0xf0000u);
    EXPECT_EQ(map[1].type, Firmware::kReserved);
    EXPECT_EQ(map[2].base, 0x100000u);
    EXPECT_EQ(map[2].size, 0xc0000000u - 0x100000u);
    EXPECT_EQ(map[3].base, 0x100000000u); // two nodes' RAM that touches is one range
    EXPECT_EQ(map[3].size, 0x140000000u);
}

TEST(Aml, IntegersTakeTheShortestForm) {
    EXPECT_EQ(aml::integer(0), Bytes{0});
    EXPECT_EQ(aml::integer(1), Bytes{1});
    EXPECT_EQ(aml::integer(0xff), (Bytes{0x0a, 0xff}));
    EXPECT_EQ(aml::integer(0x100), (Bytes{0x0b, 0, 1}));
    EXPECT_EQ(aml::integer(0x10000).size(), 5u);
    EXPECT_EQ(aml::integer(0x100000000).size(), 9u);
}

TEST(Aml, PackageLengthGrowsByteByByte) {
    // Buffer of n bytes: op, length, size term, content. The length counts itself and what follows.
    EXPECT_EQ(aml::buffer(Bytes(10))[1], 13); // 1 + 2 + 10
    const Bytes two = aml::buffer(Bytes(61)); // 64 does not fit six bits
    EXPECT_EQ(two[1] >> 6, 1);
    EXPECT_EQ((two[1] & 15) + (two[2] << 4), 2 + 2 + 61);
    const Bytes three = aml::buffer(Bytes(5000));
    EXPECT_EQ(three[1] >> 6, 2);
    EXPECT_EQ((three[1] & 15) + (three[2] << 4) + (three[3] << 12), 3 + 3 + 5000);
}

TEST(Aml, InvalidNamesAreRefused) {
    EXPECT_EQ(aml::path("\\_SB.PCI0").size(), 10u);
    EXPECT_EQ(aml::path("A"), (Bytes{'A', '_', '_', '_'}));
    EXPECT_THROW(aml::path("TOOLONG"), UserError);
    EXPECT_THROW(aml::path("lower"), UserError);
    EXPECT_THROW(aml::path("0ABC"), UserError);
    EXPECT_THROW(aml::path("A..B"), UserError);
}

TEST(Acpi, AcpicaDisassemblesAndCompilesEveryTable) {
    if (std::system("iasl -v >/dev/null 2>&1") != 0)
        GTEST_SKIP() << "acpica-tools is not installed";
    namespace fs = std::filesystem;
    std::string pattern = (fs::temp_directory_path() / "moscope-acpi-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    const fs::path dir = pattern;
    for (const auto &[name, bytes] : tables_of(build_acpi(two_nodes(), 0xf0000))) {
        std::ofstream(dir / (name + ".dat"), std::ios::binary)
            .write(reinterpret_cast<const char *>(bytes.data()), static_cast<long>(bytes.size()));
        const std::string in = "cd " + dir.string() + " && iasl ";
        const std::string log = " >" + name + ".log 2>&1";
        EXPECT_EQ(std::system((in + "-d " + name + ".dat" + log).c_str()), 0) << name;
        EXPECT_EQ(std::system((in + "-p out-" + name + " " + name + ".dsl" + " >>" + name + ".log 2>&1").c_str()), 0)
            << name;
        std::ifstream file(dir / (name + ".log"));
        std::stringstream text;
        text << file.rdbuf();
        EXPECT_EQ(text.str().find("Invalid"), std::string::npos) << text.str();
        EXPECT_EQ(text.str().find("Error  "), std::string::npos) << text.str();
        EXPECT_EQ(text.str().find("Incorrect checksum"), std::string::npos) << text.str();
        if (HasFailure())
            std::fputs(text.str().c_str(), stderr);
    }
    fs::remove_all(dir);
}
