// SPDX-License-Identifier: BSD-3-Clause
// Devices' way to guest memory. In functional mode it takes no time. In detailed mode every line of a transfer is a
// transaction of the protocol's DMA machine, as every core's miss is: what a device does runs on a fiber of its own, one
// piece of work after the other, and each read and write in it lasts as long as its transactions.
#pragma once

#include <deque>
#include <functional>

#include "dev/dma.hh"
#include "mem/port.hh"
#include "sim/event_queue.hh"
#include "sim/fiber.hh"

namespace moscope {

class TimedDma final : public dev::Dma, private Component {
  public:
    /// `written` hears of every write after its bytes are in place.
    TimedDma(EventQueue &queue, const PhysMap &map, dev::PhysMapDma::Written written);

    /// Transfers that begin from here on go through this port; null: they take no time. Nothing may be under way.
    void through(Port *port);
    /// Where the port's chip has a queue of its own: what begins is no earlier than the end of its last window of time.
    const EventQueue *beside = nullptr;
    bool idle() const { return works_.empty() && !working_; }
    /// Told of each line, or part of one, that was written through the port.
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
    std::deque<std::function<void()>> works_;
    bool working_ = false;
    Fiber fiber_;
};

} // namespace moscope
