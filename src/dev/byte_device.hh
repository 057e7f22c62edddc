// SPDX-License-Identifier: BSD-3-Clause
// A device with byte-wide registers on consecutive ports, as on the ISA bus. A wider access becomes one access to each
// port, lowest first.
#pragma once

#include "dev/device.hh"

namespace moscope::dev {

class ByteDevice : public Device {
  public:
    using Device::Device;

    std::uint64_t read(Requester, unsigned range, Addr offset, unsigned size) final {
        std::uint64_t value = 0;
        for (unsigned i = 0; i < size && i < 8; ++i)
            value |= std::uint64_t{read8(range, offset + i)} << (8 * i);
        return value;
    }
    void write(Requester, unsigned range, Addr offset, std::uint64_t value, unsigned size) final {
        for (unsigned i = 0; i < size && i < 8; ++i)
            write8(range, offset + i, static_cast<std::uint8_t>(value >> (8 * i)));
    }

  protected:
    virtual std::uint8_t read8(unsigned range, Addr offset) = 0;
    virtual void write8(unsigned range, Addr offset, std::uint8_t value) = 0;
};

} // namespace moscope::dev
