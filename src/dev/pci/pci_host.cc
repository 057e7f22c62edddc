// SPDX-License-Identifier: BSD-3-Clause
#include "dev/pci/pci_host.hh"

#include <algorithm>

#include "base/error.hh"
#include "dev/devices.hh"
#include "dev/firmware/firmware.hh"

namespace moscope::dev {

namespace {
constexpr std::uint64_t kBusBytes = 1 << 20;
constexpr std::uint64_t ones(unsigned size) { return size >= 8 ? ~0ull : (1ull << (8 * size)) - 1; }
// The I/O hub of AMD's Fiorano platform for this family, SR5650.
constexpr PciFunction::Identity kBridge{.vendor = 0x1002, .device = 0x5a13, .class_code = 0x060000, .revision = 2};
} // namespace

PciHost::PciHost(std::string name, const Parameters &p, IrqLine &interrupts)
    : Device(std::move(name)), p_(p), interrupts_(interrupts), bridge_(this->name() + ".bridge", kBridge) {
    add(0, 0, bridge_);
}

void PciHost::map(AddressSpace &ports, AddressSpace &memory) {
    ports.map(0xcf8, 8, *this, kPorts);
    memory.map(p_.ecam, (p_.last_bus + 1) * kBusBytes, *this, kEcam);
    memory.map(p_.window, p_.window_size, *this, kWindow);
    if (p_.high_window_size != 0)
        memory.map(p_.high_window, p_.high_window_size, *this, kHighWindow);
}

void PciHost::add(unsigned device, unsigned function, PciFunction &what) {
    MOSCOPE_CHECK(device < 32 && function < 8);
    PciFunction *&slot = functions_[device * 8 + function];
    if (slot != nullptr)
        throw UserError("machine: " + what.name() + " and " + slot->name() + " are both PCI function 00:" +
                        std::to_string(device) + "." + std::to_string(function) + ": expected one of them");
    slot = &what;
    slots_.push_back({device, function, &what});
    what.attach(*this);
    for (unsigned f = 1; f < 8; ++f)
        if (functions_[device * 8] && functions_[device * 8 + f])
            functions_[device * 8]->set_multifunction();
}

PciFunction *PciHost::at(unsigned bus, unsigned device, unsigned function) const {
    return bus == 0 ? functions_[device * 8 + function] : nullptr;
}

void PciHost::assign() {
    struct Wanted {
        PciFunction *what;
        unsigned bar;
        std::uint64_t size;
    };
    std::vector<Wanted> wanted;
    for (const Slot &s : slots_) {
        for (unsigned b = 0; b < PciFunction::kBars; ++b)
            if (s.what->bar_size(b) != 0)
                wanted.push_back({s.what, b, s.what->bar_size(b)});
        if (s.what->interrupt_pin() != 0)
            s.what->write_config(pci::kInterruptLine, gsi(s.device, s.what->interrupt_pin()), 1);
    }
    // Largest first, so that each is aligned without gaps.
    std::stable_sort(wanted.begin(), wanted.end(), [](const Wanted &a, const Wanted &b) { return a.size > b.size; });
    Addr next = p_.window, next_high = p_.high_window;
    for (const Wanted &w : wanted) {
        const bool high = p_.high_window_size != 0 && w.what->bar_is_64bit(w.bar);
        Addr &at = high ? next_high : next;
        const Addr end = high ? p_.high_window + p_.high_window_size : p_.window + p_.window_size;
        at = (at + w.size - 1) & ~(w.size - 1);
        if (at > end || end - at < w.size)
            throw UserError("machine: the PCI window has no room for " + w.what->name() + ": expected a larger one");
        w.what->write_config(pci::kBar0 + 4 * w.bar, at, w.what->bar_is_64bit(w.bar) ? 8 : 4);
        const auto command = w.what->read_config(pci::kCommand, 2);
        w.what->write_config(pci::kCommand, command | pci::kMemorySpace, 2);
        at += w.size;
    }
}

void PciHost::decode_changed() {
    decoded_.clear();
    for (const Slot &s : slots_)
        for (unsigned b = 0; b < PciFunction::kBars; ++b)
            if (const auto window = s.what->decoded(b))
                decoded_.push_back({window->base, window->size, s.what, b});
}

void PciHost::intx_changed() {
    std::array<bool, 4> now{};
    for (const Slot &s : slots_)
        if (s.what->interrupt_pin() != 0 && s.what->intx())
            now[gsi(s.device, s.what->interrupt_pin()) - p_.first_gsi] = true;
    for (unsigned i = 0; i < 4; ++i)
        if (now[i] != levels_[i]) {
            levels_[i] = now[i];
            interrupts_.set_irq(p_.first_gsi + i, now[i]);
        }
}

const PciHost::Decoded *PciHost::find(Addr address, unsigned size) const {
    for (const Decoded &d : decoded_)
        if (address >= d.base && address - d.base < d.size)
            return d.size - (address - d.base) >= size ? &d : nullptr;
    return nullptr;
}

std::uint64_t PciHost::read(Requester who, unsigned range, Addr offset, unsigned size) {
    switch (range) {
    case kPorts:
        if (offset == 0 && size == 4)
            return address_;
        if (offset == 1 && size == 1 && cf9_ != nullptr)
            return cf9_->read(who, cf9_range_, 0, 1);
        if (offset >= 4 && offset + size <= 8 && (address_ & 0x80000000u)) {
            const unsigned reg = (address_ & 0xfc) | (address_ >> 16 & 0xf00);
            if (PciFunction *f = at(address_ >> 16 & 0xff, address_ >> 11 & 31, address_ >> 8 & 7))
                return f->read_config(reg + static_cast<unsigned>(offset - 4), size) & ones(size);
        }
        return ones(size);
    case kEcam: {
        PciFunction *f = at(static_cast<unsigned>(offset >> 20), offset >> 15 & 31, offset >> 12 & 7);
        return f ? f->read_config(offset & 0xfff, size) & ones(size) : ones(size);
    }
    default: {
        const Addr address = window_base(range) + offset;
        const Decoded *d = find(address, size);
        return d ? d->what->read_bar(who, d->bar, address - d->base, size) & ones(size) : ones(size);
    }
    }
}

void PciHost::write(Requester who, unsigned range, Addr offset, std::uint64_t value, unsigned size) {
    switch (range) {
    case kPorts:
        if (offset == 0 && size == 4)
            address_ = static_cast<std::uint32_t>(value) & 0x8ffffffcu;
        else if (offset == 1 && size == 1 && cf9_ != nullptr)
            cf9_->write(who, cf9_range_, 0, value, 1);
        else if (offset >= 4 && offset + size <= 8 && (address_ & 0x80000000u)) {
            const unsigned reg = (address_ & 0xfc) | (address_ >> 16 & 0xf00);
            if (PciFunction *f = at(address_ >> 16 & 0xff, address_ >> 11 & 31, address_ >> 8 & 7))
                f->write_config(reg + static_cast<unsigned>(offset - 4), value, size);
        }
        break;
    case kEcam:
        if (PciFunction *f = at(static_cast<unsigned>(offset >> 20), offset >> 15 & 31, offset >> 12 & 7))
            f->write_config(offset & 0xfff, value, size);
        break;
    default: {
        const Addr address = window_base(range) + offset;
        if (const Decoded *d = find(address, size)) {
            // The write may move base addresses: d is invalid afterwards.
            const Decoded to = *d;
            to.what->write_bar(who, to.bar, address - to.base, value, size);
        }
    }
    }
}

void PciHost::reset() {
    address_ = 0;
    for (const Slot &s : slots_)
        s.what->reset();
    assign();
}

void PciHost::archive(Archive &a) {
    a.section(name());
    a(address_, levels_);
    for (const Slot &s : slots_)
        s.what->archive(a);
    if (a.loading())
        decode_changed();
}

void PciHost::describe(Firmware &f) const {
    f.ecam.push_back({.base = p_.ecam, .first_bus = 0, .last_bus = p_.last_bus});
    f.reserve(p_.ecam, (p_.last_bus + 1) * kBusBytes);

    aml::Resources windows;
    windows.bus_numbers(0, p_.last_bus).io(0xcf8, 8).port_window(0, 0xcf7).port_window(0xd00, 0xffff);
    windows.memory_window(p_.window, p_.window_size);
    if (p_.high_window_size != 0)
        windows.memory_window(p_.high_window, p_.high_window_size, true);

    aml::Terms routes; // device number in the high half, all functions; pin; no link device; input
    for (unsigned device = 0; device < 32; ++device)
        for (unsigned pin = 1; pin <= 4; ++pin) {
            const bool used = std::any_of(slots_.begin(), slots_.end(), [&](const Slot &s) {
                return s.device == device && s.what->interrupt_pin() == pin;
            });
            if (used)
                routes.push_back(aml::package({aml::integer(device << 16 | 0xffff), aml::integer(pin - 1),
                                               aml::integer(0), aml::integer(gsi(device, pin))}));
        }
    f.devices.push_back(aml::device("PCI0", {
                                                aml::name("_HID", aml::eisa_id("PNP0A03")),
                                                aml::name("_UID", aml::integer(0)),
                                                aml::name("_SEG", aml::integer(0)),
                                                aml::name("_BBN", aml::integer(0)),
                                                aml::name("_PXM", aml::integer(0)),
                                                aml::name("_CRS", windows.bytes()),
                                                aml::name("_PRT", aml::package(routes)),
                                            }));
    // Linux uses ECAM only if a motherboard resource covers it.
    f.devices.push_back(aml::device(
        "MBRD", {
                    aml::name("_HID", aml::eisa_id("PNP0C02")),
                    aml::name("_UID", aml::integer(0)),
                    aml::name("_CRS", aml::Resources()
                                          .memory32(static_cast<std::uint32_t>(p_.ecam),
                                                    static_cast<std::uint32_t>((p_.last_bus + 1) * kBusBytes))
                                          .bytes()),
                }));
    for (const Slot &s : slots_)
        s.what->describe(f);
}

std::vector<RingArea> PciHost::rings() const {
    std::vector<RingArea> found;
    for (const Slot &s : slots_)
        for (RingArea &area : s.what->rings())
            found.push_back(std::move(area));
    return found;
}

namespace {

const RegisteredDevice registered(120, "pci", [](Devices &d) {
    auto &pci = d.add<PciHost>("pci", PciHost::Parameters{}, d.gsi());
    pci.map(d.ports, d.memory);
    if (Device *reset = d.find("reset"))
        pci.route_cf9(*reset, 0);
    d.provide_pci(pci);
});

} // namespace

} // namespace moscope::dev
