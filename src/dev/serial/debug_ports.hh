// SPDX-License-Identifier: BSD-3-Clause
// Two ports for test programs, as in QEMU and Bochs: a value written to port F4h ends the run with that value as its
// status, and a byte written to port E9h goes to the debug console. A read of port E9h gives E9h, by which programs
// detect the console.
#pragma once

#include <functional>

#include "dev/byte_device.hh"

namespace moscope::dev {

class ExitPort final : public Device {
  public:
    static constexpr Addr kPort = 0xF4, kSize = 4;

    explicit ExitPort(std::function<void(std::uint32_t)> on_exit) : Device("exit"), on_exit_(std::move(on_exit)) {}

    std::uint64_t read(Requester, unsigned, Addr, unsigned) override { return ~0ull; }
    void write(Requester, unsigned, Addr offset, std::uint64_t value, unsigned) override {
        if (offset == 0 && on_exit_)
            on_exit_(static_cast<std::uint32_t>(value));
    }
    void archive(Archive &a) override { a.section(name()); }

  private:
    std::function<void(std::uint32_t)> on_exit_;
};

class DebugConsole final : public ByteDevice {
  public:
    static constexpr Addr kPort = 0xE9, kSize = 1;

    explicit DebugConsole(std::function<void(std::uint8_t)> output)
        : ByteDevice("debug-console"), output_(std::move(output)) {}

    void archive(Archive &a) override { a.section(name()); }

  protected:
    std::uint8_t read8(unsigned, Addr) override { return 0xE9; }
    void write8(unsigned, Addr, std::uint8_t value) override {
        if (output_)
            output_(value);
    }

  private:
    std::function<void(std::uint8_t)> output_;
};

} // namespace moscope::dev
