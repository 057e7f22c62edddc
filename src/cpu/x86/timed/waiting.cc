// SPDX-License-Identifier: BSD-3-Clause
// Waits during which a core in detailed mode does not run (halted, in MWAIT, asleep in a spin loop, or until all chips
// are at rest), and what ends them.
#include <algorithm>
#include <bit>

#include "cpu/x86/system/interrupts.hh"
#include "cpu/x86/system/monitor.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86 {

namespace {

/// How long a core in MWAIT waits between two checks while prefetches are under way.
constexpr Tick kLookAgain = 100 * kTicksPerNs;

} // namespace

void TimedCore::signalled(Tick t) {
    if (visible_ <= t) // else the core is about to notice an earlier signal, and this one with it
        visible_ = t + params_.interrupt_fs;
    if (waiting_idle_ || asleep())
        schedule_no_later_than(std::max(visible_, queue().now()));
}

void TimedCore::overlapped_exit() {
    if (c_.exit == Exit::halt)
        overlap_->come_to_rest();
    else
        overlap_->drain();
    if (c_.exit == Exit::pause && !overlap_->settled_since_last_pause())
        ++disturbances_;
}

void TimedCore::begin_serial() {
    catch_up();
    wait_for_serial_phase(*processes, c_.number);
}

/// The core's chip has completed the epoch meanwhile, so the core continues at its end.
void TimedCore::end_serial() {
    if (const Tick t = processes->resume_tick(queue()); now() < t) {
        charge(Charge::busy);
        move_to(t);
        lookahead_changed();
        begin_group();
        charge(Charge::core);
    }
}

void TimedCore::wait_idle() {
    charge(Charge::busy);
    waiting_idle_ = true;
    bool stop = false;
    while (!leaving()) {
        if (c_.monitor.waiting && now() > queue().now()) {
            catch_up(); // anything may happen meanwhile, so the loop checks again
            continue;
        }
        stop = c_.signals.pending & dev::CoreSignals::stop;
        const bool wakes = interrupt_deliverable(c_) || (c_.monitor.waiting && c_.monitor.masked_interrupts &&
                                                         (c_.signals.pending & dev::CoreSignals::intr));
        if (stop || (wakes && now() >= visible_))
            break;
        if (c_.monitor.waiting && !watches_line())
            break;
        if (wakes)
            schedule_no_later_than(std::max(visible_, queue().now()));
        suspend();
    }
    port_.sleeping_ = nullptr;
    waiting_idle_ = false;
    charge(Charge::idle);
    if (!stop && !leaving())
        end_monitor_wait(c_);
}

/// Whether the core still has the line that its MWAIT monitors. If so, the core is woken when anything happens to the
/// line.
bool TimedCore::watches_line() {
    const Addr line = dram(PhysAddr(c_.monitor.line));
    if (!port_.probe(AccessKind::load, line, hit_done()) || !port_.remembers(line))
        return false;
    if (port_.prefetching()) { // the core checks again later
        schedule_no_later_than(queue().now() + kLookAgain);
        return true;
    }
    port_.sleeping_ = &watch_;
    port_.wake_ = [](void *watch) {
        TimedCore &core = *static_cast<Watch *>(watch)->core;
        core.port_.sleeping_ = nullptr;
        core.schedule_no_later_than(core.queue().now());
    };
    return true;
}

/// Charges n iterations like the last one.
void TimedCore::charge_iterations(std::int64_t n) {
    const auto charge_each = [this](std::int64_t iterations) {
        for (std::int64_t i = 0; i < iterations; ++i)
            spin_.for_each_charge([this](std::int64_t cycles, std::uint8_t what) {
                advance_cycles(cycles);
                spent_[user_][what] += now() - stamp_;
                stamp_ = now();
            });
    };
    // After as many iterations as the clock's denominator, clock edges fall on the same fractions of a tick again. So
    // each such round takes and charges the same ticks.
    const std::int64_t round = cursor().clock().den;
    if (n >= 2 * round) {
        const auto before = spent_[user_];
        const std::int64_t begun = cursor().cycle();
        charge_each(round);
        const std::int64_t more = n / round - 1;
        for (unsigned what = 0; what < before.size(); ++what)
            spent_[user_][what] += more * (spent_[user_][what] - before[what]);
        advance_cycles(more * (cursor().cycle() - begun));
        stamp_ = now();
        n %= round;
    }
    charge_each(n);
}

void TimedCore::spin_loop_iteration() {
    polling_.paused(c_.spun != spun_, spent_outside_memory(), [this](auto &&...spin) { report_spinning(spin...); });
    choose_loads();
    spun_ = c_.spun;
    const SpinLoop::Iteration counts{c_.retired, c_.pauses, c_.spun, port_.inline_hits, cursor().cycle()};
    if (!spin_.iterated(c_, counts, disturbances_ + port_.lost) || queue().now() <= awake_until_ ||
        !params_.skip_spinning || stamp_ != now() || !stores_.empty() || !combiner_.idle() || leaving() || c_.watched ||
        (overlap_ && !overlap_->at_rest()) || port_.prefetching() || c_.signals.pending > dev::CoreSignals::intr ||
        (c_.signals.pending && (c_.flags.system & Flags::if_)))
        return;
    for (RegMask m = pending_ & ~kApart; m; m &= m - 1)
        if (ready_[static_cast<unsigned>(std::countr_zero(m))] > cursor().cycle())
            return;
    pending_ = kApart;

    port_.sleeping_ = this;
    port_.wake_ = [](void *self) {
        auto &core = *static_cast<TimedCore *>(self);
        core.wake_sleeper(core.queue().now());
    };
    awake_until_ = sleep();
    port_.sleeping_ = nullptr;

    // All iterations before that tick are skipped, except for the last complete one.
    const SpinLoop::Iteration &each = spin_.iteration();
    const Tick length = cursor().clock().edge(each.cycles) + 1;
    const std::int64_t n = (awake_until_ - now()) / length - 1;
    if (n <= 0)
        return;
    charge_iterations(n);
    const auto times = static_cast<std::uint64_t>(n);
    c_.retired += times * each.retired;
    c_.pauses += times * each.pauses;
    c_.spun += times * each.spun;
    spun_ = c_.spun;
    c_.spin_mark = c_.retired;
    port_.inline_hits += times * each.hits;
    polling_.skipped(times, spent_outside_memory());
}

} // namespace moscope::x86
