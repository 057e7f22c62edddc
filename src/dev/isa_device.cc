// SPDX-License-Identifier: BSD-3-Clause
#include "dev/isa_device.hh"

#include "dev/bus.hh"

namespace moscope::dev {

void IsaDevice::map(AddressSpace &space) {
    for (unsigned range = 0; range < resources_.ports.size(); ++range)
        space.map(resources_.ports[range].base, resources_.ports[range].size, *this, range);
}

void IsaDevice::describe(Firmware &f) const {
    aml::Resources current;
    for (const IsaResources::Ports &p : resources_.ports)
        if (p.shown)
            current.io(p.base, p.size);
    if (resources_.irq)
        current.irq(*resources_.irq);
    aml::Terms terms{aml::name("_HID", aml::eisa_id(resources_.id))};
    if (resources_.unit)
        terms.push_back(aml::name("_UID", aml::integer(*resources_.unit)));
    terms.push_back(aml::name("_CRS", current.bytes()));
    f.devices.push_back(aml::device(resources_.object, terms));
}

} // namespace moscope::dev
