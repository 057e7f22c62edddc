// SPDX-License-Identifier: BSD-3-Clause
#include "board/functional.hh"

#include <algorithm>

#include "cpu/x86/decode/block.hh"
#include "cpu/x86/system/interrupts.hh"
#include "cpu/x86/system/monitor.hh"

namespace moscope {

using x86::Core;
using x86::Exit;

namespace {

std::uint64_t used(const Core &c) { return c.retired + c.extra_cycles; }

} // namespace

Tick FunctionalScheduler::now() const {
    Tick t = now_;
    if (running_)
        t += span(used(*running_) - begun_, sharers_);
    // Within a block a core has counted the whole block already. Leaving the block early would set the clock back.
    seen_ = std::max(seen_, t);
    return seen_;
}

bool FunctionalScheduler::runnable(Core &c) const {
    x86::poll_monitor(c);
    return !(c.halted || c.wait_for_sipi) || x86::interrupt_deliverable(c);
}

void FunctionalScheduler::advance_to(Tick t) {
    now_ = std::max({now_, t, seen_});
    queue_.run(now_ + 1);
}

FunctionalScheduler::Outcome FunctionalScheduler::round(Tick until) {
    advance_to(now_);
    cores_.front()->blocks->collect_over(kGarbage); // between slices no core is inside a block
    runnable_.clear();
    for (Core *c : cores_)
        if (runnable(*c))
            runnable_.push_back(c);
    if (stop_)
        return Outcome::stopped;
    if (runnable_.empty()) {
        const bool hopeless = std::all_of(cores_.begin(), cores_.end(), [](const Core *c) {
            return c->wait_for_sipi || !(c->flags.system & x86::Flags::if_ || c->monitor.waiting);
        });
        const Tick next = queue_.next();
        if (hopeless || next == kNever) {
            culprit_ = cores_.front();
            return Outcome::hang;
        }
        advance_to(std::min(next, until));
        return stop_ || stop_soon_ ? Outcome::stopped : Outcome::running;
    }
    const auto sharers = static_cast<std::int64_t>(runnable_.size());
    for (Core *c : runnable_) {
        const Outcome o = slice(*c, sharers);
        if (o != Outcome::running)
            return o;
    }
    return stop_soon_ ? Outcome::stopped : Outcome::running;
}

FunctionalScheduler::Outcome FunctionalScheduler::slice(Core &c, std::int64_t sharers) {
    ++slices_;
    // A slice ends at the next event, if that is earlier.
    std::int64_t budget = kQuantum;
    const Tick next = queue_.next();
    if (next != kNever) {
        const Tick until = std::max<Tick>(next - now_, 0);
        if (until < span(kQuantum, sharers))
            budget = std::max<std::int64_t>(
                1, static_cast<std::int64_t>(static_cast<__int128>(until) * clock_.den * sharers / clock_.num));
    }
    running_ = &c;
    begun_ = used(c);
    sharers_ = sharers;
    const Exit exit = c.run(static_cast<std::uint64_t>(budget));
    const std::uint64_t spent = used(c) - begun_;
    running_ = nullptr;
    culprit_ = &c;
    const auto cycles =
        exit == Exit::pause ? std::max<std::uint64_t>(spent, static_cast<std::uint64_t>(budget)) : spent;
    advance_to(now_ + span(cycles, sharers));
    switch (exit) {
    case Exit::shutdown: return Outcome::shutdown;
    case Exit::unmodelled: return Outcome::unmodelled;
    default: return stop_ ? Outcome::stopped : Outcome::running;
    }
}

void FunctionalScheduler::archive(Archive &a) {
    a.section("functional");
    a(now_, seen_);
}

} // namespace moscope
