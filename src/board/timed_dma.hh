// SPDX-License-Identifier: BSD-3-Clause
// The devices' access to guest memory. In functional mode transfers take no time. In detailed mode each line of a
// transfer is a transaction of the protocol's DMA machine. Work runs in lanes, each on its own fiber. Within a lane,
// pieces of work run in order, and each read or write lasts as long as its transactions; lanes run side by side. A
// limited number of transactions may be in flight at a time, of one or several lanes; further ones wait in order.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "dev/dma.hh"
#include "mem/port.hh"
#include "sim/event_queue.hh"
#include "sim/fiber.hh"
#include "sim/parallel/logical_processes.hh"

namespace moscope {

class TimedDma final : public dev::Dma, private Component {
  public:
    /// `written` is called after each write; `in_flight`: transactions at a time, at least 1.
    TimedDma(EventQueue &queue, const PhysMap &map, dev::PhysMapDma::Written written, unsigned in_flight = 1);

    /// Transfers that begin from here on go through this port, whose events are in this queue (none: the devices' own).
    /// No port: they take no time. No transfer may be under way.
    void through(Port *port, const LogicalProcesses *processes = nullptr, const EventQueue *port_queue = nullptr);
    bool idle() const { return unfinished_ == 0; }
    /// Called for each line, or part of one, that was written through the port.
    std::function<void(Addr dram, unsigned size)> stored;

    unsigned make_lanes(unsigned count) override;
    void perform(unsigned lane, std::function<void()> work) override;
    bool reaches(PhysAddr from, std::uint64_t size) const override { return direct_.reaches(from, size); }
    bool read(PhysAddr from, std::span<std::uint8_t> to) override;
    bool peek(PhysAddr from, std::span<std::uint8_t> to) const override { return direct_.peek(from, to); }
    bool write(PhysAddr to, std::span<const std::uint8_t> from) override;

  private:
    /// What a suspended lane waits for.
    enum class For : std::uint8_t { work, place, lines, nothing };
    struct Lane {
        TimedDma *dma = nullptr;
        std::deque<std::function<void()>> works;
        std::optional<Fiber> fiber; ///< from the first timed piece of work on
        std::vector<Access> lines;  ///< of the transfer under way
        unsigned open = 0;          ///< lines in flight
        For waits = For::work;
    };
    /// A lane that is to be resumed.
    struct Ready {
        Tick at;
        Lane *lane;
    };
    void run();
    void body(Lane &);
    void wait(Lane &, For);
    void go_on(Lane &, Tick);
    void transfer(AccessKind kind, PhysAddr at, std::uint8_t *bytes, std::uint64_t size);
    void issue(Lane &, Access &);
    void done(Lane &, Tick);

    const PhysMap &map_;
    dev::PhysMapDma::Written written_;
    dev::PhysMapDma direct_;
    Port *port_ = nullptr;
    const LogicalProcesses *processes_ = &LogicalProcesses::one();
    const EventQueue *port_queue_;
    const unsigned most_;
    unsigned in_flight_ = 0;
    std::uint64_t unfinished_ = 0; ///< pieces of work
    std::vector<std::unique_ptr<Lane>> lanes_;
    std::vector<Ready> ready_;
    std::deque<Lane *> for_place_; ///< lanes that wait until a transaction ends
    Lane *current_ = nullptr;      ///< the lane whose fiber runs
};

} // namespace moscope
