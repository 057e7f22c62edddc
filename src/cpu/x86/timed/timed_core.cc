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
        // One call in the common case, and nothing after it, so that no registers are saved.
        if (__builtin_expect(core.waiting_stores_ && (brought || core.next_wake() > t), 0) ||
            __builtin_expect(core.c_.blocks->may_guard(core.c_, e.address), 0))
            core.left_store_buffer(t, e, brought);
        else
            core.report_stored(e.address, e.size, e.pc);
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

void TimedCore::left_store_buffer(Tick t, const StoreBuffer::Entry &e, const Access *brought) {
    left_buffer(e.address, e.size, e.pc);
    if (waiting_stores_)
        departed(brought, t);
}

void TimedCore::take_over(Tick t) {
    c_.timed = this;
    c_.exit = Exit::none; // why the functional run ended
    end_monitor_wait(c_);
    c_.set_direct(false);
    code_news_ = &c_.blocks->map().news(c_.chip);
    l1_tlb_.clear();
    after_block_ &= ~kLeaves;
    left_ = false;
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
    Core &c = c_;
    while (true) {
        move_to(queue().now());
        pending_ = kApart;
        begin_group();
        fetch_line_ = ~Addr{0};
        const void *foreseen = block_ = nullptr; // what was run after block_ the last time
        const OpTiming *const timings = c.blocks->timings().all();
        while (!leaving()) {
            if (ahead())
                catch_up(); // after an exit from a block, pc_ is where the core is
            in_block_ = !kOverlaps;
            Block *block;
            const bool quiet = !may_attend(c);
            if (const Core::Jump &j = c.jump_of(c.rip); __builtin_expect(quiet && c.remembers(j, c.rip), 1))
                block = j.block;
            else if (!kOverlaps && quiet && !buffers_ && (block = c.blocks->find_at_hand(c)))
                ; // nothing else has to be checked
            else if (!(block = begin_block<kOverlaps>())) {
                if (!go_on<kOverlaps>())
                    break;
                continue;
            }
            if (__builtin_expect(cpl_ != c.cpl, 0))
                privilege_changed();
            if (block != foreseen && block_)
                block_->followed_by(block, c.rip);
            if (__builtin_expect(!block->ordinary, 0))
                prepare(*block);
            foreseen = block->fetch_ahead(c);
            block_ = block;
            if constexpr (kOverlaps) {
                overlap_->run_block(*block);
                if (c.exit != Exit::none)
                    overlapped_exit();
            } else
                run_block(c, *block, timings);
            if (__builtin_expect(c.exit == Exit::none && !after_block_, 1))
                continue;
            if (!end_block<kOverlaps>())
                break;
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

void TimedCore::privilege_changed() {
    cpl_ = c_.cpl;
    if (user_ == (cpl_ == 3))
        return;
    charge(Charge::busy);
    user_ = !user_;
}

void TimedCore::prepare(Block &b) {
    if (!b.timed)
        c_.blocks->time(b);
    if (b.crosses)
        after_block_ |= kRare;
}

/// After a block that was left early, or that needs more checks. False: the core leaves detailed mode.
template <bool kOverlaps> bool TimedCore::end_block() {
    Block &b = *block_;
    if (!b.kept)
        block_ = nullptr;
    Core::Begin done = std::exchange(begun_, {});
    done.block = &b;
    after_block_ &= ~kRare;
    if (b.crosses)
        fetch_line_ = ~Addr{0};
    if (c_.exit == Exit::none && !done.trap)
        return true;
    pc_ = c_.address_of(op_);
    in_block_ = false;
    op_ = &kNone;                                    // the instruction does not make the stores of an exception
    if (c_.exit == Exit::fault && !combiner_.idle()) // exceptions drain it
        drain_combiner(true);
    if (kOverlaps)
        overlap_->look_up_begins();
    const bool goes_on = c_.end_block(done);
    if (kOverlaps)
        overlap_->look_up_ended();
    return goes_on || go_on<false>();
}

/// What `exit` asks for between two blocks. False: the core leaves detailed mode.
template <bool kRests> bool TimedCore::go_on() {
    const Exit why = std::exchange(c_.exit, Exit::none);
    switch (why) {
    case Exit::none: return true;
    case Exit::pause: spin_loop_iteration(); return true;
    case Exit::halt:
        if (kRests)
            overlap_->come_to_rest();
        wait_idle();
        return true;
    default: return ended(why);
    }
}

template <bool kOverlaps> Block *TimedCore::begin_block() {
    bool interrupts = false;
    const bool visible = now() >= visible_ || (c_.signals.pending & dev::CoreSignals::stop);
    if (c_.signals.pending && visible && interrupts_need_poll(c_)) { // a masked interrupt costs nothing
        if (now() > queue().now())
            catch_up(); // the core sees what is pending up to this tick
        interrupts = true;
        if (!combiner_.idle() && interrupt_deliverable(c_)) // interrupts drain it, too
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
    if (attend || c_.watched || c_.remembers(c_.jump_of(c_.rip), c_.rip) || !(next.block = c_.blocks->find_at_hand(c_)))
        next = c_.begin_block(attend, interrupts);
    if constexpr (kOverlaps)
        overlap_->look_up_ended();
    in_block_ = !kOverlaps && next.block;
    if (next.block && (next.trap || next.resumed || !next.block->kept)) {
        begun_ = next;
        after_block_ |= kRare;
    }
    return next.block;
}

bool TimedCore::ended(Exit why) {
    // The machine stops here. It may continue, so the fiber keeps its state.
    if (why != Exit::stop)
        serially([&] { on_death(why); });
    charge(Charge::busy);
    queue().stop();
    catch_up();
    return !leaving();
}

inline void TimedCore::run_block(Core &c, Block &b, const OpTiming *timings) {
    c.r[reg_block] = c.rip;
    c.retired += b.count;
    const Op *op = b.ops();
    if (const PhysAddr at(line_of(b.key >> 2)); at.value != fetch_line_)
        if (const Addr line = c.phys.dram_address(at); line != PhysMap::kNone) {
            op_ = op;
            fetch(at, line);
        }
    accesses_ = 0;
    load_ready_ = 0;
    RegMask pending = pending_; // nothing else touches it meanwhile
    while (true) {
        op_ = op;
        const OpTiming &timing = timings[op->timing];
        if (pending & timing.touches) {
            if (timing.touches & kApart) {
                if (!op->timing) {
                    op->exec(c, op);
                    break;
                }
                fetch_of(*block_, op);
            }
            take_slot();
            pending = wait_for_sources(timing, pending); // kApart stays
        } else {
            take_slot();
        }
        op = op->exec(c, op);
        if (timing.lasts | accesses_) { // one branch for both
            if (timing.lasts || load_ready_)
                pending = result_later(timing, pending);
            if (op) { // otherwise, accesses until the next block still belong to it
                accesses_ = 0;
                load_ready_ = 0;
            }
        }
        if (!op)
            break;
    }
    pending_ = pending;
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
    return pending & ~(t.reads | t.writes);
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
    if (!__builtin_expect(ahead(), 0) || !late_fetch_hit(line, done)) // otherwise, the caller has checked
        fetch_without_slot(line, done);
}

bool TimedCore::late_fetch_hit(Addr line, Tick done) {
    catch_up();
    return port_.fetch_hit(line, done);
}

inline void TimedCore::fetch_without_slot(Addr line, Tick done) {
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
    if (const std::byte *b = port_.hit(line, Port::right_load, done)) {
        copy_few(to, b + line_offset(d), size);
        load_ready_ = cursor().cycle() + port_.hit_cycles_;
    } else
        load_beyond(d, to, size);
    return true;
}

void TimedCore::load_beyond(Addr d, void *to, unsigned size) {
    ++disturbances_; // the loss of this line may not be reported
    if (const std::byte *b = port_.probe(AccessKind::load, d, hit_done())) {
        copy_few(to, b + line_offset(d), size);
        load_ready_ = cursor().cycle() + port_.hit_cycles_;
    } else
        transact(AccessKind::load, PhysAddr(d), to, size);
}

void TimedCore::walk_load_issued(Addr d, void *to, unsigned size) {
    walking_ = true;
    if (overlap_) {
        const Overlap::OwnLoads own = overlap_->walk_begins();
        load_issued(d, to, size);
        overlap_->walked(own);
    } else
        load_issued(d, to, size);
    walking_ = false;
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
    lookahead_changed(); // the device may have woken other components, or scheduled a wake-up
    begin_group();
    charge(Charge::core);
    end_serial();
}

} // namespace moscope::x86
