// SPDX-License-Identifier: BSD-3-Clause
#include "board/timed_dma.hh"

#include <algorithm>
#include <utility>

namespace moscope {

TimedDma::TimedDma(EventQueue &queue, const PhysMap &map, dev::PhysMapDma::Written written)
    : Component(queue, "devices' transfers", [](Component &c, Tick) { static_cast<TimedDma &>(c).fiber_.resume(); }),
      map_(map),
      written_(std::move(written)),
      direct_(map, written_),
      port_queue_(&queue),
      fiber_([this] { body(); }) {}

void TimedDma::through(Port *port, const LogicalProcesses *processes, const EventQueue *port_queue) {
    MOSCOPE_CHECK(idle());
    port_ = port;
    processes_ = processes ? processes : &LogicalProcesses::one();
    port_queue_ = port_queue ? port_queue : &queue();
}

void TimedDma::perform(std::function<void()> work) {
    if (!port_) {
        work();
        return;
    }
    works_.push_back(std::move(work));
    schedule_no_later_than(queue().now());
}

void TimedDma::body() {
    while (true) {
        while (!works_.empty()) {
            const std::function<void()> work = std::move(works_.front());
            works_.pop_front();
            working_ = true;
            work();
            working_ = false;
        }
        fiber_.yield();
    }
}

bool TimedDma::read(PhysAddr from, std::span<std::uint8_t> to) {
    if (!working_)
        return direct_.read(from, to);
    if (!reaches(from, to.size()))
        return false;
    transfer(AccessKind::load, from, to.data(), to.size());
    return true;
}

bool TimedDma::write(PhysAddr to, std::span<const std::uint8_t> from) {
    if (!working_)
        return direct_.write(to, from);
    if (!reaches(to, from.size()))
        return false;
    transfer(AccessKind::store, to, const_cast<std::uint8_t *>(from.data()), from.size());
    return true;
}

void TimedDma::transfer(AccessKind kind, PhysAddr at, std::uint8_t *bytes, std::uint64_t size) {
    while (size) {
        const auto n = static_cast<unsigned>(std::min<std::uint64_t>(size, kLineBytes - line_offset(at.value)));
        Access x;
        x.addr = PhysAddr(map_.dram_address(at));
        x.size = static_cast<std::uint16_t>(n);
        x.kind = kind;
        x.data = bytes;
        x.owner = this;
        x.on_done = [](Access &a) { static_cast<TimedDma *>(a.owner)->schedule_no_later_than(a.done); };
        port_->issue(x, processes_->earliest_on(*port_queue_, queue().now()));
        while (x.done == kNever) // further work may wake the fiber earlier
            fiber_.yield();
        if (kind == AccessKind::store) {
            if (written_)
                written_(at, n);
            if (stored)
                stored(x.addr.value, n);
        }
        at = at + n;
        bytes += n;
        size -= n;
    }
}

} // namespace moscope
