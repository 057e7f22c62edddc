// SPDX-License-Identifier: BSD-3-Clause
#include "cpu/x86/timed/overlap.hh"

#include <algorithm>
#include <utility>

#include "cpu/x86/decode/block.hh"
#include "cpu/x86/timed/timed_core.hh"

namespace moscope::x86 {

using Charge = TimedCore::Charge;

Overlap::Overlap(TimedCore &core)
    : core_(core),
      c_(core.c_),
      window_(core.params_.core.window, core.params_.issue_width),
      most_(std::min(core.params_.outstanding_misses, kFlights - 1)),
      mispredicted_(core.params_.core.mispredicted_cycles) {
    for (Flight &f : flights_) {
        f.owner = this;
        f.access.owner = &f;
        f.access.kind = AccessKind::load;
        f.access.on_done = [](Access &x) {
            auto &flight = *static_cast<Flight *>(x.owner);
            flight.owner->arrived(flight);
        };
    }
}

void Overlap::run_block(Block &b) {
    TimedCore &k = core_;
    c_.r[reg_block] = c_.rip;
    c_.retired += b.count;
    const Op *op = b.ops();
    k.op_ = op;
    k.in_block_ = true;
    if (const PhysAddr at(line_of(b.key >> 2)); at.value != k.fetch_line_)
        if (const Addr line = k.dram(at); line != PhysMap::kNone)
            k.fetch(at, line);
    const OpTiming *const timings = c_.blocks->timings().all();
    const OpPipes *const pipes = c_.blocks->timings().pipes();
    follow_clock();
    do {
        k.op_ = op;
        if (__builtin_expect(op->fetches, 0)) {
            move_clock();
            k.fetch_of(b, op);
            follow_clock();
        }
        const OpPipes &needs = pipes[op->timing];
        if (needs.form == OpPipes::Form::simple) {
            op = run_simple(op, needs);
            continue;
        }
        k.accesses_ = 0;
        k.load_ready_ = 0;
        late_ = arrived_at_ = 0;
        switch (needs.form) {
        case OpPipes::Form::load: op = run_load(op, needs); break;
        case OpPipes::Form::store: op = run_store(op, needs); break;
        default: op = run_general(op, needs);
        }
    } while (op);
    move_clock();
    if (const OpTiming &t = timings[k.op_->timing]; t.kind >= OpKind::conditional && c_.exit == Exit::none)
        branched(t, k.op_);
    k.pc_ = c_.address_of(k.op_);
    k.in_block_ = false;
}

/// If something other than a load has taken time, the front end has stood still meanwhile.
inline void Overlap::follow_clock() {
    const std::int64_t cycle = core_.cursor().cycle();
    if (cycle != seen_) {
        window_.point.not_before(cycle);
        seen_ = cycle;
    }
}

void Overlap::hold_until(std::int64_t cycle) {
    window_.point.not_before(cycle);
    if (const std::int64_t wait = cycle - core_.cursor().cycle(); wait > 0) {
        core_.charge(Charge::busy);
        core_.advance_cycles(wait);
        core_.charge(Charge::core);
    }
    seen_ = core_.cursor().cycle();
}

inline void Overlap::move_clock() {
    const std::int64_t cycle = window_.point.cycle;
    if (cycle > seen_) {
        core_.advance_cycles(cycle - seen_ - full_);
        if (__builtin_expect(full_ != 0, 0)) {
            core_.charge(Charge::busy);
            core_.advance_cycles(full_);
            core_.charge(Charge::core);
        }
        seen_ = cycle;
    }
    full_ = 0;
}

inline std::int64_t Overlap::take_place(unsigned slots) {
    const std::int64_t in_turn = window_.dispatch(slots), cycle = window_.point.cycle;
    if (__builtin_expect(cycle > in_turn, 0))
        full_ += std::max<std::int64_t>(0, cycle - std::max(in_turn, seen_));
    return cycle;
}

inline const Op *Overlap::run_simple(const Op *op, const OpPipes &p) {
    const std::int64_t cycle = take_place(p.slots);
    const Op *const next = op->exec(c_, op);
    const std::int64_t done = window_.ready.latest(p.source, cycle) + p.latency;
    window_.ready.set(p.result, done);
    window_.done(done, p.slots);
    done_at_ = done;
    return next;
}

inline std::int64_t Overlap::dispatch(unsigned slots) {
    const std::int64_t cycle = take_place(slots);
    move_clock();
    return cycle;
}

/// The earliest cycle at which the data of the running operation's loads are there.
inline std::int64_t Overlap::loaded_at(unsigned loads) {
    if (loads && !arrived_at_)
        address_at_ = pipes_.take(Pipe::ports, address_at_, 1);
    const std::int64_t data =
        std::max(arrived_at_, address_at_ + late_ + static_cast<std::int64_t>(core_.port_.hit_cycles_));
    const Addr unit = core_.va_ / 8;
    const Forward &f = forwards_[unit % kForwards];
    return f.unit == unit ? std::max(data, f.ready) : data;
}

Overlap::OwnLoads Overlap::walk_begins() { return {core_.load_ready_, std::exchange(arrived_at_, 0)}; }

void Overlap::walked(OwnLoads own) {
    const std::int64_t wanted = address_at_ + late_;
    const std::int64_t takes =
        arrived_at_ ? std::clamp<std::int64_t>(arrived_at_ - wanted, 1, kLongWalk) : core_.port_.hit_cycles_;
    const std::int64_t begins = pipes_.take(Pipe::walker, wanted, static_cast<unsigned>(takes));
    late_ = std::max(arrived_at_, begins + (arrived_at_ ? 0 : takes)) - address_at_;
    core_.load_ready_ = own.load_ready;
    arrived_at_ = own.arrived_at;
}

void Overlap::look_up_begins() {
    address_at_ = core_.cursor().cycle();
    late_ = arrived_at_ = 0;
}

void Overlap::look_up_ended() {
    follow_clock();
    if (late_ || arrived_at_)
        hold_until(std::max(arrived_at_, address_at_ + late_));
}

/// After an operation that may have waited in another way than a load does.
inline void Overlap::wait_ended() {
    if (__builtin_expect(core_.cursor().cycle() != seen_, 0)) {
        follow_clock();
        done_at_ = std::max(done_at_, seen_);
    }
}

inline const Op *Overlap::run_load(const Op *op, const OpPipes &p) {
    address_at_ = window_.ready.latest(p.address, dispatch(p.slots));
    const Op *const next = op->exec(c_, op);
    std::int64_t begins = window_.ready.latest(p.source, address_at_ + late_);
    // An operation that only loads has its value when the load has it; otherwise, its execution follows the load.
    if (core_.load_ready_ || arrived_at_)
        begins = std::max(begins, loaded_at(1) - p.only_loads);
    done_at_ = begins + p.latency;
    wait_ended();
    window_.ready.set(p.result, done_at_);
    window_.done(done_at_, p.slots);
    return next;
}

inline std::int64_t Overlap::stored(unsigned stores) {
    std::int64_t retires = done_at_;
    do
        retires = pipes_.take(Pipe::ports, retires, 1);
    while (--stores);
    const Addr unit = core_.va_ / 8;
    forwards_[unit % kForwards] = {unit, done_at_ + static_cast<std::int64_t>(core_.port_.hit_cycles_)};
    return retires;
}

inline const Op *Overlap::run_store(const Op *op, const OpPipes &p) {
    address_at_ = window_.ready.latest(p.address, dispatch(p.slots));
    const Op *const next = op->exec(c_, op);
    const std::int64_t begins = window_.ready.latest(p.source, address_at_ + late_);
    done_at_ = begins + p.latency;
    const std::int64_t retires = stored(1);
    wait_ended();
    window_.ready.set(p.result, done_at_);
    window_.done(std::max(done_at_, retires), p.slots);
    return next;
}

const Op *Overlap::run_general(const Op *op, const OpPipes &p) {
    if (!op->timing) { // the block's end
        move_clock();
        return op->exec(c_, op);
    }
    const OpTiming &t = c_.blocks->timings().all()[op->timing];
    address_at_ = window_.ready.latest(t.address, dispatch(p.slots));
    if (__builtin_expect(t.unit == OpUnit::all, 0))
        drain(); // so that RDTSCP reads the clock when all before it is done
    const Op *const next = op->exec(c_, op);
    const std::int64_t operands = window_.ready.latest(p.sources & ~RegMask{t.address}, address_at_ + late_);
    std::int64_t retires = done_at_ = operands + p.latency;
    if (p.pipes | p.loads | p.stores | static_cast<std::uint8_t>(t.unit) | core_.accesses_)
        retires = execute(t, p, operands);
    wait_ended();
    window_.ready.set(p.writes, done_at_);
    window_.done(std::max(done_at_, retires), p.slots);
    if (__builtin_expect(t.unit == OpUnit::all, 0)) {
        drain();
        hold_until(core_.cursor().cycle() + t.occupies);
    } else if (__builtin_expect(t.unit == OpUnit::dispatch, 0)) {
        hold_until(window_.point.cycle + t.occupies);
    }
    return next;
}

/// For an operation that needs a pipe or accesses memory: sets the cycle at which it is done, and returns the one at
/// which it can retire.
inline std::int64_t Overlap::execute(const OpTiming &t, const OpPipes &p, std::int64_t begins) {
    bool only_loads = false;
    if (core_.load_ready_ || arrived_at_) {
        begins = std::max(loaded_at(p.loads), begins);
        only_loads = t.reads == t.address;
    }
    if (p.pipes)
        begins = pipes_.take(p.pipes, begins - only_loads, p.busy) + only_loads;
    else if (t.unit == OpUnit::integer_divider || t.unit == OpUnit::float_divider) {
        std::int64_t &free = divider_free_[t.unit == OpUnit::float_divider];
        begins = std::max(begins, free);
        free = begins + p.busy;
    }
    done_at_ = begins + p.latency - only_loads;
    return p.stores ? stored(p.stores) : done_at_;
}

void Overlap::branched(const OpTiming &t, const Op *op) {
    const Addr pc = c_.address_of(op), after = c_.address_after(op);
    bool foreseen = true;
    switch (t.kind) {
    case OpKind::conditional: foreseen = predictor_.went(pc, c_.rip != after); break;
    case OpKind::call: predictor_.called(after); break;
    case OpKind::ret: foreseen = predictor_.returned(c_.rip); break;
    case OpKind::indirect_call: predictor_.called(after); [[fallthrough]];
    case OpKind::indirect: foreseen = predictor_.went_to(pc, c_.rip); break;
    default: break;
    }
    follow_clock();
    if (!foreseen)
        hold_until(done_at_ + mispredicted_);
    else if (c_.rip != after) { // a taken branch ends the group; one every two cycles (instruction tables)
        taken_at_ = std::max(window_.point.cycle + 1, taken_at_ + 2);
        window_.point.not_before(taken_at_);
    }
}

void Overlap::drain() { hold_until(std::max(window_.empty_at(), core_.cursor().cycle())); }

void Overlap::come_to_rest() {
    drain();
    while (under_way_) {
        core_.charge(Charge::busy);
        waits_ = core_.waiting_core_ = true;
        core_.suspend();
        waits_ = core_.waiting_core_ = false;
        core_.charge(Charge::core);
    }
}

bool Overlap::settled_since_last_pause() {
    const bool settled = predictor_seen_ == predictor_.changes() && history_seen_ == predictor_.history();
    predictor_seen_ = predictor_.changes();
    history_seen_ = predictor_.history();
    return settled;
}

// --- requests

inline void Overlap::change(Flight &f, Flight::State to) {
    const std::uint64_t bit = std::uint64_t{1} << (&f - flights_.data());
    f.state = to;
    in_use_ = to == Flight::free ? in_use_ & ~bit : in_use_ | bit;
    planned_ = to == Flight::planned ? planned_ | bit : planned_ & ~bit;
}

Overlap::Flight *Overlap::flight_of(Addr line) {
    Flight *found = nullptr;
    for_each(in_use_, [&](Flight &f) {
        if (core_.port_.line(f.access.addr.value) == line && (!found || f.access.kind == AccessKind::load))
            found = &f;
    });
    return found;
}

Overlap::Flight *Overlap::plan(Addr dram, unsigned size, Addr pc, Addr va, Tick at, AccessKind kind) {
    if (!~in_use_)
        return nullptr;
    Flight &f = flights_[static_cast<unsigned>(std::countr_one(in_use_))];
    change(f, Flight::planned);
    f.awaited = false;
    f.at = at;
    f.access.addr = PhysAddr(dram);
    f.access.size = static_cast<std::uint16_t>(size);
    f.access.kind = kind;
    f.access.data = nullptr;
    f.access.pc = pc;
    f.access.va = va;
    return &f;
}

void Overlap::drop_plans() {
    for_each(planned_, [this](Flight &f) {
        if (!f.awaited)
            change(f, Flight::free);
    });
}

Tick Overlap::tick_of(std::int64_t cycle) const {
    const std::int64_t wait = cycle - core_.cursor().cycle();
    return wait > 0 ? core_.cursor().after(wait) : core_.now();
}

bool Overlap::in_cache(AccessKind kind, Addr d) {
    const std::uint64_t hits = core_.port_.inline_hits;
    const bool there = core_.port_.probe(kind, d, core_.hit_done());
    core_.port_.inline_hits = hits;
    return there;
}

void Overlap::plan_second() {
    if (second_ != kNone && !flight_of(core_.port_.line(second_)) && !in_cache(AccessKind::load, second_))
        plan(second_, 1, core_.pc(), second_va_, tick_of(address_at_ + late_));
}

void Overlap::prefetch(Addr va, bool write, bool user) {
    TimedCore &k = core_;
    Addr d;
    unsigned late;
    if (!translate(va, user, d, late))
        return;
    ++k.disturbances_;
    if (k.now() > k.queue().now())
        k.catch_up();
    const AccessKind kind = write ? AccessKind::store : AccessKind::load;
    if (k.combiner_.holds(line_of(d)) || !room_for_more() || flight_of(k.port_.line(d)) || in_cache(kind, d))
        return;
    if (Flight *f = plan(d, 1, k.pc(), va, k.now(), kind)) {
        request(*f);
        k.lookahead_changed();
    }
}

void Overlap::buffer_freed(Tick t) {
    if (waits_ && planned_)
        core_.schedule_no_later_than(std::max(t, core_.queue().now()));
}

bool Overlap::room_for_more() const { return under_way_ + core_.stores_.under_way() < most_; }

void Overlap::request(Flight &f) {
    change(f, Flight::under_way);
    ++under_way_;
    if (core_.observer)
        core_.observer->expected(f.access.addr.value);
    core_.port_.issue(f.access, core_.now());
}

Tick Overlap::request_due(Flight &oldest) {
    const Tick now = core_.now();
    // The oldest load gets a miss buffer even if stores use all of them; otherwise, the core might wait for ever.
    if (oldest.state == Flight::planned && oldest.at <= now && under_way_ < most_)
        request(oldest);
    Tick next = kNever;
    while (true) {
        Flight *first = nullptr;
        for_each(planned_, [&first](Flight &f) {
            if (!first || f.at < first->at)
                first = &f;
        });
        if (!first || !room_for_more())
            break;
        next = first->at;
        if (next > now)
            break;
        request(*first);
        next = kNever;
    }
    if (oldest.state == Flight::planned && oldest.at > now)
        next = std::min(next, oldest.at);
    core_.lookahead_changed();
    return next;
}

void Overlap::arrived(Flight &f) {
    --under_way_;
    ++arrivals_;
    if (f.awaited)
        change(f, Flight::done);
    else {
        change(f, Flight::free);
        core_.report_store(f.access); // it caused no stall
    }
    if (waits_)
        core_.schedule_no_later_than(f.access.done);
}

/// Waits until the oldest load's line is there. The core has caught up with the queue.
void Overlap::wait_for(Flight &oldest) {
    TimedCore &k = core_;
    std::uint64_t seen = arrivals_;
    bool anew = true;
    k.waiting_memory_ = oldest.state == Flight::under_way;
    while (oldest.state != Flight::done) {
        if (!k.waiting_memory_ && oldest.at <= k.now()) { // so far it has waited for its address
            k.charge(Charge::core);
            k.waiting_memory_ = true;
        }
        if (anew)
            look_ahead();
        if (const Tick next = request_due(oldest); next != kNever)
            k.schedule_no_later_than(std::max(next, k.queue().now()));
        waits_ = true;
        k.waiting_core_ = !k.waiting_memory_;
        k.suspend();
        waits_ = false;
        if (oldest.state != Flight::done && k.now() > k.queue().now())
            k.catch_up();
        k.waiting_core_ = false;
        anew = arrivals_ != seen;
        seen = arrivals_;
    }
    k.waiting_memory_ = false;
    k.move_to(oldest.access.done);
    drop_plans();
}

void Overlap::load_missed(Addr d, void *to, unsigned size) {
    TimedCore &k = core_;
    follow_clock();
    ++k.disturbances_;
    k.charge(Charge::busy);
    const Addr line = line_of(d);
    if (k.now() > k.queue().now()) {
        k.catch_up();
        // The line may have arrived meanwhile.
        if (const std::byte *b = k.port_.probe(AccessKind::load, d, k.hit_done())) {
            std::memcpy(to, b + line_offset(d), size);
            k.load_ready_ = k.cursor().cycle() + k.port_.hit_cycles_;
            return;
        }
    }
    Flight *f = flight_of(k.port_.line(d));
    if (!f || f->access.kind != AccessKind::load) // a prefetch for a store serves the load as well, once it is there
        f = plan(d, size, 0, 0, tick_of(address_at_ + late_));
    MOSCOPE_CHECK(f && f->state != Flight::done);
    f->awaited = true;
    f->access.addr = PhysAddr(d);
    f->access.size = static_cast<std::uint16_t>(size);
    f->access.data = to;
    f->access.pc = k.pc();
    f->access.va = k.walking_ ? 0 : k.va_;
    if (!k.walking_)
        k.polling_.missed(line, [&k](auto &&...spin) { k.report_spinning(spin...); });
    wait_for(*f);
    k.report(f->access);
    change(*f, Flight::free);
    f->awaited = false;
    seen_ = arrived_at_ = k.cursor().cycle();
    second_ = kNone;
}

} // namespace moscope::x86
