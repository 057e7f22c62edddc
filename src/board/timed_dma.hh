// SPDX-License-Identifier: BSD-3-Clause
// The devices' access to guest memory. In functional mode transfers take no time. In detailed mode each line of a transfer is a
// transaction of the protocol's DMA machine. The work of all devices runs on one fiber, in order, and each read and write lasts
// as long as its transactions.
#pragma once

#include <deque>
#include <functional>

#include "dev/dma.hh"
#include "mem/port.hh"
#include "sim/event_queue.hh"
#include "sim/fiber.hh"
#include "sim/parallel/logical_processes.hh"

namespace moscope {

class TimedDma final : public dev::Dma, private Component {
  public:
    /// `written` is called after each write.
    TimedDma(EventQueue &queue, const PhysMap &map, dev::PhysMapDma::Written written);

    /// Transfers that begin from here on go through this port, whose events are in this queue (none: the devices' own).
    /// No port: they take no time. No transfer may be under way.
    void through(Port *port, const LogicalProcesses *processes = nullptr, const EventQueue *port_queue = nullptr);
    bool idle() const { return works_.empty() && !working_; }
    /// Called for each line, or part of one, that was written through the port.
    std::function<void(Addr dram, unsigned size)> stored;

    void perform(std::function<void()> work) override;
    bool reaches(PhysAddr from, std::uint64_t size) const override { return direct_.reaches(from, size); }
    bool read(PhysAddr from, std::span<std::uint8_t> to) override;
    bool write(PhysAddr to, std::span<const std::uint8_t> from) override;

  private:
    void body();
    void transfer(AccessKind kind, PhysAddr at, std::uint8_t *bytes, std::uint64_t size);

    const PhysMap &map_;
    dev::PhysMapDma::Written written_;
    dev::PhysMapDma direct_;
    Port *port_ = nullptr;
    const LogicalProcesses *processes_ = &LogicalProcesses::one();
    const EventQueue *port_queue_;
    std::deque<std::function<void()>> works_;
    bool working_ = false;
    Fiber fiber_;
};

} // namespace moscope
