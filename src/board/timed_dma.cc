// SPDX-License-Identifier: BSD-3-Clause
#include "board/timed_dma.hh"

#include <algorithm>
#include <utility>

namespace moscope {

TimedDma::TimedDma(EventQueue &queue, const PhysMap &map, dev::PhysMapDma::Written written, unsigned in_flight)
    : Component(queue, "devices' transfers", [](Component &c, Tick) { static_cast<TimedDma &>(c).run(); }),
      map_(map),
      written_(std::move(written)),
      direct_(map, written_),
      port_queue_(&queue),
      most_(in_flight) {
    MOSCOPE_CHECK(most_ >= 1);
    make_lanes(1);
}

void TimedDma::through(Port *port, const LogicalProcesses *processes, const EventQueue *port_queue) {
    MOSCOPE_CHECK(idle());
    port_ = port;
    processes_ = processes ? processes : &LogicalProcesses::one();
    port_queue_ = port_queue ? port_queue : &queue();
}

unsigned TimedDma::make_lanes(unsigned count) {
    const auto first = static_cast<unsigned>(lanes_.size());
    for (unsigned i = 0; i < count; ++i) {
        lanes_.push_back(std::make_unique<Lane>());
        lanes_.back()->dma = this;
    }
    return first;
}

void TimedDma::perform(unsigned lane_number, std::function<void()> work) {
    if (!port_) {
        work();
        return;
    }
    Lane &lane = *lanes_.at(lane_number);
    lane.works.push_back(std::move(work));
    ++unfinished_;
    if (!lane.fiber)
        lane.fiber.emplace([this, &lane] { body(lane); });
    if (lane.waits == For::work)
        go_on(lane, queue().now());
}

/// Has the lane resumed at `t`, which is not before now.
void TimedDma::go_on(Lane &lane, Tick t) {
    lane.waits = For::nothing;
    ready_.push_back({t, &lane});
    if (!queue().others_run()) {
        schedule_no_later_than(t);
        return;
    }
    // This runs on the thread of the port's process. A deferred wake-up replaces the pending one: defer the
    // earliest.
    for (const Ready &r : ready_)
        t = std::min(t, r.at);
    queue().defer(*this, t);
}

void TimedDma::run() {
    const auto due = [this](const Ready &r) { return r.at <= queue().now(); };
    for (auto next = ready_.begin(); (next = std::find_if(ready_.begin(), ready_.end(), due)) != ready_.end();) {
        current_ = next->lane;
        ready_.erase(next);
        current_->fiber->resume();
    }
    current_ = nullptr;
    for (const Ready &r : ready_) // with several processes, the port's events run ahead of the devices'
        schedule_no_later_than(r.at);
}

void TimedDma::wait(Lane &lane, For what) {
    lane.waits = what;
    lane.fiber->yield();
}

void TimedDma::body(Lane &lane) {
    while (true) {
        while (!lane.works.empty()) {
            const std::function<void()> work = std::move(lane.works.front());
            lane.works.pop_front();
            work();
            --unfinished_;
        }
        wait(lane, For::work);
    }
}

bool TimedDma::read(PhysAddr from, std::span<std::uint8_t> to) {
    if (!current_)
        return direct_.read(from, to);
    if (!reaches(from, to.size()))
        return false;
    transfer(AccessKind::load, from, to.data(), to.size());
    return true;
}

bool TimedDma::write(PhysAddr to, std::span<const std::uint8_t> from) {
    if (!current_)
        return direct_.write(to, from);
    if (!reaches(to, from.size()))
        return false;
    transfer(AccessKind::store, to, const_cast<std::uint8_t *>(from.data()), from.size());
    return true;
}

/// Issues as many lines at a time as may be in flight, and the next ones when all of these are done.
void TimedDma::transfer(AccessKind kind, PhysAddr at, std::uint8_t *bytes, std::uint64_t size) {
    Lane &lane = *current_;
    lane.lines.resize(most_);
    while (size) {
        const PhysAddr first = at;
        unsigned count = 0;
        for (; size && count < most_; ++count) {
            const auto n = static_cast<unsigned>(std::min<std::uint64_t>(size, kLineBytes - line_offset(at.value)));
            Access &x = lane.lines[count] = {};
            x.addr = PhysAddr(map_.dram_address(at));
            x.size = static_cast<std::uint16_t>(n);
            x.kind = kind;
            x.data = bytes;
            issue(lane, x);
            at = at + n;
            bytes += n;
            size -= n;
        }
        while (lane.open)
            wait(lane, For::lines);
        if (kind != AccessKind::store)
            continue;
        PhysAddr from = first;
        for (unsigned i = 0; i < count; ++i) {
            const Access &x = lane.lines[i];
            if (written_)
                written_(from, x.size);
            if (stored)
                stored(x.addr.value, x.size);
            from = from + x.size;
        }
    }
}

void TimedDma::issue(Lane &lane, Access &x) {
    if (in_flight_ == most_) {
        for_place_.push_back(&lane);
        wait(lane, For::place); // the transaction that ends hands its place over
    } else
        ++in_flight_;
    ++lane.open;
    x.owner = &lane;
    x.on_done = [](Access &a) {
        auto &of = *static_cast<Lane *>(a.owner);
        of.dma->done(of, a.done);
    };
    port_->issue(x, processes_->earliest_on(*port_queue_, queue().now()));
}

void TimedDma::done(Lane &lane, Tick t) {
    if (for_place_.empty())
        --in_flight_;
    else {
        Lane &next = *for_place_.front();
        for_place_.pop_front();
        go_on(next, t);
    }
    if (--lane.open == 0 && lane.waits == For::lines)
        go_on(lane, t);
}

} // namespace moscope
