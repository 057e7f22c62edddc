// SPDX-License-Identifier: BSD-3-Clause
#include "dev/bus.hh"

#include <algorithm>
#include <cstdio>

#include "base/error.hh"

namespace moscope::dev {

namespace {

std::string hex(Addr a) {
    char text[24];
    std::snprintf(text, sizeof text, "%llXh", static_cast<unsigned long long>(a));
    return text;
}

constexpr std::uint64_t ones(unsigned size) { return size >= 8 ? ~0ull : (1ull << (8 * size)) - 1; }

} // namespace

void AddressSpace::map(Addr base, std::uint64_t size, Device &device, unsigned range) {
    const Addr last = base + (size - 1);
    if (size == 0 || last < base)
        throw UserError("machine: range of " + device.name() + " at " + hex(base) + " with " + std::to_string(size) +
                        " bytes: expected at least one byte, and an end within the address space");
    const auto at =
        std::lower_bound(ranges_.begin(), ranges_.end(), base, [](const Range &r, Addr a) { return r.base < a; });
    const Range *other = nullptr;
    if (at != ranges_.end() && at->base <= last)
        other = &*at;
    else if (at != ranges_.begin() && at[-1].base + (at[-1].size - 1) >= base)
        other = &at[-1];
    if (other)
        throw UserError("machine: " + device.name() + " at " + hex(base) + " overlaps " + other->device->name() +
                        " at " + hex(other->base) + ": expected disjoint ranges");
    ranges_.insert(at, {base, size, &device, range});
}

void AddressSpace::unmap(const Device &device, unsigned range) {
    std::erase_if(ranges_, [&](const Range &r) { return r.device == &device && r.number == range; });
}

const AddressSpace::Range *AddressSpace::find(Addr address) const {
    const auto after =
        std::upper_bound(ranges_.begin(), ranges_.end(), address, [](Addr a, const Range &r) { return a < r.base; });
    if (after == ranges_.begin())
        return nullptr;
    const Range &r = after[-1];
    return address - r.base < r.size ? &r : nullptr;
}

std::uint64_t AddressSpace::read(Requester who, Addr address, unsigned size) {
    const Range *r = find(address);
    if (!r)
        return ones(size);
    // A device may move its own ranges during the access: r is invalid afterwards.
    const Addr offset = address - r->base;
    const std::uint64_t inside = r->size - offset;
    Device &device = *r->device;
    const unsigned number = r->number;
    if (inside >= size)
        return device.read(who, number, offset, size) & ones(size);
    std::uint64_t value = ones(size);
    for (unsigned i = 0; i < inside; ++i) {
        value &= ~(0xFFull << (8 * i));
        value |= (device.read(who, number, offset + i, 1) & 0xFF) << (8 * i);
    }
    return value;
}

void AddressSpace::write(Requester who, Addr address, std::uint64_t value, unsigned size) {
    const Range *r = find(address);
    if (!r)
        return;
    const Addr offset = address - r->base;
    const std::uint64_t inside = r->size - offset;
    Device &device = *r->device;
    const unsigned number = r->number;
    if (inside >= size) {
        device.write(who, number, offset, value & ones(size), size);
        return;
    }
    for (unsigned i = 0; i < inside; ++i)
        device.write(who, number, offset + i, (value >> (8 * i)) & 0xFF, 1);
}

} // namespace moscope::dev
