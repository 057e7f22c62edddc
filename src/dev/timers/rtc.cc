// SPDX-License-Identifier: BSD-3-Clause
#include "dev/timers/rtc.hh"

#include <chrono>

#include "dev/devices.hh"

namespace moscope::dev {

namespace {

enum : unsigned {
    kSeconds,
    kSecondsAlarm,
    kMinutes,
    kMinutesAlarm,
    kHours,
    kHoursAlarm,
    kWeekday,
    kDay,
    kMonth,
    kYear,
    kA,
    kB,
    kC,
    kD
};

constexpr std::uint8_t kUpdating = 0x80;                                                      // A
constexpr std::uint8_t kSet = 0x80, kPeriodic = 0x40, kAlarm = 0x20, kUpdate = 0x10;          // B, and flags of C
constexpr std::uint8_t kBinary = 0x04, kHours24 = 0x02;                                       // B
constexpr std::uint8_t kRequest = 0x80, kFlags = kPeriodic | kAlarm | kUpdate, kValid = 0x80; // C, D
constexpr std::uint8_t kAnyValue = 0xC0, kAfternoon = 0x80;

constexpr Tick kUpdateTime = 2'228'000 * kTicksPerNs; // 244 us of warning and 1984 us of updating
constexpr std::int64_t kDayLength = 86400;

bool shows_time(unsigned i) {
    return i == kSeconds || i == kMinutes || i == kHours || (i >= kWeekday && i <= kYear) || i == Rtc::kCentury;
}

} // namespace

Rtc::Rtc(EventQueue &queue, const TimeSource &time, IrqLine &irq, unsigned input, std::int64_t epoch)
    : IsaDevice("rtc", {.object = "RTC0", .id = "PNP0B00", .ports = {{kPort, 2}}, .irq = kIrq}),
      time_(time),
      irq_(irq),
      input_(input),
      alarm_(queue, "rtc", [this](Tick t) { run_to(t); }),
      base_(epoch) {
    memory_[kA] = 0x26; // 32.768 kHz, 1024 Hz
    memory_[kB] = kHours24;
    memory_[kD] = kValid;
}

void Rtc::reset() {
    memory_[kB] &= static_cast<std::uint8_t>(~kFlags);
    memory_[kC] = 0;
    index_ = 0;
    update_irq();
    plan();
}

void Rtc::archive(Archive &a) {
    a.section(name());
    a(memory_, index_, base_, base_tick_, seen_, periods_);
    if (a.loading())
        plan();
}

void Rtc::describe(Firmware &f) const {
    f.power.has_rtc = true;
    f.power.cmos_century = kCentury;
    IsaDevice::describe(f);
}

// --- date and registers -------------------------------------------------------------------------------------------

bool Rtc::running() const { return !(memory_[kB] & kSet) && (memory_[kA] >> 4 & 7) <= 2; }

std::int64_t Rtc::seconds_at(Tick now) const {
    return running() ? base_ + (now - base_tick_) / kTicksPerSecond : shown();
}

std::int64_t Rtc::seconds() { return seconds_at(time_.now()); }

std::uint8_t Rtc::encode(unsigned value) const {
    return static_cast<std::uint8_t>(memory_[kB] & kBinary ? value : value / 10 % 10 << 4 | value % 10);
}
unsigned Rtc::decode(std::uint8_t value) const {
    return memory_[kB] & kBinary ? value : (value >> 4) * 10u + (value & 15);
}
std::uint8_t Rtc::encode_hour(unsigned hour) const {
    if (memory_[kB] & kHours24)
        return encode(hour);
    return encode(hour % 12 ? hour % 12 : 12) | (hour >= 12 ? kAfternoon : 0);
}

/// Puts a date into the registers.
void Rtc::show(std::int64_t date) {
    using namespace std::chrono;
    const sys_seconds when{std::chrono::seconds(date)};
    const auto midnight = floor<days>(when);
    const year_month_day ymd{midnight};
    const auto second = static_cast<unsigned>((when - midnight).count());
    const auto year = static_cast<unsigned>(static_cast<int>(ymd.year()));
    memory_[kSeconds] = encode(second % 60);
    memory_[kMinutes] = encode(second / 60 % 60);
    memory_[kHours] = encode_hour(second / 3600);
    memory_[kWeekday] = encode(weekday{midnight}.c_encoding() + 1);
    memory_[kDay] = encode(static_cast<unsigned>(ymd.day()));
    memory_[kMonth] = encode(static_cast<unsigned>(ymd.month()));
    memory_[kYear] = encode(year % 100);
    memory_[kCentury] = encode(year / 100 % 100);
}

/// The date in the registers; invalid values give some valid date.
std::int64_t Rtc::shown() const {
    using namespace std::chrono;
    unsigned hour = decode(memory_[kHours]);
    if (!(memory_[kB] & kHours24))
        hour = decode(memory_[kHours] & ~kAfternoon & 0xFF) % 12 + (memory_[kHours] & kAfternoon ? 12 : 0);
    const unsigned month_number = std::clamp(decode(memory_[kMonth]), 1u, 12u);
    const unsigned century = decode(memory_[kCentury]) % 100;
    const year_month_day first{year{static_cast<int>(century * 100 + decode(memory_[kYear]) % 100)},
                               month{month_number}, day{1}};
    const auto days_on = static_cast<std::int64_t>(decode(memory_[kDay])) - 1;
    return (sys_days{first}.time_since_epoch().count() + days_on) * kDayLength + hour * 3600 +
           decode(memory_[kMinutes]) * 60 + decode(memory_[kSeconds]);
}

bool Rtc::alarm_at(std::int64_t date) const {
    const auto second = static_cast<unsigned>((date % kDayLength + kDayLength) % kDayLength);
    const auto fits = [this](unsigned index, std::uint8_t value) {
        return memory_[index] >= kAnyValue || memory_[index] == value;
    };
    return fits(kSecondsAlarm, encode(second % 60)) && fits(kMinutesAlarm, encode(second / 60 % 60)) &&
           fits(kHoursAlarm, encode_hour(second / 3600));
}

// --- time ---------------------------------------------------------------------------------------------------------

/// Ticks between periodic interrupts; 0: none. Rates 1 and 2 are those of 8 and 9.
Tick Rtc::period() const {
    const unsigned rate = memory_[kA] & 0xF;
    if (rate == 0 || (memory_[kA] >> 4 & 7) > 2)
        return 0;
    return kTicksPerSecond / 32768 << ((rate <= 2 ? rate + 7 : rate) - 1);
}

bool Rtc::updating(Tick now) const {
    return running() && (now - base_tick_) % kTicksPerSecond >= kTicksPerSecond - kUpdateTime;
}

void Rtc::run_to(Tick now) {
    if (running()) {
        const std::int64_t second = (now - base_tick_) / kTicksPerSecond;
        if (second > seen_) {
            memory_[kC] |= kUpdate;
            // An alarm recurs within a day, so the last day is enough.
            for (std::int64_t s = std::max(seen_ + 1, second - kDayLength); s <= second; ++s)
                if (alarm_at(base_ + s)) {
                    memory_[kC] |= kAlarm;
                    break;
                }
            seen_ = second;
        }
    }
    if (const Tick p = period(); p != 0) {
        if (now / p != periods_)
            memory_[kC] |= kPeriodic;
        periods_ = now / p;
    }
    update_irq();
    plan();
}

void Rtc::plan() {
    const std::uint8_t wanted = memory_[kB] & ~memory_[kC];
    Tick next = kNever;
    if (running() && (wanted & (kUpdate | kAlarm)))
        next = base_tick_ + (seen_ + 1) * kTicksPerSecond;
    if (const Tick p = period(); p != 0 && (wanted & kPeriodic))
        next = std::min(next, (periods_ + 1) * p);
    alarm_.set(next);
}

void Rtc::update_irq() {
    const bool request = memory_[kB] & memory_[kC] & kFlags;
    memory_[kC] = static_cast<std::uint8_t>((memory_[kC] & kFlags) | (request ? kRequest : 0));
    irq_.set_irq(input_, request);
}

// --- ports --------------------------------------------------------------------------------------------------------

std::uint8_t Rtc::read8(unsigned, Addr offset) {
    if ((offset & 1) == 0)
        return index_;
    const Tick now = time_.now();
    run_to(now);
    const unsigned i = index_ & 0x7F;
    if (running())
        show(seconds_at(now));
    std::uint8_t value = memory_[i];
    if (i == kA)
        value |= updating(now) ? kUpdating : 0;
    if (i == kC) {
        memory_[kC] = 0;
        update_irq();
        plan();
    }
    return value;
}

void Rtc::write8(unsigned, Addr offset, std::uint8_t value) {
    if ((offset & 1) == 0) {
        index_ = value; // bit 7, which masks NMI on PCs, is stored without effect
        return;
    }
    const Tick now = time_.now();
    run_to(now);
    write_register(index_ & 0x7F, value, now);
    update_irq();
    plan();
}

void Rtc::write_register(unsigned i, std::uint8_t value, Tick now) {
    const bool ran = running(), was_held = (memory_[kA] >> 4 & 7) > 2;
    if (ran)
        show(seconds_at(now));
    if (i == kA) {
        memory_[kA] = value & ~kUpdating;
    } else if (i == kB) {
        memory_[kB] = value & kSet ? value & ~kUpdate : value; // setting the time turns the update interrupt off
    } else if (i != kC && i != kD) {
        memory_[i] = value;
    }
    // The clock continues from the shown date, within the running second.
    if (running() && (!ran || shows_time(i))) {
        const bool released = was_held; // the divider restarts: the first update comes half a second later
        base_ = shown();
        base_tick_ = released ? now - kTicksPerSecond / 2 : now - (now - base_tick_) % kTicksPerSecond;
        seen_ = 0;
    }
    if (const Tick p = period(); i == kA && p != 0)
        periods_ = now / p;
}

namespace {

const RegisteredDevice registered(60, "rtc",
                                  [](Devices &d) { d.add<Rtc>(d.queue, d.time, d.isa(), Rtc::kIrq).map(d.ports); });

} // namespace

} // namespace moscope::dev
