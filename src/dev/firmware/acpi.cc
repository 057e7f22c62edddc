// SPDX-License-Identifier: BSD-3-Clause
#include "dev/firmware/acpi.hh"

#include <algorithm>
#include <string>
#include <string_view>

#include "base/error.hh"

namespace moscope::dev {

namespace {

/// A table under construction: bytes are appended, or fields set at fixed offsets.
class Table {
  public:
    Table(std::string_view signature, std::uint8_t revision) {
        text(signature, 4).put(0, 4).put(revision, 1).put(0, 1).text("MOSCOP", 6).text("MOSCOPE", 8).put(1, 4);
        text("MOSC", 4).put(1, 4);
    }
    Table &put(std::uint64_t value, unsigned size) {
        for (unsigned i = 0; i < size; ++i)
            bytes_.push_back(i < 8 ? static_cast<std::uint8_t>(value >> (8 * i)) : 0);
        return *this;
    }
    Table &text(std::string_view s, std::size_t size) {
        for (std::size_t i = 0; i < size; ++i)
            bytes_.push_back(i < s.size() ? static_cast<std::uint8_t>(s[i]) : ' ');
        return *this;
    }
    Table &append(const aml::Bytes &more) {
        bytes_.insert(bytes_.end(), more.begin(), more.end());
        return *this;
    }
    /// Grows the table to `size` bytes of zeros.
    Table &resize(std::size_t size) {
        bytes_.resize(size);
        return *this;
    }
    Table &set(std::size_t offset, std::uint64_t value, unsigned size) {
        MOSCOPE_CHECK(offset + size <= bytes_.size());
        for (unsigned i = 0; i < size; ++i)
            bytes_[offset + i] = static_cast<std::uint8_t>(value >> (8 * i));
        return *this;
    }
    /// Generic address structure; space 0 memory, 1 ports. The access size is left to the reader.
    Table &set_address(std::size_t offset, unsigned space, unsigned bits, Addr address) {
        return set(offset, space, 1).set(offset + 1, bits, 1).set(offset + 2, 0, 2).set(offset + 4, address, 8);
    }
    /// The table, with its length and checksum filled in.
    const std::vector<std::uint8_t> &finished() {
        set(4, bytes_.size(), 4).set(9, 0, 1);
        return set(9, static_cast<std::uint8_t>(-acpi_sum(bytes_.data(), bytes_.size())), 1).bytes_;
    }

