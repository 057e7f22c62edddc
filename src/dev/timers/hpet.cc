// SPDX-License-Identifier: BSD-3-Clause
#include "dev/timers/hpet.hh"

#include "dev/devices.hh"
#include "dev/firmware/firmware.hh"

namespace moscope::dev {

namespace {

// Offsets of the registers.
constexpr Addr kCapabilities = 0x000, kConfig = 0x010, kStatus = 0x020, kCounter = 0x0F0;
constexpr Addr kTimer0 = 0x100, kTimerStep = 0x020;

constexpr std::uint64_t kEnable = 1, kLegacy = 2; // general configuration

// Timer configuration.
constexpr std::uint64_t kLevelType = 1u << 1, kInterrupt = 1u << 2, kPeriodic = 1u << 3, kPeriodicCapable = 1u << 4,
                        kWide = 1u << 5, kSetValue = 1u << 6, k32Bit = 1u << 8, kRoute = 0x1Fu << 9;
constexpr std::uint64_t kWritable = kLevelType | kInterrupt | kPeriodic | kSetValue | k32Bit | kRoute;

constexpr unsigned route(std::uint64_t config) { return (config >> 9) & 0x1F; }

} // namespace

Hpet::Hpet(EventQueue &queue, const TimeSource &time, IsaInterrupts &isa, IrqLine &gsi)
    : Device("hpet"), time_(time), isa_(isa), gsi_(gsi), alarm_(queue, "hpet", [this](Tick t) { run_to(t); }) {
    reset();
}

void Hpet::reset() {
    for (unsigned n = 0; n < kTimers; ++n) {
        if (timers_[n].line)
            drive(n, false);
        timers_[n] = Timer{};
        timers_[n].config = std::uint64_t{kRoutes} << 32 | kWide | (n == 0 ? kPeriodicCapable : 0);
    }
    config_ = status_ = base_ = 0;
    start_ = 0;
    isa_.set_replaced(false);
    plan();
}

void Hpet::archive(Archive &a) {
    a.section(name());
    a(config_, status_, base_, start_, timers_[0], timers_[1], timers_[2], isa_);
    if (a.loading())
        plan();
}

void Hpet::describe(Firmware &f) const {
    f.hpet = Firmware::Hpet{.address = kBase, .event_timer_block = kIdLow, .number = 0, .minimum_tick = 20};
    f.reserve(kBase, kSize);
    f.devices.push_back(aml::device("HPET", {aml::name("_HID", aml::eisa_id("PNP0103")),
                                             aml::name("_CRS", aml::Resources().memory32(kBase, kSize).bytes())}));
}

bool Hpet::enabled() const { return config_ & kEnable; }
bool Hpet::legacy() const { return config_ & kLegacy; }

std::uint64_t Hpet::counter(std::int64_t edge) const {
    return enabled() ? base_ + static_cast<std::uint64_t>(edge - start_) : base_;
}

// --- time ---------------------------------------------------------------------------------------------------------

void Hpet::find_match(Timer &t, std::int64_t edge) {
    t.match = -1;
    if (!enabled())
        return;
    std::uint64_t ahead = t.comparator - counter(edge);
    if (t.config & k32Bit) {
        ahead &= 0xFFFF'FFFF;
        if (ahead == 0) // equal now: the next match is when the counter has wrapped
            ahead = 1ull << 32;
    }
    constexpr std::uint64_t kFar = 1ull << 62; // later than any Tick
    if (ahead != 0 && ahead < kFar)
        t.match = edge + static_cast<std::int64_t>(ahead);
}

void Hpet::run_to(Tick now) {
    const std::int64_t edge = edges_until(kHpetClock, now);
    for (unsigned n = 0; n < kTimers; ++n) {
        Timer &t = timers_[n];
        if (t.match < 0 || t.match > edge)
            continue;
        if ((t.config & kPeriodic) && t.period != 0) {
            const std::uint64_t periods = static_cast<std::uint64_t>(edge - t.match) / t.period + 1;
            t.comparator += periods * t.period;
        }
        find_match(t, edge);
        fire(n);
    }
    plan();
}

void Hpet::plan() {
    Tick next = kNever;
    for (const Timer &t : timers_)
        if (t.match >= 0 && (t.config & kInterrupt))
            next = std::min(next, edge_or_never(kHpetClock, t.match));
    alarm_.set(next);
}

// --- interrupts ---------------------------------------------------------------------------------------------------

void Hpet::drive(unsigned n, bool level) {
    timers_[n].line = level;
    const auto replaces = [this](unsigned timer) { return legacy() && timer < 2; };
    if (replaces(n)) {
        isa_.set_replacement_irq(n == 0 ? IsaInterrupts::kTimer : IsaInterrupts::kClock, level);
        return;
    }
    const unsigned input = route(timers_[n].config);
    if (!(kRoutes >> input & 1))
        return;
    bool any = false; // timers may share an input
    for (unsigned other = 0; other < kTimers; ++other)
        any |= timers_[other].line && !replaces(other) && route(timers_[other].config) == input;
    gsi_.set_irq(input, any);
}

void Hpet::fire(unsigned n) {
    if (timers_[n].config & kLevelType) { // the status is set even if the timer's interrupt is disabled
        status_ |= 1u << n;
        drive_levels();
    } else if (timers_[n].config & kInterrupt) {
        drive(n, true);
        drive(n, false);
    }
}

void Hpet::drive_levels() {
    for (unsigned n = 0; n < kTimers; ++n) {
        const Timer &t = timers_[n];
        const bool level = (t.config & kLevelType) && (t.config & kInterrupt) && (status_ >> n & 1);
        if (level != t.line)
            drive(n, level);
    }
}

// --- registers ----------------------------------------------------------------------------------------------------

std::uint64_t Hpet::read_register(Addr offset, std::int64_t edge) const {
    switch (offset) {
    case kCapabilities: return std::uint64_t{kPeriod} << 32 | kIdLow;
    case kConfig: return config_;
    case kStatus: return status_;
    case kCounter: return counter(edge);
    default: break;
    }
    if (offset < kTimer0 || offset >= kTimer0 + kTimers * kTimerStep)
        return 0;
    const Timer &t = timers_[(offset - kTimer0) / kTimerStep];
    switch ((offset - kTimer0) % kTimerStep) {
    case 0: return t.config;
    case 8: return t.config & k32Bit ? t.comparator & 0xFFFF'FFFF : t.comparator;
    default: // FSB route: not there
        return 0;
    }
}

void Hpet::write_config(Timer &t, std::uint64_t value) {
    std::uint64_t writable = kWritable;
    if (!(t.config & kPeriodicCapable))
        writable &= ~(kPeriodic | kSetValue);
    if (!(kRoutes >> route(value) & 1)) // an unsupported route leaves the old one in place
        writable &= ~kRoute;
    const auto n = static_cast<unsigned>(&t - timers_.data());
    if (t.line)
        drive(n, false);
    t.config = (t.config & ~writable) | (value & writable);
}

void Hpet::write_register(Addr offset, std::uint64_t value, std::uint64_t mask, std::int64_t edge) {
    const std::uint64_t merged = (read_register(offset, edge) & ~mask) | (value & mask);
    switch (offset) {
    case kConfig: {
        if (!(mask & 0xFF))
            return;
        const std::uint64_t count = counter(edge);
        for (unsigned n = 0; n < kTimers; ++n)
            if (timers_[n].line && ((merged ^ config_) & kLegacy))
                drive(n, false);
        config_ = merged & (kEnable | kLegacy);
        base_ = count;
        start_ = edge;
        isa_.set_replaced(legacy());
        break;
    }
    case kStatus: status_ &= ~(value & mask); break;
    case kCounter: // the specification allows this only while the counter is stopped
        base_ = merged;
        start_ = edge;
        break;
    default: {
        if (offset < kTimer0 || offset >= kTimer0 + kTimers * kTimerStep)
            return;
        Timer &t = timers_[(offset - kTimer0) / kTimerStep];
        const Addr which = (offset - kTimer0) % kTimerStep;
        if (which == 0) {
            write_config(t, merged);
        } else if (which == 8) {
            if (!(t.config & kPeriodic)) {
                t.comparator = merged;
            } else {
                // With the set-value bit, the value is also the next match; in any case it is the period from then on.
                if (t.config & kSetValue)
                    t.comparator = merged;
                t.period = (t.period & ~mask) | (value & mask);
                if (t.config & k32Bit)
                    t.period &= 0xFFFF'FFFF;
                t.config &= ~kSetValue;
            }
        }
        break;
    }
    }
    for (Timer &t : timers_)
        find_match(t, edge);
    drive_levels();
}

std::uint64_t Hpet::read(Requester, unsigned, Addr offset, unsigned size) {
    const Tick now = time_.now();
    run_to(now);
    const auto shift = static_cast<unsigned>(offset & 7) * 8;
    (void)size; // AddressSpace cuts the value to the size of the access
    return read_register(offset & ~Addr{7}, edges_until(kHpetClock, now)) >> shift;
}

void Hpet::write(Requester, unsigned, Addr offset, std::uint64_t value, unsigned size) {
    const Tick now = time_.now();
    run_to(now);
    if (size < 4 || (offset & 3)) // accesses of 4 and 8 bytes only
        return;
    const auto shift = static_cast<unsigned>(offset & 7) * 8;
    const std::uint64_t mask = size >= 8 && shift == 0 ? ~0ull : 0xFFFF'FFFFull << shift;
    write_register(offset & ~Addr{7}, value << shift, mask, edges_until(kHpetClock, now));
    plan();
}

namespace {

const RegisteredDevice registered(50, "hpet", [](Devices &d) {
    auto &hpet = d.add<Hpet>(d.queue, d.time, d.isa(), d.gsi());
    d.memory.map(Hpet::kBase, Hpet::kSize, hpet, 0);
});

} // namespace

} // namespace moscope::dev
