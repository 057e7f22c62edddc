// SPDX-License-Identifier: BSD-3-Clause
// Power management: the PM timer's rate and overflow, the SCI, power-off, the ways to reset, and the debug ports.
#include <gtest/gtest.h>

#include <string>

#include "base/rng.hh"
#include "dev/firmware/firmware.hh"
#include "dev/harness.hh"
#include "dev/reset_control.hh"
#include "dev/serial/debug_ports.hh"
#include "dev/timers/acpi_pm.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

struct AcpiPmTest : testing::Test {
    EventQueue queue;
    TestTime time{queue};
    Wires wires;
    std::vector<PowerEvent> events;
    OnPower note = [this](PowerEvent e) { events.push_back(e); };
    AcpiPm pm{queue, time, wires, 9, note};

    std::uint32_t get(Addr o, unsigned size) { return static_cast<std::uint32_t>(pm.read(0, 0, o, size)); }
    void set(Addr o, unsigned v, unsigned size = 2) { pm.write(0, 0, o, v, size); }
};

TEST_F(AcpiPmTest, TheTimerCountsAt3579545Hz) {
    EXPECT_EQ(get(8, 4), 0u);
    time.to(kPmTimerClock.edge(123456) - 1);
    EXPECT_EQ(get(8, 4), 123455u);
    time.to(kPmTimerClock.edge(123456));
    EXPECT_EQ(get(8, 4), 123456u);
    time.to(kTicksPerSecond);
    EXPECT_EQ(get(8, 4), 3579545u);
}

TEST_F(AcpiPmTest, AToggleOfTheTimersTopBitIsAnEventThatInterrupts) {
    set(2, 1);
    const Tick due = kPmTimerClock.edge(1ll << 31);
    time.to(due - 1);
    EXPECT_FALSE(wires.now[9]);
    EXPECT_EQ(get(0, 2), 0u);
    time.to(due);
    EXPECT_TRUE(wires.now[9]);
    EXPECT_EQ(get(0, 2), 1u);
    set(0, 1);
    EXPECT_FALSE(wires.now[9]);
    time.to(kPmTimerClock.edge(1ll << 32) - 1);
    EXPECT_FALSE(wires.now[9]);
    time.to(kPmTimerClock.edge(1ll << 32));
    EXPECT_TRUE(wires.now[9]);
    EXPECT_EQ(get(8, 4), 0u);
}

TEST_F(AcpiPmTest, SleepTypeFivePowersOffAndOthersDoNot) {
    EXPECT_EQ(get(4, 2), 1u);
    set(4, 5u << 10);
    EXPECT_TRUE(events.empty());
    set(4, 3u << 10 | 1u << 13);
    EXPECT_TRUE(events.empty());
    set(4, 5u << 10 | 1u << 13);
    EXPECT_EQ(events, std::vector<PowerEvent>{PowerEvent::off});
    EXPECT_EQ(get(4, 2), 5u << 10 | 1); // SLP_EN reads as zero
}

TEST_F(AcpiPmTest, ThePowerButtonInterruptsIfEnabled) {
    pm.press_power_button();
    EXPECT_FALSE(wires.now[9]);
    EXPECT_EQ(get(0, 2), 0x100u);
    set(2, 0x100);
    EXPECT_TRUE(wires.now[9]);
    set(0, 0x100);
    EXPECT_FALSE(wires.now[9]);
}

TEST_F(AcpiPmTest, TheFirmwareTablesNameTheSamePorts) {
    Firmware f;
    pm.describe(f);
    EXPECT_EQ(f.power.pm_timer, 0x808);
    EXPECT_EQ(f.power.pm1_control, 0x804);
    EXPECT_EQ(f.power.sleep_type_s5, 5);
    EXPECT_EQ(f.overrides.at(0).trigger, Firmware::Trigger::level);
}

TEST_F(AcpiPmTest, ACheckpointKeepsEnablesAndTheNextToggle) {
    set(2, 1);
    time.to(kPmTimerClock.edge((1ll << 31) - 5));
    const auto bytes = saved(pm);
    EventQueue queue2;
    TestTime time2(queue2);
    Wires wires2;
    AcpiPm other(queue2, time2, wires2, 9, nullptr);
    restore(other, bytes);
    EXPECT_EQ(saved(other), bytes);
    time2.to(kPmTimerClock.edge(1ll << 31));
    EXPECT_TRUE(wires2.now[9]);
}

TEST_F(AcpiPmTest, NoAccessWhateverItIsHurtsTheSimulator) {
    Rng rng(2);
    ResetControl reset(nullptr);
    for (int i = 0; i < 100000; ++i) {
        const auto size = 1u << rng.below(4);
        pm.write(0, 0, rng.below(20), rng.below(1ull << 32), size);
        pm.read(0, 0, rng.below(20), size);
        reset.write(0, static_cast<unsigned>(rng.below(4)), rng.below(3), rng.below(256), size);
        reset.read(0, static_cast<unsigned>(rng.below(4)), rng.below(3), size);
        time.by(static_cast<Tick>(rng.below(kTicksPerSecond / 100)));
    }
}

TEST(ResetControl, PortCF9ResetsOnTheRisingEdgeOfItsBit) {
    int resets = 0;
    ResetControl r([&](PowerEvent e) { resets += e == PowerEvent::reset; });
    r.write(0, 0, 0, 2, 1);
    EXPECT_EQ(resets, 0);
    EXPECT_EQ(r.read(0, 0, 0, 1), 2u);
    r.write(0, 0, 0, 6, 1);
    EXPECT_EQ(resets, 1);
}

TEST(ResetControl, TheKeyboardControllerIsAbsentButItsResetCommandWorks) {
    int resets = 0;
    ResetControl r([&](PowerEvent) { ++resets; });
    EXPECT_EQ(r.read(0, 1, 0, 1), 0xFFu);
    r.write(0, 1, 0, 0xAA, 1);
    r.write(0, 1, 0, 0xFF, 1);
    EXPECT_EQ(resets, 0);
    r.write(0, 1, 0, 0xFE, 1);
    EXPECT_EQ(resets, 1);
}

TEST(ResetControl, PortAResetsOnItsBit) {
    int resets = 0;
    ResetControl r([&](PowerEvent) { ++resets; });
    r.write(0, 2, 0, 2, 1);
    EXPECT_EQ(r.read(0, 2, 0, 1), 2u);
    EXPECT_EQ(resets, 0);
    r.write(0, 2, 0, 3, 1);
    r.write(0, 2, 0, 3, 1);
    EXPECT_EQ(resets, 1);
}

TEST(DebugPorts, AValueWrittenEndsTheRunAndABytePrints) {
    std::uint32_t status = 99;
    ExitPort exit([&](std::uint32_t v) { status = v; });
    exit.write(0, 0, 1, 5, 1);
    EXPECT_EQ(status, 99u);
    exit.write(0, 0, 0, 0x12345, 4);
    EXPECT_EQ(status, 0x12345u);
    std::string text;
    DebugConsole console([&](std::uint8_t b) { text.push_back(static_cast<char>(b)); });
    console.write(0, 0, 0, 'x', 1);
    EXPECT_EQ(text, "x");
    EXPECT_EQ(console.read(0, 0, 0, 1), 0xE9u);
}

} // namespace
