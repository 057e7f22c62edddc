// SPDX-License-Identifier: BSD-3-Clause
// Local APICs on an interrupt bus: priorities, service, messages of every kind and their addressing, the timer's
// edges, enabling, and AMD's extended registers.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/rng.hh"
#include "dev/harness.hh"
#include "dev/interrupts/lapic.hh"

using namespace moscope;
using namespace moscope::dev;
using namespace moscope::dev::lapic;

namespace {

constexpr Tick kBus = 5'000'000; // 200 MHz

struct Eois : EoiListener {
    void end_of_interrupt(std::uint8_t v) override { vectors.push_back(v); }
    std::vector<int> vectors;
};

struct Pic : ExtIntController {
    std::uint8_t acknowledge_ext_int() override {
        ++acknowledged;
        lapic->set_irq(0, false);
        return 0x30;
    }
    LocalApic *lapic = nullptr;
    int acknowledged = 0;
};

struct LapicTest : testing::Test {
    static constexpr unsigned kCores = 12;
    EventQueue queue;
    TestTime time{queue};
    ApicBus bus;
    Eois eois;
    std::array<CoreSignals, kCores> signals{};
    std::vector<std::unique_ptr<LocalApic>> apics;
    LapicBlock block;

    LapicTest() {
        bus.attach(eois);
        for (unsigned c = 0; c < kCores; ++c) { // two chips of six
            apics.push_back(std::make_unique<LocalApic>(queue, time, bus, signals[c],
                                                        static_cast<std::uint8_t>(c / 6 * 8 + c % 6), c == 0));
            block.add(*apics.back());
        }
        for (unsigned c = 0; c < kCores; ++c)
            set(c, kSvr, 0x1FF);
    }
    std::uint32_t get(unsigned core, Addr r) { return static_cast<std::uint32_t>(block.read(core, 0, r, 4)); }
    void set(unsigned core, Addr r, std::uint32_t v) { block.write(core, 0, r, v, 4); }
    /// A fixed interrupt from one core to another (by its APIC identifier).
    void send(unsigned from, std::uint32_t to, std::uint32_t vector) {
        set(from, kIcrHigh, to << 24);
        set(from, kIcr, vector);
    }
    bool pending(unsigned core, CoreSignals::Bit b = CoreSignals::intr) { return signals[core].pending & b; }
    bool requested(unsigned core, unsigned v) { return get(core, kIrr + v / 32 * 16) >> (v % 32) & 1; }
    void ipi(unsigned from, unsigned to, std::uint32_t low) {
        set(from, kIcrHigh, to << 24);
        set(from, kIcr, low);
    }
    std::vector<unsigned> who(unsigned vector) {
        std::vector<unsigned> r;
        for (unsigned c = 0; c < kCores; ++c)
            if (requested(c, vector))
                r.push_back(c);
        return r;
    }
    using Cores = std::vector<unsigned>;
};

TEST_F(LapicTest, AMessageArrivesAfterItsTravelTimeAndNotATickBefore) {
    bus.travel(queue, time, [](unsigned from, unsigned to) { return from / 6 == to / 6 ? Tick{1000} : Tick{5000}; });
    send(0, 8, 0x41); // core 6, on the other chip
    send(0, 1, 0x42);
    EXPECT_EQ(signals[1].pending | signals[6].pending, 0u);
    queue.run(1000); // all events before
    EXPECT_EQ(signals[1].pending, 0u);
    queue.run(1001);
    EXPECT_EQ(signals[1].pending, CoreSignals::intr);
    queue.run(5000);
    EXPECT_EQ(signals[6].pending, 0u);
    queue.run(5001);
    EXPECT_EQ(signals[6].pending, CoreSignals::intr);
    EXPECT_EQ(apics[6]->acknowledge(), 0x41);
}

TEST_F(LapicTest, MessagesOfOneSenderToOneCoreArriveInTheirOrderAndAllAtOnceWhenAsked) {
    bus.travel(queue, time, [](unsigned, unsigned) { return Tick{5000}; });
    set(0, kIcrHigh, 8u << 24);
    set(0, kIcr, 0x500); // INIT
    set(0, kIcr, 0x612); // start-up
    EXPECT_EQ(signals[6].pending, 0u);
    bus.arrive_all();
    EXPECT_EQ(signals[6].pending, CoreSignals::init | CoreSignals::sipi);
    EXPECT_EQ(signals[6].sipi_vector, 0x12);
    queue.run(10'000); // and not once more
    signals[6] = {};
    queue.run(20'000);
    EXPECT_EQ(signals[6].pending, 0u);
}

TEST_F(LapicTest, EachCoreSeesItsOwnRegisters) {
    EXPECT_EQ(get(0, kId), 0u);
    EXPECT_EQ(get(7, kId), 9u << 24);
    EXPECT_EQ(get(0, kVersion), 0x80050010u);
    set(3, kTpr, 0x55);
    EXPECT_EQ(get(3, kTpr), 0x55u);
    EXPECT_EQ(get(4, kTpr), 0u);
    EXPECT_EQ(block.read(kNoCore, 0, kId, 4), ~0ull);
    EXPECT_EQ(block.read(7, 0, kId + 3, 1), 9u);
    EXPECT_EQ(block.read(7, 0, kId + 4, 4), 0u);
}

TEST_F(LapicTest, AFixedInterruptIsRequestedTakenServedAndEnded) {
    ipi(0, 9, 0x41);
    EXPECT_TRUE(pending(7));
    EXPECT_TRUE(requested(7, 0x41));
    EXPECT_EQ(apics[7]->acknowledge(), 0x41);
    EXPECT_FALSE(pending(7));
    EXPECT_FALSE(requested(7, 0x41));
    EXPECT_EQ(get(7, kIsr + 0x20), 2u);
    EXPECT_EQ(get(7, kPpr), 0x40u);
    EXPECT_EQ(apics[7]->acknowledge(), -1);
    set(7, kEoi, 0);
    EXPECT_EQ(get(7, kIsr + 0x20), 0u);
    EXPECT_TRUE(eois.vectors.empty()); // edge
}

TEST_F(LapicTest, OnlyAHigherPriorityClassInterruptsWhatIsInService) {
    ipi(0, 0, 0x45);
    EXPECT_EQ(apics[0]->acknowledge(), 0x45);
    ipi(0, 0, 0x4F); // same class
    EXPECT_FALSE(pending(0));
    ipi(0, 0, 0x50);
    EXPECT_TRUE(pending(0));
    EXPECT_EQ(apics[0]->acknowledge(), 0x50);
    set(0, kEoi, 0);
    EXPECT_FALSE(pending(0));
    set(0, kEoi, 0);
    EXPECT_TRUE(pending(0));
    EXPECT_EQ(apics[0]->acknowledge(), 0x4F);
}

TEST_F(LapicTest, TheTaskPriorityAndCr8AreOneAndHoldBackTheirClassAndLower) {
    apics[0]->set_cr8(5);
    EXPECT_EQ(get(0, kTpr), 0x50u);
    ipi(0, 0, 0x5F);
    EXPECT_FALSE(pending(0));
    ipi(0, 0, 0x60);
    EXPECT_TRUE(pending(0));
    EXPECT_EQ(apics[0]->acknowledge(), 0x60);
    set(0, kEoi, 0);
    set(0, kTpr, 0x4F);
    EXPECT_EQ(apics[0]->cr8(), 4);
    EXPECT_TRUE(pending(0));
}

TEST_F(LapicTest, PhysicalDestinationsReachOneAllOrNone) {
    ipi(0, 13, 0x31);
    EXPECT_EQ(who(0x31), Cores{11});
    ipi(0, 7, 0x32); // absent: seven is no core of chip 0
    EXPECT_EQ(who(0x32), Cores{});
    EXPECT_EQ(get(0, kEsr), 0u);
    ipi(0, 0xFF, 0x33);
    EXPECT_EQ(who(0x33).size(), kCores);
}

TEST_F(LapicTest, FlatLogicalDestinationsAreASetOfBits) {
    for (unsigned c = 0; c < 8; ++c)
        set(c, kLdr, 1u << (24 + c));
    ipi(0, 0x86, 0x800 | 0x34);
    EXPECT_EQ(who(0x34), (Cores{1, 2, 7}));
    ipi(0, 0xFF, 0x800 | 0x35);
    EXPECT_EQ(who(0x35).size(), 8u); // those without a logical identifier are not addressed
}

TEST_F(LapicTest, ClusterLogicalDestinationsAreASetWithinACluster) {
    for (unsigned c = 0; c < kCores; ++c) {
        set(c, kDfr, 0x0FFFFFFF);
        set(c, kLdr, (c / 4 << 4 | 1u << c % 4) << 24);
    }
    ipi(0, 0x25, 0x800 | 0x36);
    EXPECT_EQ(who(0x36), (Cores{8, 10}));
    ipi(0, 0xF2, 0x800 | 0x37); // every cluster
    EXPECT_EQ(who(0x37), (Cores{1, 5, 9}));
}

TEST_F(LapicTest, ShorthandsAreSelfAllAndAllButSelf) {
    ipi(5, 0, 0x40000 | 0x38);
    EXPECT_EQ(who(0x38), Cores{5});
    ipi(5, 0, 0x80000 | 0x39);
    EXPECT_EQ(who(0x39).size(), kCores);
    ipi(5, 0, 0xC0000 | 0x3A);
    EXPECT_EQ(who(0x3A).size(), kCores - 1);
    EXPECT_FALSE(requested(5, 0x3A));
}

TEST_F(LapicTest, LowestPriorityGoesToTheOneWithTheLowestArbitrationPriority) {
    for (unsigned c = 0; c < kCores; ++c) {
        set(c, kLdr, 1u << 24);
        set(c, kTpr, c == 4 ? 0x10 : 0x20);
    }
    ipi(0, 1, 0x900 | 0x41);
    EXPECT_EQ(who(0x41), Cores{4});
    ipi(0, 1, 0x900 | 0x42); // 4 has 41h waiting now
    EXPECT_EQ(who(0x42), Cores{0});
}

TEST_F(LapicTest, InitStartupNmiAndSmiArriveAtThePins) {
    ipi(0, 9, 0xC500); // INIT, level, assert
    EXPECT_TRUE(pending(7, CoreSignals::init));
    signals[7].pending = 0;
    ipi(0, 9, 0x8500); // de-assert: nothing
    EXPECT_EQ(signals[7].pending, 0u);
    ipi(0, 9, 0x069A);
    EXPECT_TRUE(pending(7, CoreSignals::sipi));
    EXPECT_EQ(signals[7].sipi_vector, 0x9A);
    ipi(0, 9, 0x0400);
    EXPECT_TRUE(pending(7, CoreSignals::nmi));
    ipi(0, 9, 0x0200);
    EXPECT_TRUE(pending(7, CoreSignals::smi));
    for (unsigned c = 0; c < kCores; ++c)
        if (c != 7) {
            EXPECT_EQ(signals[c].pending, 0u);
        }
}

TEST_F(LapicTest, InitAndStartupReachACoreWhoseApicIsDisabledBySoftware) {
    set(7, kSvr, 0xFF);
    ipi(0, 9, 0x4500);
    ipi(0, 9, 0x0608);
    EXPECT_TRUE(pending(7, CoreSignals::init));
    EXPECT_TRUE(pending(7, CoreSignals::sipi));
    ipi(0, 9, 0x41);
    EXPECT_FALSE(requested(7, 0x41));
}

TEST_F(LapicTest, WakingACoreIsReportedWhenASignalRises) {
    int raised = 0;
    apics[7]->on_raise([&] { ++raised; });
    ipi(0, 9, 0x41);
    EXPECT_EQ(raised, 1);
    ipi(0, 9, 0x42); // was up already
    EXPECT_EQ(raised, 1);
    ipi(0, 9, 0x0400);
    EXPECT_EQ(raised, 2);
}

TEST_F(LapicTest, ALevelInterruptIsBroadcastWhenItEnds) {
    bus.msi(0xFEE09000, 0xC061); // level, assert, vector 61h, core 7
    EXPECT_EQ(get(7, kTmr + 0x30), 2u);
    EXPECT_EQ(apics[7]->acknowledge(), 0x61);
    EXPECT_TRUE(eois.vectors.empty());
    set(7, kEoi, 0);
    EXPECT_EQ(eois.vectors, std::vector<int>{0x61});
}

TEST_F(LapicTest, MessageSignalledInterruptsAreAddressedByTheirAddress) {
    bus.msi(0xFEE0B000, 0x0051);
    EXPECT_EQ(who(0x51), Cores{9});
    set(2, kLdr, 0x04000000);
    bus.msi(0xFEE04004, 0x0052);
    EXPECT_EQ(who(0x52), Cores{2});
    bus.msi(0xFEE00000, 0x0400);
    EXPECT_TRUE(pending(0, CoreSignals::nmi));
    bus.msi(0xFEE00000, 0x0600); // no device sends a start-up
    EXPECT_FALSE(pending(0, CoreSignals::sipi));
}

TEST_F(LapicTest, IllegalVectorsShowInTheErrorStatusAfterItIsWritten) {
    set(0, kLvtError, 0xFE);
    ipi(0, 9, 0x0F);
    EXPECT_EQ(get(0, kEsr), 0u);
    set(0, kEsr, 0);
    EXPECT_EQ(get(0, kEsr), 0x20u);
    EXPECT_TRUE(requested(0, 0xFE));
    set(0, kEsr, 0);
    EXPECT_EQ(get(0, kEsr), 0u);
    bus.msi(0xFEE09000, 0x0003);
    set(7, kEsr, 0);
    EXPECT_EQ(get(7, kEsr), 0x40u);
    get(3, 0x2F0); // no such register
    set(3, kEsr, 0);
    EXPECT_EQ(get(3, kEsr), 0x80u);
}

TEST_F(LapicTest, AnErrorEntryWithAnIllegalVectorDoesNotLoop) {
    set(0, kLvtError, 0x05);
    get(0, 0x2F0);
    set(0, kEsr, 0);
    EXPECT_EQ(get(0, kEsr), 0x80u);
}

TEST_F(LapicTest, AOneShotTimerFiresOnceAtItsCountTimesItsDivider) {
    set(0, kLvtTimer, 0xEF);
    set(0, kDivide, 3); // by 16
    set(0, kInitial, 1000);
    const Tick due = 1000 * 16 * kBus;
    time.to(due - 1);
    EXPECT_FALSE(pending(0));
    EXPECT_EQ(get(0, kCurrent), 1u);
    time.to(due);
    EXPECT_TRUE(pending(0));
    EXPECT_EQ(get(0, kCurrent), 0u);
    EXPECT_EQ(apics[0]->acknowledge(), 0xEF);
    set(0, kEoi, 0);
    time.to(10 * due);
    EXPECT_FALSE(pending(0));
    EXPECT_EQ(queue.next(), kNever);
}

TEST_F(LapicTest, APeriodicTimerReloadsWithoutDrift) {
    set(0, kLvtTimer, 0x200EF);
    set(0, kDivide, 0xB); // by 1
    set(0, kInitial, 777);
    for (int i = 1; i <= 50; ++i) {
        time.to(i * 777 * kBus - 1);
        EXPECT_FALSE(pending(0));
        EXPECT_EQ(get(0, kCurrent), 1u);
        time.to(i * 777 * kBus);
        EXPECT_TRUE(pending(0));
        EXPECT_EQ(get(0, kCurrent), 777u);
        EXPECT_EQ(apics[0]->acknowledge(), 0xEF);
        set(0, kEoi, 0);
    }
}

TEST_F(LapicTest, ATimerWhoseModeChangesGoesOnFromItsCount) {
    set(0, kLvtTimer, 0x200EF);
    set(0, kDivide, 0xB);
    set(0, kInitial, 1000);
    time.to(2400 * kBus);
    EXPECT_EQ(apics[0]->acknowledge(), 0xEF);
    set(0, kEoi, 0);
    set(0, kLvtTimer, 0xEF); // one-shot
    EXPECT_EQ(get(0, kCurrent), 600u);
    time.to(3000 * kBus - 1);
    EXPECT_FALSE(pending(0));
    time.to(3000 * kBus);
    EXPECT_TRUE(pending(0));
    time.to(3500 * kBus);
    set(0, kLvtTimer, 0x200EF); // periodic again: what has expired does not start by itself
    EXPECT_EQ(get(0, kCurrent), 0u);
    EXPECT_EQ(queue.next(), kNever);
}

TEST_F(LapicTest, EveryDividerCodeDividesByItsPowerOfTwo) {
    const std::pair<unsigned, unsigned> codes[] = {{0, 2},  {1, 4},  {2, 8},    {3, 16},
                                                   {8, 32}, {9, 64}, {10, 128}, {11, 1}};
    set(0, kLvtTimer, 0xEF);
    for (const auto &[code, by] : codes) {
        set(0, kDivide, code);
        set(0, kInitial, 100);
        time.by(10 * static_cast<Tick>(by) * kBus - 1);
        EXPECT_EQ(get(0, kCurrent), 91u) << by;
        time.by(1);
        EXPECT_EQ(get(0, kCurrent), 90u) << by;
    }
}

TEST_F(LapicTest, AMaskedTimerCountsAndAsksForNoEvent) {
    set(0, kLvtTimer, 0x100EF);
    set(0, kDivide, 0xB);
    set(0, kInitial, 1000);
    EXPECT_EQ(queue.next(), kNever);
    time.to(400 * kBus);
    EXPECT_EQ(get(0, kCurrent), 600u);
    set(0, kLvtTimer, 0xEF);
    time.to(1000 * kBus - 1);
    EXPECT_FALSE(pending(0));
    time.to(1000 * kBus);
    EXPECT_TRUE(pending(0));
}

TEST_F(LapicTest, WritingZeroStopsTheTimer) {
    set(0, kLvtTimer, 0xEF);
    set(0, kInitial, 1000);
    set(0, kInitial, 0);
    EXPECT_EQ(queue.next(), kNever);
    EXPECT_EQ(get(0, kCurrent), 0u);
}

TEST_F(LapicTest, ACoreAheadOfTheQueueStillGetsTheTimerThatIsDue) {
    set(0, kLvtTimer, 0xEF);
    set(0, kDivide, 0xB);
    set(0, kInitial, 100);
    time.ahead_to(150 * kBus);
    set(0, kInitial, 1000);
    EXPECT_TRUE(requested(0, 0xEF));
}

TEST_F(LapicTest, ExtIntThroughLint0AsksTheController) {
    Pic pic;
    pic.lapic = apics[0].get();
    bus.attach(pic);
    apics[0]->set_irq(0, true);
    EXPECT_FALSE(pending(0)); // masked
    set(0, kLint0, 0x700);
    EXPECT_TRUE(pending(0));
    EXPECT_EQ(apics[0]->acknowledge(), 0x30);
    EXPECT_EQ(pic.acknowledged, 1);
    EXPECT_FALSE(pending(0));
    EXPECT_EQ(get(0, kIsr + 0x10), 0u); // an ExtINT is in no service here
    apics[0]->set_irq(0, true);
    set(0, kLint0, 0x10700);
    EXPECT_FALSE(pending(0));
}

TEST_F(LapicTest, Lint1AsNmiFiresOnItsEdge) {
    set(0, kLint1, 0x400);
    apics[0]->set_irq(1, true);
    EXPECT_TRUE(pending(0, CoreSignals::nmi));
    signals[0].pending = 0;
    apics[0]->set_irq(1, true);
    EXPECT_FALSE(pending(0, CoreSignals::nmi));
}

TEST_F(LapicTest, ALevelTriggeredLintIsAskedForAgainAfterItsEnd) {
    set(0, kLint0, 0x8050);
    apics[0]->set_irq(0, true);
    EXPECT_EQ(apics[0]->acknowledge(), 0x50);
    EXPECT_FALSE(pending(0));
    EXPECT_EQ(get(0, kLint0), 0xC050u);
    set(0, kEoi, 0);
    EXPECT_TRUE(pending(0));
    apics[0]->acknowledge();
    apics[0]->set_irq(0, false);
    set(0, kEoi, 0);
    EXPECT_FALSE(pending(0));
    EXPECT_EQ(get(0, kLint0), 0x8050u);
}

TEST_F(LapicTest, SoftwareDisableMasksAllLocalEntriesAndHoldsWhatIsRequested) {
    set(0, kLvtTimer, 0xEF);
    ipi(0, 0, 0x41);
    set(0, kSvr, 0xFF);
    EXPECT_EQ(get(0, kLvtTimer), 0x100EFu);
    set(0, kLvtTimer, 0xEF);
    EXPECT_EQ(get(0, kLvtTimer), 0x100EFu);
    EXPECT_FALSE(pending(0));
    set(0, kSvr, 0x1FF);
    EXPECT_TRUE(pending(0));
}

TEST_F(LapicTest, TheBaseRegisterNamesTheBootCoreDisablesAndRefusesReservedBits) {
    EXPECT_EQ(apics[0]->apic_base(), 0xFEE00900u);
    EXPECT_EQ(apics[1]->apic_base(), 0xFEE00800u);
    EXPECT_FALSE(apics[1]->set_apic_base(0xFEE00C00)); // x2APIC
    EXPECT_FALSE(apics[1]->set_apic_base(0x1'0000'FEE0'0800));
    EXPECT_FALSE(apics[1]->set_apic_base(0xFEE00801));
    EXPECT_TRUE(apics[1]->set_apic_base(0xFEE00000));
    EXPECT_EQ(block.read(1, 0, kId, 4), ~0ull);
    ipi(0, 1, 0x41);
    EXPECT_FALSE(pending(1));
    EXPECT_TRUE(apics[1]->set_apic_base(0xFEE00800));
    EXPECT_EQ(get(1, kId), 1u << 24);
    EXPECT_EQ(get(1, kSvr), 0xFFu);                   // as after reset
    EXPECT_TRUE(apics[1]->set_apic_base(0x42000800)); // the core leads its accesses here
    EXPECT_EQ(get(1, kId), 1u << 24);
}

TEST_F(LapicTest, InitResetsAllButTheIdentifier) {
    set(2, kId, 0x44000000);
    set(2, kTpr, 0x30);
    ipi(0, 0x44, 0x41);
    apics[2]->init_reset();
    EXPECT_EQ(get(2, kId), 0x44000000u);
    EXPECT_EQ(get(2, kTpr), 0u);
    EXPECT_EQ(get(2, kSvr), 0xFFu);
    EXPECT_FALSE(requested(2, 0x41));
    EXPECT_FALSE(pending(2));
    apics[2]->reset();
    EXPECT_EQ(get(2, kId), 0x02000000u);
}

TEST_F(LapicTest, ExtendedRegistersEnableInterruptsOneByOneAndEndAGivenOne) {
    EXPECT_EQ(get(0, 0x400), 0x00040007u);
    set(0, 0x500, 0x4F9);
    EXPECT_EQ(get(0, 0x500), 0x4F9u);
    set(0, 0x410, 3);
    set(0, 0x4A0, 0xFFFFFFFD); // 41h off
    ipi(0, 0, 0x41);
    EXPECT_FALSE(pending(0));
    set(0, 0x4A0, 0xFFFFFFFF);
    EXPECT_TRUE(pending(0));
    EXPECT_EQ(apics[0]->acknowledge(), 0x41);
    ipi(0, 0, 0x51);
    EXPECT_EQ(apics[0]->acknowledge(), 0x51);
    set(0, 0x420, 0x41);
    EXPECT_EQ(get(0, kIsr + 0x20), 0x20000u);
}

TEST_F(LapicTest, ACheckpointKeepsRequestsAndTheRunningTimer) {
    set(0, kLvtTimer, 0x200EF);
    set(0, kDivide, 0xB);
    set(0, kInitial, 1000);
    ipi(0, 9, 0x41);
    time.to(1500 * kBus);
    apics[0]->acknowledge();
    set(0, kEoi, 0);
    const auto bytes = saved(block);

    EventQueue queue2;
    TestTime time2(queue2);
    ApicBus bus2;
    std::array<CoreSignals, kCores> signals2{};
    std::vector<std::unique_ptr<LocalApic>> apics2;
    LapicBlock block2;
    for (unsigned c = 0; c < kCores; ++c) {
        apics2.push_back(
            std::make_unique<LocalApic>(queue2, time2, bus2, signals2[c], static_cast<std::uint8_t>(c), false));
        block2.add(*apics2.back());
    }
    restore(block2, bytes);
    EXPECT_EQ(saved(block2), bytes);
    EXPECT_EQ(apics2[7]->acknowledge(), 0x41);
    time2.to(2000 * kBus - 1);
    EXPECT_FALSE(signals2[0].pending & CoreSignals::intr);
    time2.to(2000 * kBus);
    EXPECT_TRUE(signals2[0].pending & CoreSignals::intr);
}

TEST_F(LapicTest, NoAccessWhateverItIsHurtsTheSimulator) {
    Rng rng(3);
    for (int i = 0; i < 300000; ++i) {
        const auto core = static_cast<unsigned>(rng.below(kCores + 1));
        const Addr offset = rng.below(0x1010);
        const auto size = 1u << rng.below(4);
        if (rng.below(3))
            block.write(core, 0, rng.below(4) ? offset & ~0xFull : offset, rng.below(1ull << 63), size);
        else
            block.read(core, 0, offset, size);
        if (rng.below(8) == 0)
            bus.msi(rng.below(1ull << 40), static_cast<std::uint32_t>(rng.below(1ull << 32)));
        if (rng.below(8) == 0)
            apics[core % kCores]->acknowledge();
        if (rng.below(8) == 0)
            apics[core % kCores]->set_irq(static_cast<unsigned>(rng.below(4)), rng.below(2));
        if (rng.below(64) == 0)
            apics[core % kCores]->set_apic_base(0xFEE00000 | rng.below(16) << 8);
        time.by(static_cast<Tick>(rng.below(1000)));
    }
}

} // namespace
