// SPDX-License-Identifier: BSD-3-Clause
#include "dev/timers/acpi_pm.hh"

#include "dev/devices.hh"
#include "dev/firmware/firmware.hh"

namespace moscope::dev {

namespace {

constexpr std::uint16_t kTimerStatus = 1, kPowerButton = 1u << 8;
constexpr std::uint16_t kStatusBits = 0x8F31; // timer, bus master, global lock, buttons, RTC, wake
constexpr std::uint16_t kEnableBits = 0x0721;
constexpr std::uint16_t kSciEnable = 1, kControlBits = 0x1C03, kSleepEnable = 1u << 13;

constexpr std::uint16_t set_byte(std::uint16_t word, unsigned byte, std::uint8_t value) {
    return static_cast<std::uint16_t>((word & ~(0xFFu << (8 * byte))) | unsigned{value} << (8 * byte));
}

} // namespace

AcpiPm::AcpiPm(EventQueue &queue, const TimeSource &time, IrqLine &irq, unsigned input, OnPower on_power)
    : ByteDevice("acpi-pm"),
      time_(time),
      irq_(irq),
      input_(input),
      on_power_(std::move(on_power)),
      alarm_(queue, "acpi-pm", [this](Tick t) {
          run_to(t);
          update();
      }) {
    reset();
}

void AcpiPm::reset() {
    status_ = enable_ = 0;
    control_ = kSciEnable;
    update();
}

void AcpiPm::archive(Archive &a) {
    a.section(name());
    a(status_, enable_, control_, latched_timer_, toggles_);
    if (a.loading())
        plan();
}

void AcpiPm::describe(Firmware &f) const {
    f.power.sci_irq = kSci;
    f.power.pm1_event = kPort + kEvent;
    f.power.pm1_control = kPort + kControl;
    f.power.pm_timer = kPort + kTimer;
    f.power.pm_timer_32bit = true;
    f.power.sleep_type_s5 = kSleepTypeOff;
    f.overrides.push_back(
        {.isa_irq = kSci, .gsi = kSci, .polarity = Firmware::Polarity::low, .trigger = Firmware::Trigger::level});
}

void AcpiPm::run_to(Tick now) {
    const std::int64_t toggles = edges_until(kPmTimerClock, now) >> 31;
    if (toggles != toggles_)
        status_ |= kTimerStatus;
    toggles_ = toggles;
}

void AcpiPm::update() {
    irq_.set_irq(input_, status_ & enable_);
    plan();
}

void AcpiPm::plan() {
    const bool wait = (enable_ & kTimerStatus) && !(status_ & kTimerStatus);
    alarm_.set(wait ? edge_or_never(kPmTimerClock, static_cast<__int128>(toggles_ + 1) << 31) : kNever);
}

void AcpiPm::press_power_button() {
    status_ |= kPowerButton;
    update();
}

std::uint8_t AcpiPm::read8(unsigned, Addr offset) {
    const Tick now = time_.now();
    run_to(now);
    update();
    const auto byte = static_cast<unsigned>(offset & 3);
    if (offset >= kTimer && offset < kTimer + 4) {
        // The four byte accesses of one 32-bit read see the same value.
        if (byte == 0)
            latched_timer_ = static_cast<std::uint32_t>(edges_until(kPmTimerClock, now));
        return static_cast<std::uint8_t>(latched_timer_ >> (8 * byte));
    }
    if (offset < 2)
        return static_cast<std::uint8_t>(status_ >> (8 * byte));
    if (offset < 4)
        return static_cast<std::uint8_t>(enable_ >> (8 * (byte - 2)));
    if (offset < 6)
        return static_cast<std::uint8_t>(control_ >> (8 * byte));
    return 0;
}

void AcpiPm::write8(unsigned, Addr offset, std::uint8_t value) {
    run_to(time_.now());
    const auto byte = static_cast<unsigned>(offset & 1);
    if (offset < 2) {
        status_ = static_cast<std::uint16_t>(status_ & ~(unsigned{value} << (8 * byte) & kStatusBits));
    } else if (offset < 4) {
        enable_ = set_byte(enable_, byte, value) & kEnableBits;
    } else if (offset < 6) {
        const std::uint16_t asked = set_byte(control_, byte, value);
        control_ = static_cast<std::uint16_t>((asked & kControlBits) | kSciEnable);
        if ((asked & kSleepEnable) && ((asked >> 10) & 7) == kSleepTypeOff && on_power_)
            on_power_(PowerEvent::off);
    }
    update();
}

namespace {

const RegisteredDevice registered(70, "acpi-pm", [](Devices &d) {
    auto &pm = d.add<AcpiPm>(d.queue, d.time, d.isa(), AcpiPm::kSci, d.on_power);
    d.ports.map(AcpiPm::kPort, AcpiPm::kSize, pm, 0);
});

} // namespace

} // namespace moscope::dev
