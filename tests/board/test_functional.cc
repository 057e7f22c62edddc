// SPDX-License-Identifier: BSD-3-Clause
// The scheduler of functional mode: what it does between slices, when a run ends, and what ends MWAIT.
#include <algorithm>

#include <gtest/gtest.h>

#include "board/functional.hh"
#include "cpu/x86/system_machine.hh"

namespace moscope {
namespace {

TEST(Functional, CodeThatIsRewrittenAllTheTimeDoesNotPileUp) {
    x86::test::FlatMachine m;
    m.long_mode();
    // l: mov [rdi], al; call rdi; inc rcx; jmp l, and at rdi in another page: nop; ret
    m.code(0x3000, {0x90, 0xc3});
    m.code(0x1000, {0x88, 0x07, 0xff, 0xd7, 0x48, 0xff, 0xc1, 0xeb, 0xf7});
    m.core.r[x86::rdi] = 0x3000;
    m.core.r[x86::rax] = 0x90;
    EventQueue queue;
    FunctionalScheduler scheduler(queue, Clock{});
    scheduler.add_core(m.core);
    std::size_t most = 0;
    for (unsigned i = 0; i < 250; ++i) {
        EXPECT_EQ(scheduler.run([] { return true; }), FunctionalScheduler::Outcome::running);
        most = std::max(most, m.blocks.garbage());
    }
    EXPECT_GT(m.core.r[x86::rcx], 40'000u) << "times the code was written and run";
    EXPECT_GT(most, 5'000u);
    EXPECT_LT(most, 12'000u);
}

/// One core that counts in RCX.
struct Counting {
    Counting() {
        m.long_mode();
        m.code(0x1000, {0x48, 0xff, 0xc1, 0xeb, 0xfb}); // l: inc rcx; jmp l
        scheduler.add_core(m.core);
    }
    static bool never() { return false; }
    x86::test::FlatMachine m;
    EventQueue queue;
    FunctionalScheduler scheduler{queue, Clock{}};
};

TEST(FunctionalUntil, ATimeEndsTheRunWithinARoundOfIt) {
    constexpr Tick at = 1'000'000'000'000; // a millisecond
    Counting c;
    EXPECT_EQ(c.scheduler.run(Counting::never, at), FunctionalScheduler::Outcome::arrived);
    EXPECT_GE(c.scheduler.now(), at);
    EXPECT_LT(c.scheduler.now(), at + Clock{}.edge(2100));
    const std::uint64_t count = c.m.core.r[x86::rcx];
    EXPECT_GT(count, 100'000u);
    EXPECT_EQ(c.scheduler.run(Counting::never, at), FunctionalScheduler::Outcome::arrived);
    EXPECT_EQ(c.m.core.r[x86::rcx], count) << "a time that has passed runs nothing";
}

TEST(FunctionalUntil, ARunEndsBeforeTicksOverflow) {
    constexpr Tick end = FunctionalScheduler::kEndOfTime;
    Counting c;
    c.scheduler.set_now(end - 1'000'000'000);
    EXPECT_EQ(c.scheduler.run(Counting::never), FunctionalScheduler::Outcome::end_of_time);
    EXPECT_GE(c.scheduler.now(), end);
    EXPECT_LT(c.scheduler.now(), end + Clock{}.edge(2100));
    EXPECT_EQ(c.scheduler.run(Counting::never, kNever), FunctionalScheduler::Outcome::end_of_time) << "again";
}

TEST(FunctionalUntil, AStopAtATimeChangesNothingForTheGuest) {
    constexpr Tick at = 1'000'000'000'000;
    Counting one, other;
    one.scheduler.run(Counting::never, at / 3);
    one.scheduler.run(Counting::never, at);
    other.scheduler.run(Counting::never, at);
    EXPECT_EQ(one.m.core.r[x86::rcx], other.m.core.r[x86::rcx]);
    EXPECT_EQ(one.scheduler.now(), other.scheduler.now());
}

/// Two cores; the first monitors the line at kLine and waits.
struct Waiting : testing::Test {
    static constexpr Addr kLine = 0x40040, kWaiter = 0x1000, kWriter = 0x2000;

    Waiting() {
        m.kernel64();
        // monitor; mov ecx, esi; mwait; inc rbx; cli; hlt
        m.code(kWaiter, {0x0f, 0x01, 0xc8, 0x89, 0xf1, 0x0f, 0x01, 0xc9, 0x48, 0xff, 0xc3, 0xfa, 0xf4});
        waiter.r[x86::rax] = kLine + 8; // anywhere in the line
        static_cast<x86::State &>(writer) = waiter;
        m.blocks.add_core(writer);
        writer.mode_changed();
        scheduler.add_core(waiter);
        scheduler.add_core(writer);
        writer.halted = true;
        waiter.flags.system |= x86::Flags::if_;
    }
    /// The other core stores a byte, then halts.
    void write(Addr a) {
        const Addr rip = waiter.rip;
        m.code(kWriter, {0xc6, 0x07, 0x01, 0xf4}); // mov byte [rdi], 1; hlt
        waiter.rip = rip;
        writer.r[x86::rdi] = a;
        writer.rip = kWriter;
        writer.halted = false;
    }
    void rounds(unsigned n) {
        while (n--)
            scheduler.run([] { return true; });
    }
    bool awake() const { return waiter.r[x86::rbx] != 0; }

    x86::test::SystemMachine m;
    x86::Core &waiter = m.core;
    x86::Core writer{1, m, m.phys, m.blocks, m.model};
    x86::test::FakeApic apic{waiter};
    EventQueue queue;
    FunctionalScheduler scheduler{queue, Clock{}};
};

TEST_F(Waiting, MwaitSleepsUntilAnotherCoreWritesTheMonitoredLine) {
    rounds(10);
    const std::uint64_t before = waiter.retired;
    EXPECT_TRUE(waiter.halted);
    write(kLine - 1); // the line below
    rounds(10);
    write(kLine + 64); // and above
    rounds(10);
    EXPECT_EQ(waiter.retired, before) << "asleep, not waiting in a loop";
    write(kLine + 63);
    rounds(3);
    EXPECT_TRUE(awake());
}

TEST_F(Waiting, MwaitDoesNotSleepIfTheLineWasWrittenSinceMonitor) {
    m.code(kWaiter,
           {0x0f, 0x01, 0xc8, 0xc6, 0x00, 0x01, 0x0f, 0x01, 0xc9, 0x48, 0xff, 0xc3, 0xf4}); // mov byte [rax], 1 between
    waiter.r[x86::rcx] = 0;
    rounds(2);
    EXPECT_TRUE(awake());
}

TEST_F(Waiting, MwaitWithoutAMonitoredLineDoesNotSleep) {
    waiter.rip = kWaiter + 3;
    rounds(2);
    EXPECT_TRUE(awake());
}

TEST_F(Waiting, DmaIntoTheLineEndsMwaitAndTimeJumpsThere) {
    constexpr Tick at = 1'000'000'000'000; // a millisecond on
    struct Dma : Component {
        explicit Dma(Waiting &w)
            : Component(w.queue, "dma",
                        [](Component &c, Tick) { static_cast<Dma &>(c).test.m.write<std::uint8_t>(kLine, 7); }),
              test(w) {}
        Waiting &test;
    } dma(*this);
    dma.schedule(at);
    rounds(10);
    EXPECT_TRUE(awake());
    EXPECT_GE(scheduler.now(), at);
    EXPECT_LT(waiter.retired, 100u);
}

TEST_F(Waiting, IdleTimeIsSkippedNoFurtherThanToTheRequestedTime) {
    constexpr Tick event = 1'000'000'000'000, at = event / 2;
    struct Far : Component {
        explicit Far(EventQueue &q) : Component(q, "far", [](Component &, Tick) {}) {}
    } far(queue);
    far.schedule(event);
    EXPECT_EQ(scheduler.run([] { return false; }, at), FunctionalScheduler::Outcome::arrived);
    EXPECT_EQ(scheduler.now(), at);
}

TEST_F(Waiting, AnInterruptEndsMwaitAndItsHandlerReturnsBehindIt) {
    rounds(2);
    apic.interrupt(0x41); // whose handler halts
    rounds(2);
    EXPECT_EQ(m.pushed(0), kWaiter + 8);
    write(kLine);
    rounds(3);
    EXPECT_TRUE(waiter.halted) << "the handler's HLT does not wait for the line";
}

TEST_F(Waiting, AMaskedInterruptEndsMwaitOnlyIfEcxAsksForIt) {
    for (const bool asked : {false, true}) {
        waiter.flags.system &= ~x86::Flags::if_;
        waiter.rip = kWaiter;
        waiter.r[x86::rcx] = 0;
        waiter.r[x86::rsi] = asked;
        waiter.halted = false;
        rounds(2);
        apic.interrupt(0x41);
        rounds(2);
        EXPECT_EQ(awake(), asked);
    }
    EXPECT_TRUE(waiter.signals.pending & dev::CoreSignals::intr) << "and leaves it pending";
}

} // namespace
} // namespace moscope
