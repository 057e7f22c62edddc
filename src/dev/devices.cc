// SPDX-License-Identifier: BSD-3-Clause
#include "dev/devices.hh"

#include <algorithm>
#include <set>
#include <tuple>

namespace moscope::dev {

namespace {

/// A local static, as registrations of other files may run before this file's own initialisation.
std::vector<Registration> &registry() {
    static std::vector<Registration> entries;
    return entries;
}

} // namespace

RegisteredDevice::RegisteredDevice(int order, std::string_view name, Make make) {
    registry().push_back({order, name, make});
}

std::vector<Registration> registered_devices() {
    std::vector<Registration> sorted = registry();
    std::sort(sorted.begin(), sorted.end(), [](const Registration &a, const Registration &b) {
        return std::tie(a.order, a.name) < std::tie(b.order, b.name);
    });
    return sorted;
}

Devices::~Devices() {
    while (!owned_.empty())
        owned_.pop_back();
}

void Devices::make_all() {
    for (const Registration &r : registered_devices())
        r.make(*this);
    std::set<std::string_view> names;
    for (const Device *d : all_)
        if (!names.insert(d->name()).second)
            throw UserError("devices: " + d->name() + ": made twice: expected one device of each name");
    for (Device *d : all_)
        d->reset();
}

Device *Devices::find(std::string_view name) const {
    const auto at = std::find_if(all_.begin(), all_.end(), [&](const Device *d) { return d->name() == name; });
    return at == all_.end() ? nullptr : *at;
}

void Devices::archive(Archive &a) {
    for (Device *d : all_) {
        a.section(d->name());
        d->archive(a);
    }
}

} // namespace moscope::dev
