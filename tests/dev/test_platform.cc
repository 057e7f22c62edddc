// SPDX-License-Identifier: BSD-3-Clause
// The interrupt controllers and timers of the board wired together, as an operating system meets them: the timer
// interrupt through the IO-APIC, through the 8259 pair, and from the HPET; and what a checkpoint must hold for the
// continued run to be the uninterrupted one.
#include <gtest/gtest.h>

#include "base/rng.hh"
#include "dev/interrupts/ioapic.hh"
#include "dev/serial/uart16550.hh"
#include "dev/test_machine.hh"
#include "dev/timers/acpi_pm.hh"
#include "dev/timers/hpet.hh"

using namespace moscope;
using namespace moscope::dev;

namespace {

struct Platform : TestMachine {
    Uart16550 &uart = get<Uart16550>("uart16550");
    AcpiPm &pm = get<AcpiPm>("acpi-pm");

    void archive(Archive &a) {
        TestMachine::archive(a);
        a(printed);
    }
    void out(unsigned port, unsigned v) { ports.write(0, port, v, 1); }
    void set(Addr a, std::uint32_t v) { memory.write(0, a, v, 4); }
    void redirect(unsigned input, std::uint32_t low) {
        set(IoApic::kBase, 0x10 + 2 * input);
        set(IoApic::kBase + 0x10, low);
    }
    void start_pit(unsigned count) {
        out(0x43, 0x34);
        out(0x40, count & 0xFF);
        out(0x40, count >> 8);
    }
    /// Serves what comes within `span` at core 0, looking every 10 us; the vectors in order.
    std::vector<int> serve(Tick span, bool pic_eoi = false) {
        std::vector<int> got;
        for (Tick t = 0; t < span; t += 10'000 * kTicksPerNs) {
            time.by(10'000 * kTicksPerNs);
            if (!(signals[0].pending & CoreSignals::intr))
                continue;
            got.push_back(apic(0).acknowledge());
            if (pic_eoi)
                out(0x20, 0x20);
            else
                set(LocalApic::kBase + 0xB0, 0);
        }
        return got;
    }
};

constexpr Tick kMillisecond = kTicksPerSecond / 1000;

TEST(Platform, ThePitTicksThroughTheIoApic) {
    Platform p;
    p.set(LocalApic::kBase + 0xF0, 0x1FF);
    p.redirect(2, 0x30);
    p.start_pit(11932);                                                  // 100 Hz
    EXPECT_EQ(p.serve(1000 * kMillisecond), std::vector<int>(99, 0x30)); // the first period's end is an edge later
}

TEST(Platform, ThePitTicksThroughThe8259PairAndLint0) {
    Platform p;
    p.set(LocalApic::kBase + 0xF0, 0x1FF);
    p.set(LocalApic::kBase + 0x350, 0x700);
    for (const unsigned v : {0x11u, 0x130u, 0x104u, 0x101u, 0x1FEu})
        p.out(0x20 + (v >> 8), v & 0xFF);
    p.serve(kMillisecond, true); // the idle level of the output, which rose at power-on
    p.start_pit(11932);
    const auto got = p.serve(1000 * kMillisecond, true);
    EXPECT_EQ(got, std::vector<int>(99, 0x30));
}

TEST(Platform, TheHpetTicksInThePitsPlace) {
    Platform p;
    p.set(LocalApic::kBase + 0xF0, 0x1FF);
    p.redirect(2, 0x30);
    p.start_pit(1193);
    p.set(Hpet::kBase + 0x10, 3);
    p.set(Hpet::kBase + 0x100, 0x14C);
    p.set(Hpet::kBase + 0x108, 143182);
    p.set(Hpet::kBase + 0x108, 143182); // 100 Hz
    const auto got = p.serve(1000 * kMillisecond + 20 * kTicksPerNs * 1000);
    EXPECT_EQ(got, std::vector<int>(100, 0x30));
}

TEST(Platform, TheClocksAgreeWithEachOther) {
    Platform p;
    p.set(Hpet::kBase + 0x10, 1);
    for (const Tick t : {kMillisecond, 50 * kMillisecond, 3000 * kMillisecond}) {
        p.time.to(t);
        const double hpet = static_cast<double>(p.memory.read(0, Hpet::kBase + 0xF0, 8)) / 14318180;
        const double pm = static_cast<double>(p.ports.read(0, AcpiPm::kPort + 8, 4)) / 3579545;
        EXPECT_NEAR(hpet, static_cast<double>(t) * 1e-15, 1e-7);
        EXPECT_NEAR(pm, static_cast<double>(t) * 1e-15, 3e-7);
    }
}

/// One step of a guest that does anything at all.
void anything(Platform &p, Rng &rng) {
    const auto core = static_cast<unsigned>(rng.below(Platform::kCores));
    const auto size = 1u << rng.below(4);
    const std::uint64_t value = rng.below(2) ? rng.below(256) : rng.below(1ull << 63);
    static constexpr unsigned known_ports[] = {0x20,  0x21,  0xA0,  0xA1,  0x4D0, 0x4D1, 0x40,  0x41,  0x42,  0x43,
                                               0x61,  0x70,  0x71,  0x64,  0x92,  0xCF9, 0x3F8, 0x3F9, 0x3FA, 0x3FB,
                                               0x3FC, 0x3FD, 0x3FE, 0x3FF, 0x800, 0x802, 0x804, 0x808};
    static constexpr Addr pages[] = {LocalApic::kBase, IoApic::kBase, Hpet::kBase};
    switch (rng.below(8)) {
    case 0:
    case 1: p.ports.write(core, known_ports[rng.below(std::size(known_ports))], value, size); break;
    case 2: p.ports.read(core, known_ports[rng.below(std::size(known_ports))], size); break;
    case 3:
    case 4: {
        const Addr page = pages[rng.below(3)];
        Addr offset = rng.below(page == LocalApic::kBase ? 0x54 : page == IoApic::kBase ? 5 : 0x20);
        offset *= page == Hpet::kBase ? 8 : 16;
        p.memory.write(core, page + offset, value, rng.below(8) ? 4 : size);
        break;
    }
    case 5: p.memory.read(core, pages[rng.below(3)] + rng.below(0x1000), size); break;
    case 6: p.apic(core).acknowledge(); break;
    default: p.bus.msi(0xFEE00000 + rng.below(1 << 20), static_cast<std::uint32_t>(value)); break;
    }
    const Tick step = static_cast<Tick>(rng.below(20'000 * kTicksPerNs));
    if (rng.below(4) == 0)
        p.time.ahead_to(p.time.now() + step);
    else
        p.time.by(step);
    if (rng.below(200) == 0)
        p.uart.push("keys");
    if (rng.below(3000) == 0)
        p.pm.press_power_button();
}

void steps(Platform &p, Rng &rng, unsigned n) {
    for (unsigned i = 0; i < n; ++i)
        anything(p, rng);
}

TEST(Platform, ARunContinuedFromACheckpointIsTheUninterruptedOne) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
        Platform whole;
        Rng rng(seed);
        steps(whole, rng, 3000);
        whole.time.by(1); // nothing is due any more
        const auto bytes = saved(whole);
        Platform continued;
        continued.time.to(whole.time.now());
        restore(continued, bytes);
        ASSERT_EQ(saved(continued), bytes) << seed;
        Rng a(seed + 1000), b(seed + 1000);
        for (int i = 0; i < 3000; ++i) {
            anything(whole, a);
            anything(continued, b);
            if (i % 16 == 0) {
                ASSERT_EQ(saved(whole), saved(continued)) << "seed " << seed << " step " << i;
            }
        }
    }
}

TEST(PlatformLong, RandomAccessesDoNotStopTheSimulator) {
    for (std::uint64_t seed = 1; seed <= 100; ++seed) {
        Platform p;
        Rng rng(seed);
        steps(p, rng, 100000);
    }
}

} // namespace
