// SPDX-License-Identifier: BSD-3-Clause
// The services of the machine that a core uses: device registers, the clock, machine-wide model-specific registers.
// The board implements them. Only slow paths call them, so the calls are virtual.
#pragma once

#include <cstdint>

#include "base/types.hh"

namespace moscope::x86 {

struct Core;

/// Registers just before a probed instruction runs. At the first instruction of a function, RDI, RSI and RDX hold its
/// first arguments, and RSP points to the return address.
struct Probed {
    std::uint64_t rdi, rsi, rdx, rsp;
};

class Platform {
  public:
    virtual ~Platform() = default;
    /// Physical addresses that are not DRAM. Sizes 1, 2, 4, 8.
    virtual std::uint64_t mmio_read(Core &, PhysAddr, unsigned size) = 0;
    virtual void mmio_write(Core &, PhysAddr, std::uint64_t value, unsigned size) = 0;
    virtual std::uint64_t io_read(Core &, std::uint16_t port, unsigned size) = 0;
    virtual void io_write(Core &, std::uint16_t port, std::uint64_t value, unsigned size) = 0;
    /// The machine's clock in core cycles, which never goes back.
    virtual std::uint64_t cycles(Core &) = 0;
    /// Model-specific registers that belong to the machine, not to the core. False: there is no such register.
    virtual bool msr_read(Core &, std::uint32_t msr, std::uint64_t &value) = 0;
    virtual bool msr_write(Core &, std::uint32_t msr, std::uint64_t value) = 0;
    /// The guest used a model-specific register that the model lacks; it gets #GP. For the log.
    virtual void unknown_msr(Core &, std::uint32_t msr, bool write) { (void)msr, (void)write; }
    /// gem5's pseudo-instruction (0F 04, then a 16-bit function); arguments in RDI, RSI, RDX, result in RAX.
    virtual void m5op(Core &, unsigned function) = 0;
    /// A core has carried out an instruction with this probe (decode/probes.hh). Several threads may call at once.
    virtual void probed(Core &, unsigned probe, const Probed &before) { (void)probe, (void)before; }
    /// A core carries out SYSCALL in 64-bit mode; RAX has the number of the system call.
    virtual void system_called(Core &) {}
    /// A core is about to carry out the instruction at linear address `at`, which Probes::watch_return() watches.
    virtual void returned(Core &, Addr at) { (void)at; }
};

} // namespace moscope::x86
