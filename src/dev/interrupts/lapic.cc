// SPDX-License-Identifier: BSD-3-Clause
#include "dev/interrupts/lapic.hh"

#include <bit>

#include "dev/devices.hh"

namespace moscope::dev {

namespace {

// Error status (APIC280).
constexpr std::uint32_t kSentIllegalVector = 1u << 5, kReceivedIllegalVector = 1u << 6;

constexpr unsigned kFirstLegalVector = 16;

// What software can write in each LVT entry; delivery status and remote IRR are read-only.
constexpr std::uint32_t kLvtWritable[] = {0x300FF, 0x107FF, 0x107FF, 0x1A7FF, 0x1A7FF, 0x107FF};
constexpr std::uint32_t kExtendedLvtWritable = 0x107FF;
constexpr std::uint32_t kLevelTriggered = 1u << 15, kRemoteIrr = 1u << 14;

template <class B> bool test(const B &bits, unsigned v) { return (bits[v / 32 % 8] >> (v % 32)) & 1; }
template <class B> void set(B &bits, unsigned v, bool on = true) {
    const std::uint32_t bit = 1u << (v % 32);
    bits[v / 32 % 8] = on ? bits[v / 32 % 8] | bit : bits[v / 32 % 8] & ~bit;
}

} // namespace

int LocalApic::highest(const Bits &bits) {
    for (int i = 7; i >= 0; --i)
        if (bits[static_cast<unsigned>(i)])
            return 32 * i + 31 - std::countl_zero(bits[static_cast<unsigned>(i)]);
    return -1;
}

LocalApic::LocalApic(EventQueue &queue, const TimeSource &time, ApicBus &bus, CoreSignals &signals, std::uint8_t id,
                     bool bootstrap, Clock reference)
    : time_(time),
      bus_(bus),
      signals_(signals),
      reset_id_(id),
      bootstrap_(bootstrap),
      reference_(reference),
      alarm_(queue, "lapic" + std::to_string(id), [this](Tick t) { run_timer(t); }) {
    bus.attach(*this);
    reset();
}

void LocalApic::reset() {
    base_ = kBase | kBaseEnable | (bootstrap_ ? kBaseBootstrap : 0);
    id_ = reset_id_;
    pin_ = {};
    reset_registers();
}

void LocalApic::init_reset() { reset_registers(); }

void LocalApic::reset_registers() {
    tpr_ = 0;
    ldr_ = 0;
    dfr_ = 0xFFFF'FFFF;
    svr_ = 0xFF;
    esr_ = errors_ = icr_low_ = icr_high_ = extended_control_ = 0;
    isr_ = tmr_ = irr_ = Bits{};
    enable_.fill(0xFFFF'FFFF);
    lvt_.fill(kMasked);
    ext_int_message_ = false;
    initial_ = first_ = divide_ = 0;
    start_ = 0;
    expiry_ = kNever;
    alarm_.set(kNever);
    update();
}

void LocalApic::archive(Archive &a) {
    a(base_, id_, tpr_, ldr_, dfr_, svr_, esr_, errors_, icr_low_, icr_high_, extended_control_, isr_, tmr_, irr_,
      enable_, lvt_, pin_, ext_int_message_, initial_, first_, divide_, start_, expiry_);
    if (a.loading())
        alarm_.set(expiry_);
}

// --- what is pending ----------------------------------------------------------------------------------------------

void LocalApic::raise(CoreSignals::Bit b) {
    signals_.raise(b);
    if (on_raise_)
        on_raise_();
}

std::uint8_t LocalApic::processor_priority() const {
    const int in_service = highest(isr_);
    const auto isr_class = static_cast<std::uint8_t>(in_service < 0 ? 0 : in_service & 0xF0);
    return (tpr_ & 0xF0) >= isr_class ? tpr_ : isr_class;
}

std::uint8_t LocalApic::arbitration_priority() const {
    const int requested = highest(irr_), in_service = highest(isr_);
    const int irr_class = requested < 0 ? 0 : requested & 0xF0, isr_class = in_service < 0 ? 0 : in_service & 0xF0;
    const int tpr_class = tpr_ & 0xF0;
    if (tpr_class >= irr_class && tpr_class > isr_class)
        return tpr_;
    return static_cast<std::uint8_t>(std::max({tpr_class, irr_class, isr_class}));
}

int LocalApic::pending_vector() const {
    if (!enabled())
        return -1;
    Bits candidates = irr_;
    if (extended_control_ & 1) // IerEn
        for (unsigned i = 0; i < 8; ++i)
            candidates[i] &= enable_[i];
    const int v = highest(candidates);
    return v >= 0 && (v & 0xF0) > (processor_priority() & 0xF0) ? v : -1;
}

bool LocalApic::ext_int_pending() const {
    if (ext_int_message_)
        return true;
    if (!pin_[0])
        return false;
    if (!(base_ & kBaseEnable)) // LINT0 is the core's INTR pin then
        return base_ & kBaseBootstrap;
    return !(lvt_[lint0] & kMasked) && static_cast<Delivery>((lvt_[lint0] >> 8) & 7) == Delivery::ext_int;
}

void LocalApic::update() {
    if (ext_int_pending() || pending_vector() >= 0) {
        if (!(signals_.pending & CoreSignals::intr))
            raise(CoreSignals::intr);
    } else {
        signals_.lower(CoreSignals::intr);
    }
}

int LocalApic::acknowledge() {
    if (expiry_ <= time_.now())
        run_timer(time_.now());
    if (ext_int_pending()) {
        ext_int_message_ = false;
        const int v = bus_.acknowledge_ext_int(); // lowers the 8259's output, which calls set_irq
        update();
        return v;
    }
    const int v = pending_vector();
    if (v >= 0) {
        set(irr_, static_cast<unsigned>(v), false);
        set(isr_, static_cast<unsigned>(v));
    }
    update();
    return v;
}

void LocalApic::set_cr8(std::uint8_t v) {
    tpr_ = static_cast<std::uint8_t>(v << 4);
    update();
}

bool LocalApic::set_apic_base(std::uint64_t v) {
    if (v & ~(kBaseAddress | kBaseEnable | kBaseBootstrap))
        return false;
    const bool was = base_ & kBaseEnable;
    base_ = v;
    if (was && !(v & kBaseEnable))
        reset_registers();
    update();
    return true;
}

void LocalApic::set_error(std::uint32_t bits) {
    errors_ |= bits;
    // An illegal vector in the error entry itself would call this function again.
    if ((lvt_[error] & 0xFF) >= kFirstLegalVector)
        fire_lvt(error);
}

// --- messages -----------------------------------------------------------------------------------------------------

bool LocalApic::addressed_by(const ApicMessage &m) const {
    if (!(base_ & kBaseEnable))
        return false;
    if (!m.logical)
        return m.destination == ApicBus::kBroadcast || m.destination == id_;
    const auto own = static_cast<std::uint8_t>(ldr_ >> 24);
    if ((dfr_ >> 28) == 0xF) // flat
        return own & m.destination;
    const unsigned cluster = m.destination >> 4;
    return (cluster == 0xF || cluster == static_cast<unsigned>(own >> 4)) && (own & m.destination & 0xF);
}

bool LocalApic::accept(const ApicMessage &m) {
    switch (m.mode) {
    case Delivery::fixed:
    case Delivery::lowest_priority: return accept_vector(m.vector, m.level);
    case Delivery::smi: raise(CoreSignals::smi); return true;
    case Delivery::nmi: raise(CoreSignals::nmi); return true;
    case Delivery::init:
        if (m.assert_) // a de-assertion set arbitration identifiers on old parts; it has no effect here
            raise(CoreSignals::init);
        return true;
    case Delivery::startup:
        signals_.sipi_vector = m.vector;
        raise(CoreSignals::sipi);
        return true;
    case Delivery::ext_int:
        ext_int_message_ = true;
        update();
        return true;
    case Delivery::reserved: break;
    }
    return false;
}

bool LocalApic::accept_vector(std::uint8_t vector, bool level) {
    if (!enabled())
        return false;
    if (vector < kFirstLegalVector) {
        set_error(kReceivedIllegalVector);
        return false;
    }
    set(irr_, vector);
    set(tmr_, vector, level);
    update();
    return true;
}

void LocalApic::end_of_interrupt(int vector) {
    if (vector < 0)
        return;
    const auto v = static_cast<unsigned>(vector);
    const bool was_in_service = test(isr_, v), level = test(tmr_, v);
    set(isr_, v, false);
    if (was_in_service && level) {
        for (unsigned pin = 0; pin < 2; ++pin)
            if ((lvt_[lint0 + pin] & kRemoteIrr) && (lvt_[lint0 + pin] & 0xFF) == v) {
                lvt_[lint0 + pin] &= ~kRemoteIrr;
                evaluate_lint(pin, false);
            }
        bus_.end_of_interrupt(static_cast<std::uint8_t>(v));
    }
    update();
}

void LocalApic::send_ipi() {
    ApicMessage m;
    m.destination = static_cast<std::uint8_t>(icr_high_ >> 24);
    m.logical = icr_low_ & (1u << 11);
    m.mode = static_cast<Delivery>((icr_low_ >> 8) & 7);
    m.vector = static_cast<std::uint8_t>(icr_low_);
    m.assert_ = icr_low_ & (1u << 14);
    m.level = (icr_low_ & kLevelTriggered) && m.mode == Delivery::init;
    if (m.mode == Delivery::init && !m.level)
        m.assert_ = true; // an edge is never a de-assertion

    if (m.mode == Delivery::reserved || m.mode == Delivery::ext_int)
        return;
    if ((m.mode == Delivery::fixed || m.mode == Delivery::lowest_priority) && m.vector < kFirstLegalVector) {
        set_error(kSentIllegalVector);
        return;
    }
    ApicMessage all = m;
    all.logical = false;
    all.destination = ApicBus::kBroadcast;
    switch ((icr_low_ >> 18) & 3) {
    case 0: bus_.send(m, *this, nullptr); break;
    case 1: accept(m); break;
    case 2: bus_.send(all, *this, nullptr); break;
    case 3: bus_.send(all, *this, this); break;
    }
}

// --- local interrupts ---------------------------------------------------------------------------------------------

void LocalApic::write_lvt(unsigned entry, std::uint32_t value) {
    const std::uint32_t writable = entry < extended ? kLvtWritable[entry] : kExtendedLvtWritable;
    const std::uint32_t old = lvt_[entry];
    const Tick now = time_.now();
    const std::uint32_t left = current_count(now); // of the timer, in its old mode: the count goes on in the new one
    lvt_[entry] = (old & ~writable) | (value & writable);
    if (!(svr_ & kSvrEnable))
        lvt_[entry] |= kMasked;
    if (entry == timer) {
        if ((old ^ lvt_[timer]) & kPeriodic)
            restart_timer(now, left);
        else
            plan_timer(now);
    } else if (entry == lint0 || entry == lint1) {
        if (!(lvt_[entry] & kLevelTriggered))
            lvt_[entry] &= ~kRemoteIrr;
        evaluate_lint(entry - lint0, false);
    }
    update();
}

void LocalApic::fire_lvt(unsigned entry) {
    const std::uint32_t e = lvt_[entry];
    if (e & kMasked)
        return;
    ApicMessage m;
    m.mode = entry == timer ? Delivery::fixed : static_cast<Delivery>((e >> 8) & 7);
    m.vector = static_cast<std::uint8_t>(e);
    if (m.mode == Delivery::fixed || m.mode == Delivery::smi || m.mode == Delivery::nmi)
        accept(m);
}

void LocalApic::set_irq(unsigned lint, bool level) {
    if (lint >= 2 || pin_[lint] == level)
        return;
    pin_[lint] = level;
    evaluate_lint(lint, level);
    update();
}

void LocalApic::evaluate_lint(unsigned pin, bool rose) {
    if (!(base_ & kBaseEnable)) {
        if (pin == 1 && rose)
            raise(CoreSignals::nmi);
        return;
    }
    std::uint32_t &e = lvt_[lint0 + pin];
    if (!pin_[pin] || (e & kMasked))
        return;
    const auto mode = static_cast<Delivery>((e >> 8) & 7);
    const auto vector = static_cast<std::uint8_t>(e);
    if (mode == Delivery::fixed && (e & kLevelTriggered)) {
        if (!(e & kRemoteIrr) && accept_vector(vector, true))
            e |= kRemoteIrr;
    } else if (rose && mode == Delivery::fixed) {
        accept_vector(vector, false);
    } else if (rose && mode == Delivery::nmi) {
        raise(CoreSignals::nmi);
    } else if (rose && mode == Delivery::smi) {
        raise(CoreSignals::smi);
    } else if (rose && mode == Delivery::init) {
        raise(CoreSignals::init);
    }
}

// --- timer --------------------------------------------------------------------------------------------------------

unsigned LocalApic::divider() const {
    const unsigned code = (divide_ & 3) | ((divide_ >> 1) & 4);
    return code == 7 ? 1 : 2u << code;
}

std::int64_t LocalApic::counted(Tick now) const { return edges_until(reference_, now - start_) / divider(); }

std::uint32_t LocalApic::current_count(Tick now) const {
    if (first_ == 0)
        return 0;
    const std::int64_t n = counted(now), first = first_;
    if (n < first)
        return static_cast<std::uint32_t>(first - n);
    if (!(lvt_[timer] & kPeriodic) || initial_ == 0)
        return 0;
    return static_cast<std::uint32_t>(initial_ - (n - first) % initial_);
}

void LocalApic::restart_timer(Tick now, std::uint32_t first) {
    start_ = now;
    first_ = first;
    plan_timer(now);
}

void LocalApic::plan_timer(Tick now) {
    expiry_ = kNever;
    if (first_ != 0 && !(lvt_[timer] & kMasked)) {
        const std::int64_t n = counted(now), first = first_;
        __int128 count = -1;
        if (n < first)
            count = first;
        else if ((lvt_[timer] & kPeriodic) && initial_ != 0)
            count = first + ((n - first) / initial_ + 1) * static_cast<__int128>(initial_);
        if (count >= 0) {
            const Tick after = edge_or_never(reference_, count * divider());
            expiry_ = after > kNever - start_ ? kNever : start_ + after;
        }
    }
    alarm_.set(expiry_);
}

void LocalApic::run_timer(Tick now) {
    if (expiry_ > now) {
        alarm_.set(expiry_);
        return;
    }
    // If the core ran past several expiries, they make one request.
    plan_timer(now);
    fire_lvt(timer);
}

namespace {

const RegisteredDevice registered(10, "lapic", [](Devices &d) {
    auto &page = d.add<LapicBlock>();
    for (const MachineFacts::Core &core : d.machine.cores)
        page.add(d.own<LocalApic>(d.queue, d.time, d.apic_bus, *core.signals, core.apic_id,
                                  &core == &d.machine.cores.front()));
    d.memory.map(LocalApic::kBase, LocalApic::kSize, page, 0);
});

} // namespace

} // namespace moscope::dev
