// SPDX-License-Identifier: BSD-3-Clause
// A device on the ISA bus with its resources, ports and an interrupt wire. The device states them once: `map` decodes the
// ports, and `describe` puts both in the firmware's definition block (ACPI 4.0, section 6: _HID, _UID, _CRS).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dev/byte_device.hh"
#include "dev/firmware/firmware.hh"

namespace moscope::dev {

class AddressSpace;

struct IsaResources {
    struct Ports {
        std::uint16_t base;
        std::uint8_t size;
        bool shown = true; ///< in the firmware's description of the device
    };
    const char *object;                ///< name of the Device object
    const char *id;                    ///< its EISA identifier
    std::vector<Ports> ports;          ///< entry n is range n of the device
    std::optional<unsigned> irq = {};  ///< ISA wire, if it has one
    std::optional<unsigned> unit = {}; ///< _UID, where several devices share the identifier
};

class IsaDevice : public ByteDevice {
  public:
    IsaDevice(std::string name, IsaResources resources)
        : ByteDevice(std::move(name)), resources_(std::move(resources)) {}

    /// Decodes the device's ports in `space`.
    void map(AddressSpace &space);
    /// A Device object under \_SB.
    void describe(Firmware &) const override;

  private:
    const IsaResources resources_;
};

} // namespace moscope::dev
