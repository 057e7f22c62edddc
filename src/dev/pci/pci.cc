// SPDX-License-Identifier: BSD-3-Clause
#include "dev/pci/pci.hh"

#include <bit>

#include "base/error.hh"

namespace moscope::dev {

using namespace pci;

PciFunction::PciFunction(std::string name, const Identity &id, bool extended)
    : name_(std::move(name)), bytes_(extended ? kConfigBytes : 256) {
    set16(kVendor, id.vendor);
    set16(kVendor + 2, id.device);
    set16(kCommand, 0, kMemorySpace | kBusMaster | kNoIntx);
    set32(kRevision, id.class_code << 8 | id.revision);
    set16(kSubsystem, id.subsystem_vendor);
    set16(kSubsystem + 2, id.subsystem);
    set8(kInterruptLine, 0, 0xff);
}

void PciFunction::set8(unsigned offset, std::uint8_t value, std::uint8_t writable) {
    config_[offset] = power_on_[offset] = value;
    writable_[offset] = writable;
}

void PciFunction::set16(unsigned offset, std::uint16_t value, std::uint16_t writable) {
    for (unsigned i = 0; i < 2; ++i)
        set8(offset + i, static_cast<std::uint8_t>(value >> (8 * i)), static_cast<std::uint8_t>(writable >> (8 * i)));
}

void PciFunction::set32(unsigned offset, std::uint32_t value, std::uint32_t writable) {
    for (unsigned i = 0; i < 4; ++i)
        set8(offset + i, static_cast<std::uint8_t>(value >> (8 * i)), static_cast<std::uint8_t>(writable >> (8 * i)));
}

void PciFunction::put32(unsigned offset, std::uint32_t value) {
    for (unsigned i = 0; i < 4; ++i)
        put8(offset + i, static_cast<std::uint8_t>(value >> (8 * i)));
}

void PciFunction::add_bar(unsigned bar, std::uint64_t size, bool is_64bit) {
    MOSCOPE_CHECK(std::has_single_bit(size) && size >= 16 && bar + (is_64bit ? 1 : 0) < kBars);
    bars_[bar] = {size, is_64bit};
    const std::uint64_t mask = ~(size - 1);
    set32(kBar0 + 4 * bar, is_64bit ? 0x0c : 0, static_cast<std::uint32_t>(mask)); // 64-bit: prefetchable too
    if (is_64bit)
        set32(kBar0 + 4 * bar + 4, 0, static_cast<std::uint32_t>(mask >> 32));
}

unsigned PciFunction::add_capability(std::uint8_t id, const std::vector<std::uint8_t> &content) {
    const unsigned at = next_capability_;
    MOSCOPE_CHECK(at + 2 + content.size() <= 256);
    set8(at, id);
    set8(at + 1, 0);
    for (unsigned i = 0; i < content.size(); ++i)
        set8(at + 2 + i, content[i]);
    set8(last_capability_ == 0 ? unsigned{kCapabilities} : last_capability_ + 1, static_cast<std::uint8_t>(at));
    set16(kStatus, kHasCapabilities);
    last_capability_ = at;
    next_capability_ = (at + 2 + static_cast<unsigned>(content.size()) + 3) & ~3u;
    return at;
}

std::uint64_t PciFunction::read_config(unsigned offset, unsigned size) {
    std::uint64_t value = ~0ull;
    if (offset >= bytes_ || size > bytes_ - offset)
        return value;
    config_reading(offset, size);
    for (unsigned i = 0; i < size; ++i) {
        std::uint8_t b = config_[offset + i];
        if (offset + i == kStatus && intx_)
            b |= kIntxPending;
        value = (value & ~(0xffull << (8 * i))) | std::uint64_t{b} << (8 * i);
    }
    return value;
}

void PciFunction::write_config(unsigned offset, std::uint64_t value, unsigned size) {
    if (offset >= bytes_ || size > bytes_ - offset)
        return;
    for (unsigned i = 0; i < size; ++i) {
        const std::uint8_t mask = writable_[offset + i];
        std::uint8_t &b = config_[offset + i];
        b = static_cast<std::uint8_t>((b & ~mask) | (static_cast<std::uint8_t>(value >> (8 * i)) & mask));
    }
    if (offset < kBar0 + 4 * kBars && upstream_) {
        upstream_->decode_changed();
        upstream_->intx_changed();
    }
    config_written(offset, size);
}

std::optional<PciFunction::Window> PciFunction::decoded(unsigned bar) const {
    if (bars_[bar].size == 0 || !(word(kCommand) & kMemorySpace))
        return std::nullopt;
    Addr base = dword(kBar0 + 4 * bar) & ~15u;
    if (bars_[bar].is_64bit)
        base |= Addr{dword(kBar0 + 4 * bar + 4)} << 32;
    return Window{base, bars_[bar].size};
}

void PciFunction::set_intx(bool level) {
    if (intx_ == level)
        return;
    intx_ = level;
    if (upstream_)
        upstream_->intx_changed();
}

void PciFunction::reset() {
    config_ = power_on_;
    intx_ = false;
    if (upstream_) {
        upstream_->decode_changed();
        upstream_->intx_changed();
    }
}

void PciFunction::archive(Archive &a) {
    a.section(name_);
    // Only bits that software may write: the others belong to the machine, and a checkpoint does not change them.
    for (unsigned i = 0; i < bytes_; ++i)
        if (writable_[i] != 0) {
            std::uint8_t b = config_[i] & writable_[i];
            a(b);
            if (a.loading())
                config_[i] = static_cast<std::uint8_t>((power_on_[i] & ~writable_[i]) | (b & writable_[i]));
        }
    a(intx_);
    if (a.loading() && upstream_)
        upstream_->decode_changed();
}

} // namespace moscope::dev
