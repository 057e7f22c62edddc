// SPDX-License-Identifier: BSD-3-Clause
// A device of the platform: registers in memory or port ranges, a state that can be checkpointed, and a
// description of itself for the firmware tables, so that tables and hardware cannot drift apart. Devices that
// act in simulated time hold an Alarm (dev/time.hh).
#pragma once

#include <cstdint>
#include <string>

#include "base/types.hh"
#include "sim/archive.hh"

namespace moscope::dev {

struct Firmware; // dev/firmware/firmware.hh: what the firmware tables are made of

/// The core that accesses a register; kNoCore: a device or the loader.
using Requester = unsigned;
inline constexpr Requester kNoCore = ~0u;

class Device {
  public:
    explicit Device(std::string name) : name_(std::move(name)) {}
    virtual ~Device() = default;
    Device(const Device &) = delete;
    Device &operator=(const Device &) = delete;

    const std::string &name() const { return name_; }

    /// Register accesses: `range` is the number given when the range was mapped (dev/bus.hh), `offset` counts
    /// from its start, size is 1, 2, 4 or 8 bytes. Values are zero-extended. Ports use the same two functions.
    virtual std::uint64_t read(Requester, unsigned range, Addr offset, unsigned size) = 0;
    virtual void write(Requester, unsigned range, Addr offset, std::uint64_t value, unsigned size) = 0;

    /// Power-on state.
    virtual void reset() {}
    /// Saves or loads what changes during a run.
    virtual void archive(Archive &) = 0;
    /// Adds this device to the firmware tables.
    virtual void describe(Firmware &) const {}

  private:
    std::string name_;
};

} // namespace moscope::dev