  private:
    std::vector<std::uint8_t> bytes_;
};

std::uint16_t mps_flags(Firmware::Polarity p, Firmware::Trigger t) {
    return static_cast<std::uint16_t>(static_cast<unsigned>(p) | static_cast<unsigned>(t) << 2);
}

Table madt(const Firmware &f) {
    Table t("APIC", 3);
    t.put(f.local_apic_address, 4).put(f.has_8259 ? 1 : 0, 4);
    for (std::size_t i = 0; i < f.processors.size(); ++i)
        t.put(0, 1).put(8, 1).put(i, 1).put(f.processors[i].apic_id, 1).put(1, 4);
    for (const auto &io : f.io_apics)
        t.put(1, 1).put(12, 1).put(io.id, 1).put(0, 1).put(io.address, 4).put(io.first_gsi, 4);
    for (const auto &o : f.overrides)
        t.put(2, 1).put(10, 1).put(0, 1).put(o.isa_irq, 1).put(o.gsi, 4).put(mps_flags(o.polarity, o.trigger), 2);
    for (const auto &n : f.local_nmis)
        t.put(4, 1).put(6, 1).put(0xff, 1).put(mps_flags(n.polarity, n.trigger), 2).put(n.lint, 1);
    return t;
}

Table srat(const Firmware &f) {
    Table t("SRAT", 3);
    t.put(1, 4).put(0, 8);
    for (const auto &p : f.processors)
        t.put(0, 1)
            .put(16, 1)
            .put(p.node & 0xff, 1)
            .put(p.apic_id, 1)
            .put(1, 4)
            .put(0, 1)
            .put(p.node >> 8, 3)
            .put(0, 4);
    for (const auto &m : f.memory)
        t.put(1, 1).put(40, 1).put(m.node, 4).put(0, 2).put(m.base, 8).put(m.size, 8).put(0, 4).put(1, 4).put(0, 8);
    return t;
}

Table slit(const Firmware &f) {
    Table t("SLIT", 1);
    t.put(f.hops.size(), 8);
    for (const auto &row : f.hops) {
        if (row.size() != f.hops.size())
            throw UserError("firmware: a row of the hop table has " + std::to_string(row.size()) +
                            " entries: expected " + std::to_string(f.hops.size()) + ", one for each node");
        for (const unsigned h : row)
            t.put(std::min(254u, 10 + f.distance_per_hop * h), 1);
    }
    return t;
}

Table hpet(const Firmware::Hpet &h) {
    Table t("HPET", 1);
    t.put(h.event_timer_block, 4).put(0, 12).put(h.number, 1).put(h.minimum_tick, 2).put(0, 1);
    return t.set_address(40, 0, 64, h.address);
}

Table mcfg(const Firmware &f) {
    Table t("MCFG", 1);
    t.put(0, 8);
    for (const auto &e : f.ecam)
        t.put(e.base, 8).put(0, 2).put(e.first_bus, 1).put(e.last_bus, 1).put(0, 4);
    return t;
}

Table dsdt(const Firmware &f) {
    Table t("DSDT", 2); // revision 2: integers have 64 bits
    t.append(aml::method("\\_PIC", 1, {}));
    if (f.power.sleep_type_s5) {
        const aml::Bytes type = aml::integer(*f.power.sleep_type_s5);
        t.append(aml::name("\\_S5", aml::package({type, type, aml::integer(0), aml::integer(0)})));
    }
    t.append(aml::scope("\\_SB", f.devices));
    for (const aml::Bytes &term : f.root)
        t.append(term);
    return t;
}

// Offsets of the FADT's fields (ACPI 4.0, table 5-9).
Table fadt(const Firmware &f, Addr facs, Addr dsdt) {
    const Firmware::Power &p = f.power;
    Table t("FACP", 4);
    t.resize(244);
    t.set(36, facs, 4).set(40, dsdt, 4).set(132, facs, 8).set(140, dsdt, 8);
    t.set(45, 4, 1); // preferred profile: enterprise server
    t.set(46, p.sci_irq, 2);
    const auto block = [&](std::size_t offset, std::size_t extended, std::size_t length, Addr port, unsigned bytes) {
        if (port == 0)
            return;
        t.set(offset, port, 4).set(length, bytes, 1).set_address(extended, 1, 8 * bytes, port);
    };
    block(56, 148, 88, p.pm1_event, 4);
    block(64, 172, 89, p.pm1_control, 2);
    block(76, 208, 91, p.pm_timer, 4);
    block(80, 220, 92, p.gpe0, p.gpe0_bytes);
    t.set(96, 0xfff, 2).set(98, 0xfff, 2); // no C2, no C3
    t.set(108, p.cmos_century, 1);
    // VGA and PCIe link power management are absent; legacy devices are present.
    t.set(109, 1u | (p.has_8042 ? 2u : 0u) | 1u << 2 | 1u << 4 | (p.has_rtc ? 0u : 1u << 5), 2);
    std::uint32_t flags = 1u << 0 | 1u << 2; // WBINVD works; every processor has C1
    flags |= 1u << 4 | 1u << 5 | 1u << 6;    // no power button, sleep button or RTC status in the fixed registers
    if (p.pm_timer_32bit)
        flags |= 1u << 8;
    if (p.reset_port != 0) {
        flags |= 1u << 10;
        t.set_address(116, 1, 8, p.reset_port).set(128, p.reset_value, 1);
    }
    // Flat logical destinations reach identifiers 0 to 7 only.
    if (std::any_of(f.processors.begin(), f.processors.end(), [](const auto &c) { return c.apic_id > 7; }))
        flags |= 1u << 19;
    return t.set(112, flags, 4);
}

} // namespace

std::uint8_t acpi_sum(const std::uint8_t *data, std::size_t size) {
    unsigned sum = 0;
    for (std::size_t i = 0; i < size; ++i)
        sum += data[i];
    return static_cast<std::uint8_t>(sum);
}

AcpiImage build_acpi(const Firmware &f, Addr address) {
    MOSCOPE_CHECK(address % 64 == 0 && address < Addr{1} << 32);
    if (f.processors.size() > 255)
        throw UserError("firmware: " + std::to_string(f.processors.size()) + " processors: expected at most 255");
    constexpr std::size_t kRsdp = 36, kFacs = 64;
    AcpiImage image{address, {}};
    auto &bytes = image.bytes;
    const auto place = [&](Table t) { // returns the table's address
        bytes.resize((bytes.size() + 15) / 16 * 16);
        const Addr at = address + bytes.size();
        const auto &content = t.finished();
        bytes.insert(bytes.end(), content.begin(), content.end());
        return at;
    };

    bytes.resize(64 + kFacs);
    static_assert(kRsdp <= 64);
    const Addr facs = address + 64;
    const Addr definition = place(dsdt(f));
    std::vector<Addr> entries{place(fadt(f, facs, definition)), place(madt(f))};
    if (!f.hops.empty()) {
        entries.push_back(place(srat(f)));
        entries.push_back(place(slit(f)));
    }
    if (f.hpet)
        entries.push_back(place(hpet(*f.hpet)));
    if (!f.ecam.empty())
        entries.push_back(place(mcfg(f)));
    Table list("XSDT", 1);
    for (const Addr e : entries)
        list.put(e, 8);
    const Addr xsdt = place(list);

    // FACS: signature, length, no hardware signature, version 1. It has no checksum.
    const auto put = [&](std::size_t at, std::string_view text) {
        std::copy(text.begin(), text.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
    };
    put(64, "FACS");
    bytes[68] = kFacs;
    bytes[96] = 1;

    // RSDP: two checksums, over the first 20 bytes and over all 36.
    put(0, "RSD PTR ");
    put(9, "MOSCOP");
    bytes[15] = 2;
    bytes[20] = kRsdp;
    for (unsigned i = 0; i < 8; ++i)
        bytes[24 + i] = static_cast<std::uint8_t>(xsdt >> (8 * i));
    bytes[8] = static_cast<std::uint8_t>(-acpi_sum(bytes.data(), 20));
    bytes[32] = static_cast<std::uint8_t>(-acpi_sum(bytes.data(), kRsdp));
    return image;
}

} // namespace moscope::dev
