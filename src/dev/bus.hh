// SPDX-License-Identifier: BSD-3-Clause
// The address spaces of the platform: memory-mapped registers and I/O ports, each a sorted list of ranges. An address
// without a device reads as all ones and ignores writes, as on the bus.
#pragma once

#include <cstdint>
#include <vector>

#include "base/types.hh"
#include "dev/device.hh"

namespace moscope::dev {

class AddressSpace {
  public:
    /// Adds [base, base + size). UserError naming both devices if it overlaps another range.
    void map(Addr base, std::uint64_t size, Device &device, unsigned range);
    /// Removes a device's range (a PCI base address register moved). An unknown range has no effect.
    void unmap(const Device &device, unsigned range);

    /// Accesses of `size` bytes. Bytes beyond the end of the range read as ones and are not written.
    std::uint64_t read(Requester who, Addr address, unsigned size);
    void write(Requester who, Addr address, std::uint64_t value, unsigned size);
    bool mapped(Addr address) const { return find(address) != nullptr; }

  private:
    struct Range {
        Addr base;
        std::uint64_t size;
        Device *device;
        unsigned number;
    };
    const Range *find(Addr address) const;
    std::vector<Range> ranges_;
};

} // namespace moscope::dev
