// SPDX-License-Identifier: BSD-3-Clause
#include "dev/virtio/virtio_rng.hh"

#include "dev/devices.hh"

namespace moscope::dev {

namespace {

constexpr unsigned kPciDevice = 2;

const RegisteredDevice registered(140, "virtio-rng", [](Devices &d) {
    d.pci().add(kPciDevice, 0, d.own<VirtioRng>("entropy", d.machine.seed, d.dma(), d.apic_bus));
});

} // namespace

} // namespace moscope::dev
