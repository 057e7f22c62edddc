// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/timed/timed_core.hh"

#include <algorithm>
#include <bit>

#include "base/copy.hh"
#include "cpu/x86/system/interrupts.hh"
#include "cpu/x86/system/monitor.hh"

namespace moscope::x86 {

const Op TimedCore::kNone{};

TimedCore::TimedCore(EventQueue &queue, Port &port, Core &core, const TimedParams &params)
    : FiberCore(queue, "core " + std::to_string(core.number), port),
      c_(core),
      params_(params),
      stores_(queue, "store buffer " + std::to_string(core.number), port, params.store_buffer,
              params.outstanding_misses),
      l1_tlb_(params.l1d_tlb),
      combiner_(port) {
    port.prefetched_owner_ = this;
    port.prefetched_ = [](void *self, Addr line) {
        if (const auto &core = *static_cast<TimedCore *>(self); core.observer)
            core.observer->prefetched(core.c_.number, line);
    };
    combiner_.owner = this;
    combiner_.on_done = [](void *self, const Access &x) {
        auto &core = *static_cast<TimedCore *>(self);
        core.report_store(x);
        core.left_buffer(x.addr.value, x.size, x.pc);
        if (core.waiting_combiner_)
            core.departed(&x, x.done);
    };
    stores_.owner = this;
    stores_.on_drain = [](void *self, Tick t, const StoreBuffer::Entry &e, const Access *brought) {
        auto &core = *static_cast<TimedCore *>(self);
        core.left_buffer(e.address, e.size, e.pc);
        if (core.waiting_stores_)
            core.departed(brought, t);
    };
    stores_.on_access = [](void *self, const Access &x) {
        auto &core = *static_cast<TimedCore *>(self);
        core.report_store(x);
        if (core.overlap_)
            core.overlap_->buffer_freed(x.done);
    };
    companion_ = &stores_;
    if (params_.overlaps())
        overlap_ = std::make_unique<Overlap>(*this);
}

void TimedCore::take_over(Tick t) {
    c_.timed = this;
    c_.exit = Exit::none; // why the functional run ended
    end_monitor_wait(c_);
    c_.set_direct(false);
    l1_tlb_.clear();
    leaving_ = left_ = false;
    stamp_ = since_ = t;
    spent_ = {};
    polling_.reset();
    spun_ = c_.spun;
    unreported_ = 0;
    start(t);
}

void TimedCore::reset_charges(Tick now) {
    settle(now);
    spent_ = {};
    polling_.reset();
    since_ = stamp_;
    unreported_ = 0;
}

void TimedCore::settle(Tick t) {
    report_all_spinning();
    if (t <= stamp_)
        return;
    const Charge what = waiting_idle_     ? Charge::idle
                        : waiting_memory_ ? Charge::memory
                        : waiting_core_   ? Charge::core
                                          : Charge::busy;
    spent_[user_][static_cast<unsigned>(what)] += t - stamp_;
    if (what == Charge::memory)
        unreported_ += t - stamp_;
    stamp_ = t;
}

template <bool kOverlaps> void TimedCore::run() {
    while (true) {
        move_to(queue().now());
        pending_ = 0;
        begin_group();
        fetch_line_ = ~Addr{0};
        Block *before = nullptr; // the last one that was run, while it exists
        const OpTiming *const timings = c_.blocks->timings().all();
        while (!leaving_) {
            if (ahead())
                catch_up();
            Core::Begin next;
            const bool quiet = !may_attend();
            if (const Core::Jump &j = c_.jump_of(c_.rip); __builtin_expect(quiet && c_.remembers(j, c_.rip), 1))
                next.block = j.block;
            else if (!kOverlaps && quiet && !buffers_ && (next.block = c_.blocks->find_at_hand(c_)))
                ; // nothing has to be looked at
            else if (next = begin_block<kOverlaps>(); !next.block) {
                const Exit why = c_.exit;
                c_.exit = Exit::none;
                if (why == Exit::halt) {
                    if (kOverlaps)
                        overlap_->come_to_rest();
                    wait_idle();
                } else if (why != Exit::none && !ended(why))
                    break;
                continue;
            }
            if (user_ != (c_.cpl == 3)) {
                charge(Charge::busy);
                user_ = !user_;
            }
            if (before)
                before->followed_by(next.block, c_.rip - c_.r[reg_block]);
            before = next.block->kept ? next.block : nullptr;
            if constexpr (kOverlaps) {
                overlap_->run_block(*next.block);
                if (c_.exit != Exit::none)
                    overlapped_exit();
            } else
                run_block(*next.block, timings);
            if (__builtin_expect(c_.exit == Exit::none && !next.trap, 1))
                continue;
            pc_ = c_.address_of(op_);
            in_block_ = false;
            op_ = &kNone;                                    // what an exception stores is not the instruction's
            if (c_.exit == Exit::fault && !combiner_.idle()) // exceptions empty it
                drain_combiner(true);
            if (kOverlaps)
                overlap_->look_up_begins();
            const bool goes_on = c_.end_block(next);
            if (kOverlaps)
                overlap_->look_up_ended();
            if (!goes_on) {
                const Exit why = c_.exit;
                c_.exit = Exit::none;
                if (why == Exit::halt)
                    wait_idle();
                else if (why == Exit::pause)
                    spin_loop_iteration();
                else if (!ended(why))
                    break;
            }
        }
        fence();
        if (kOverlaps)
            overlap_->come_to_rest();
        charge(Charge::busy);
        report_all_spinning();
        left_ = true;
        c_.timed = nullptr;
        do
            suspend();
        while (left_);
    }
}

template <bool kOverlaps> Core::Begin TimedCore::begin_block() {
    bool interrupts = false;
    const bool visible = now() >= visible_ || (c_.signals.pending & dev::CoreSignals::stop);
    if (c_.signals.pending && visible && interrupts_need_poll(c_)) { // a masked interrupt costs nothing
        if (now() > queue().now())
            catch_up(); // the core sees what is pending up to this tick
        interrupts = true;
        if (!combiner_.idle() && interrupt_deliverable(c_)) // interrupts empty it, too
            drain_combiner(true);
    }
    const bool attend = interrupts || attends();
    if constexpr (kOverlaps) {
        if (attend)
            overlap_->drain();
        overlap_->look_up_begins();
    }
    in_block_ = false;
    pc_ = c_.rip; // the code to look up; an interrupt precedes it
    if (__builtin_expect(buffers_, 0))
        see_own_stores(c_.code64() ? c_.rip : c_.rip + c_.seg[cs].base);
    Core::Begin next;
    if (attend || c_.watched || !(next.block = c_.blocks->find_at_hand(c_)))
        next = c_.begin_block(attend, interrupts);
    if constexpr (kOverlaps)
        overlap_->look_up_ended();
    return next;
}

bool TimedCore::ended(Exit why) {
    // The machine stops here. It may continue, so the fiber keeps its state.
    if (why != Exit::stop)
        serially([&] { on_death(why); });
    charge(Charge::busy);
    queue().stop();
    catch_up();
    return !leaving_;
}

inline void TimedCore::run_block(Block &b, const OpTiming *timings) {
    Core &c = c_;
    if (__builtin_expect(!b.timed, 0))
        c.blocks->time(b);
    b.fetch_ahead(c);
    c.r[reg_block] = c.rip;
    c.retired += b.count;
    const Op *op = b.ops();
    op_ = op;
    in_block_ = true;
    if (const PhysAddr at(line_of(b.key >> 2)); at.value != fetch_line_)
        if (const Addr line = dram(at); line != PhysMap::kNone)
            fetch(at, line);
    accesses_ = 0;
    load_ready_ = 0;
    RegMask pending = pending_; // nothing else touches it meanwhile
    while (true) {
        op_ = op;
        if (__builtin_expect(op->apart, 0)) {
            if (op->fetches)
                fetch_of(b, op);
            if (!op->timing) {
                op->exec(c, op);
                break;
            }
        }
        const OpTiming &timing = timings[op->timing];
        if (--room_ < 0) {
            next_cycle();
            --room_;
        }
        if (pending & timing.touches)
            pending = wait_for_sources(timing, pending);
        op = op->exec(c, op);
        if (timing.lasts | accesses_) { // one branch for both
            if (timing.lasts || load_ready_)
                pending = result_later(timing, pending);
            if (op) { // else what comes before the next block is still this operation's
                accesses_ = 0;
                load_ready_ = 0;
            }
        }
        if (!op)
            break;
    }
    pending_ = pending;
    if (b.crosses)
        fetch_line_ = ~Addr{0};
    room_ = 0; // a taken branch, or the end of the block, ends the group
}

inline RegMask TimedCore::wait_for_sources(const OpTiming &t, RegMask pending) {
    if (const RegMask wait = t.reads & pending) {
        std::int64_t until = cursor().cycle();
        for (RegMask m = wait; m; m &= m - 1)
            until = std::max(until, ready_[static_cast<unsigned>(std::countr_zero(m))]);
        if (until > cursor().cycle()) {
            stand_still(until - cursor().cycle());
            --room_; // the operation itself
        }
    }
    return pending & ~t.touches;
}

inline RegMask TimedCore::result_later(const OpTiming &timing, RegMask pending) {
    if (timing.latency > 1 || load_ready_) {
        std::int64_t ready = std::max(cursor().cycle(), load_ready_);
        if (timing.lasts) // else the value is the load's, or an operation follows in the cycle
            ready += timing.latency - (load_ready_ && timing.latency <= 1 ? 1 : 0);
        if (timing.result != OpTiming::kSeveral)
            ready_[timing.result] = ready;
        else
            for (RegMask m = timing.writes; m; m &= m - 1)
                ready_[static_cast<unsigned>(std::countr_zero(m))] = ready;
        pending |= timing.writes;
    }
    if (timing.occupies)
        stand_still(timing.occupies);
    return pending;
}

void TimedCore::tlb_miss() {
    if (walking_)
        return;
    ++disturbances_;
    if (overlap_) {
        overlap_->tlb_missed(params_.l2_tlb_cycles);
        return;
    }
    stand_still(params_.l2_tlb_cycles);
}

void TimedCore::report(const Access &x) {
    const Tick exposed = stalled();
    if (observer)
        observer->transaction({&x, c_.number, x.pc, x.va, exposed, walking_, c_.cpl == 3, c_.cr3, false});
    charge(Charge::memory);
}

void TimedCore::wait_memory(Access &x) {
    if (!walking_ && x.kind != AccessKind::fetch)
        polling_.missed(line_of(x.addr.value), [this](auto &&...spin) { report_spinning(spin...); });
    waiting_memory_ = true;
    if (observer)
        observer->expected(x.addr.value);
    perform(x);
    waiting_memory_ = false;
}

void TimedCore::transact(AccessKind kind, PhysAddr a, void *data, unsigned size) {
    if (overlap_ && kind == AccessKind::load) {
        overlap_->load_missed(a.value, data, size);
        return;
    }
    ++disturbances_;
    charge(Charge::busy);
    Access x;
    x.addr = a;
    x.size = static_cast<std::uint16_t>(size);
    x.kind = kind;
    x.data = data;
    x.pc = pc();
    x.va = kind == AccessKind::fetch || walking_ ? 0 : va_;
    wait_memory(x);
    begin_group();
    report(x);
}

void TimedCore::fetch_of(const Block &b, const Op *op) {
    const PhysAddr at(line_of((b.key >> 2) + op->start + op->length - 1));
    fetch(at, dram(at));
}

void TimedCore::fetch_slow(Addr line) {
    const Tick done = hit_done();
    if (ahead()) { // else the caller has looked
        catch_up();
        if (port_.fetch_hit(line, done))
            return;
    }
    ++disturbances_;
    if (port_.probe(AccessKind::fetch, line, done))
        return; // the next line is fetched while this one is decoded
    transact(AccessKind::fetch, PhysAddr(line), nullptr, kLineBytes);
}

void TimedCore::load_line(Addr d, void *to, unsigned size) {
    looks_at(d);
    if (accesses_++)
        next_access();
    load_issued(d, to, size);
}

bool TimedCore::load_issued(Addr d, void *to, unsigned size) {
    if (combiner_.holds(line_of(d)))
        drain_combiner(true);
    if (stores_.empty())
        look_at_buffers();
    else {
        ++disturbances_;
        StoreBuffer::Found found = stores_.look(d, to, size);
        if (found == StoreBuffer::Found::part)
            wait_for_stores([&] { return (found = stores_.look(d, to, size)) != StoreBuffer::Found::part; });
        if (found == StoreBuffer::Found::whole) {
            load_ready_ = cursor().cycle() + port_.hit_cycles_;
            return true;
        }
    }
    if (ahead())
        catch_up();
    const Tick done = hit_done();
    const Addr line = line_of(d);
    std::byte *b = port_.hit(line, Port::right_load, done);
    if (!b) {
        ++disturbances_; // the loss of this line may not be reported
        b = port_.probe(AccessKind::load, d, done);
    }
    if (b) {
        copy_few(to, b + line_offset(d), size);
        load_ready_ = cursor().cycle() + port_.hit_cycles_;
        return true;
    }
    transact(AccessKind::load, PhysAddr(d), to, size);
    return true;
}

void TimedCore::load(PhysAddr a, void *to, unsigned size) {
    const Addr d = dram(a);
    const unsigned first = std::min(size, kLineBytes - line_offset(d));
    if (first < size && overlap_)
        overlap_->also_loads(d + first, va_ + first);
    load_line(d, to, first);
    if (first < size) {
        va_ += first;
        load_line(d + first, static_cast<std::uint8_t *>(to) + first, size - first);
        va_ -= first;
        if (overlap_)
            overlap_->loads_no_more();
    }
}

void TimedCore::store(PhysAddr a, const void *from, unsigned size) {
    const Addr d = dram(a);
    const unsigned first = std::min(size, kLineBytes - line_offset(d));
    store_line(d, from, first);
    if (first < size) {
        va_ += first;
        store_line(d + first, static_cast<const std::uint8_t *>(from) + first, size - first);
        va_ -= first;
    }
}

void TimedCore::begin_device_access() {
    fence();
    charge(Charge::busy);
    begin_serial();
}

void TimedCore::end_device_access(std::uint64_t cycles) {
    advance_cycles(static_cast<std::int64_t>(cycles));
    lookahead_changed(); // the device may have woken others, or set a time for that
    begin_group();
    charge(Charge::core);
    end_serial();
}

} // namespace moscope::x86
