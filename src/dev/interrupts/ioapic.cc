// SPDX-License-Identifier: BSD-3-Clause
#include "dev/interrupts/ioapic.hh"

#include "dev/devices.hh"
#include "dev/firmware/firmware.hh"
#include "dev/interrupts/isa_interrupts.hh"

namespace moscope::dev {

namespace {

enum : Addr { kSelect = 0x00, kWindow = 0x10, kEoi = 0x40 };
enum : unsigned { kId = 0, kVersion = 1, kArbitration = 2, kTable = 0x10 };

// Redirection entries.
constexpr std::uint64_t kLogical = 1u << 11, kRemoteIrr = 1u << 14, kLevel = 1u << 15, kMasked = 1u << 16;
constexpr std::uint64_t kWritable = 0xFF00'0000'0001'AFFF; // not delivery status, not remote IRR

} // namespace

IoApic::IoApic(ApicBus &bus, std::uint8_t id, std::uint8_t version)
    : Device("ioapic"), bus_(bus), reset_id_(id), version_(version) {
    bus.attach(static_cast<EoiListener &>(*this));
    reset();
}

void IoApic::reset() {
    id_ = std::uint32_t{reset_id_} << 24;
    select_ = 0;
    table_.fill(kMasked);
}

void IoApic::archive(Archive &a) {
    a.section(name());
    a(id_, select_, table_, asserted_);
}

void IoApic::describe(Firmware &f) const {
    f.io_apics.push_back({.id = id(), .address = static_cast<std::uint32_t>(kBase), .first_gsi = 0});
    f.overrides.push_back({.isa_irq = IsaInterrupts::kTimer, .gsi = IsaInterrupts::kTimerGsi});
    f.reserve(kBase, kSize);
}

void IoApic::set_irq(unsigned input, bool level) {
    if (input >= kInputs)
        return;
    const bool rose = level && !asserted_[input];
    asserted_[input] = level;
    service(input, rose);
}

void IoApic::service(unsigned input, bool rose) {
    std::uint64_t &e = table_[input];
    if (!asserted_[input] || (e & kMasked))
        return;
    const auto mode = static_cast<Delivery>((e >> 8) & 7);
    // Only vectored interrupts have a level; the others are edges whatever the entry says.
    const bool level = (e & kLevel) && (mode == Delivery::fixed || mode == Delivery::lowest_priority);
    if (level ? (e & kRemoteIrr) != 0 : !rose)
        return;
    if (mode == Delivery::reserved || mode == Delivery::startup)
        return;
    ApicMessage m;
    m.destination = static_cast<std::uint8_t>(e >> 56);
    m.logical = e & kLogical;
    m.mode = mode;
    m.vector = static_cast<std::uint8_t>(e);
    m.level = level;
    if (level)
        e |= kRemoteIrr; // before delivery, because the end of interrupt may come within deliver()
    if (!bus_.deliver(m) && level)
        e &= ~kRemoteIrr;
}

void IoApic::end_of_interrupt(std::uint8_t vector) {
    for (unsigned i = 0; i < kInputs; ++i)
        if ((table_[i] & kRemoteIrr) && static_cast<std::uint8_t>(table_[i]) == vector) {
            table_[i] &= ~kRemoteIrr;
            service(i, false);
        }
}

std::uint32_t IoApic::read_register() const {
    switch (select_) {
    case kId:
    case kArbitration: return id_;
    case kVersion: // bit 15, a pin-assertion register, goes with the later version
        return version_ | (kInputs - 1) << 16 | (has_eoi_register() ? 0x8000 : 0);
    default:
        if (select_ < kTable || select_ >= kTable + 2 * kInputs)
            return 0;
        return static_cast<std::uint32_t>(table_[(select_ - kTable) / 2] >> (select_ & 1 ? 32 : 0));
    }
}

void IoApic::write_register(std::uint32_t value) {
    if (select_ == kId) {
        id_ = value & 0xFF00'0000;
        return;
    }
    if (select_ < kTable || select_ >= kTable + 2 * kInputs)
        return;
    const unsigned input = (select_ - kTable) / 2;
    std::uint64_t &e = table_[input];
    const unsigned shift = select_ & 1 ? 32 : 0;
    const std::uint64_t half = kWritable & (0xFFFF'FFFFull << shift);
    e = (e & ~half) | (std::uint64_t{value} << shift & half);
    if (!(e & kLevel)) // an edge has no remote IRR; on the old version, kernels clear a stuck one in this way
        e &= ~kRemoteIrr;
    service(input, false);
}

std::uint64_t IoApic::read(Requester, unsigned, Addr offset, unsigned size) {
    std::uint32_t value = 0;
    if ((offset & ~Addr{3}) == kSelect)
        value = select_;
    else if ((offset & ~Addr{3}) == kWindow)
        value = read_register();
    const auto byte = static_cast<unsigned>(offset & 3);
    return size == 8 ? value : std::uint64_t{value} >> (8 * byte);
}

void IoApic::write(Requester, unsigned, Addr offset, std::uint64_t value, unsigned size) {
    if (offset == kSelect)
        select_ = static_cast<std::uint8_t>(value);
    else if (offset == kWindow && size >= 4)
        write_register(static_cast<std::uint32_t>(value));
    else if (offset == kEoi && has_eoi_register())
        end_of_interrupt(static_cast<std::uint8_t>(value));
}

namespace {

constexpr std::uint8_t kBoardId = 0x40; ///< above all local APICs: eight chips of eight

const RegisteredDevice registered(20, "ioapic", [](Devices &d) {
    auto &ioapic = d.add<IoApic>(d.apic_bus, kBoardId);
    d.memory.map(IoApic::kBase, IoApic::kSize, ioapic, 0);
    d.provide_gsi(ioapic);
});

} // namespace

} // namespace moscope::dev
